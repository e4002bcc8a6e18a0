"""The services that workflow jobs and compose files name, and which of them may run."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from resolver.config.settings import load_settings
from resolver.errors import UsageError
from resolver.models.verification import CheckService, ProjectCheck
from resolver.verification.base_results import execution_key
from resolver.verification.project_tree import ProjectTree
from resolver.verification.services import (
    MAX_SERVICES,
    CheckServices,
    ServicePolicy,
    UnavailableService,
    read_compose_services,
)

ALLOWED = ServicePolicy(("postgres", "redis:7*", "ghcr.io/acme/*"))
COMPOSE = """
services:
  web: {build: ., ports: ["80:80"], depends_on: [db]}
  db:
    image: postgres:${PG:-16}
    environment: [POSTGRES_PASSWORD=pass$$word, "POSTGRES_DB=${DB:-shop}"]
    ports: ["127.0.0.1:5432:5432/tcp"]
    volumes: ["data:/var/lib/postgresql/data"]
    healthcheck: {test: pg_isready}
    command: postgres -c fsync=off
  cache: {image: "ghcr.io/acme/redis", expose: ["6379"]}
  other: {image: mysql}
volumes: {data: {}}
"""


def in_compose(*names: str, text: str = COMPOSE) -> CheckServices:
    tree = ProjectTree.from_files({"docker-compose.yml": text})
    return read_compose_services(tree, names, ALLOWED)


def test_the_named_services_of_a_compose_file_are_read() -> None:
    db, cache = in_compose("db", "cache")
    assert db == CheckService(
        name="db",
        image="postgres:16",
        environment={"POSTGRES_PASSWORD": "pass$word", "POSTGRES_DB": "shop"},
        ports=(5432,),
        command=("postgres", "-c", "fsync=off"),
    )
    assert cache == CheckService(name="cache", image="ghcr.io/acme/redis:latest", ports=(6379,))


@pytest.mark.parametrize(
    ("data", "obstacle"),
    [
        ("{image: mysql}", "not_allowed"),
        ("{image: evil.example/postgres}", "not_allowed"),
        ("{image: 'redis:6'}", "not_allowed"),
        ("{image: resolver-prepared:x}", "image"),
        ("{}", "image"),
        ("{image: postgres, ports: ['5433:5432']}", "port"),
        ("{image: postgres, ports: [99999]}", "invalid"),
        ("[1]", "invalid"),
        ("{build: .}", "key"),
        ("{image: postgres, env_file: .env}", "key"),
        ("{image: postgres, network_mode: host}", "key"),
        ("{image: postgres, secrets: [pw]}", "secret"),
        ("{image: postgres, environment: [PASSWORD]}", "variable"),
        ("{image: postgres, environment: {P: '${PASSWORD}'}}", "variable"),
        ("{image: postgres, volumes: ['./init:/docker-entrypoint-initdb.d']}", "volume"),
        ("{image: postgres, volumes: [{type: bind, source: /etc, target: /x}]}", "volume"),
        ("{image: '$IMAGE'}", "variable"),
    ],
)
def test_what_a_compose_file_asks_for_in_vain_has_a_reason(data: str, obstacle: str) -> None:
    [found] = in_compose("db", text=f"services: {{db: {data}}}")
    assert isinstance(found, UnavailableService) and found.obstacle == obstacle


def test_a_service_that_is_missing_or_one_of_too_many_is_named() -> None:
    [missing] = in_compose("queue")
    assert isinstance(missing, UnavailableService) and missing.obstacle == "unknown"
    many = {f"s{n}": {"image": "postgres"} for n in range(MAX_SERVICES + 1)}
    [limit] = in_compose(*many, text=yaml.safe_dump({"services": many}))
    assert isinstance(limit, UnavailableService) and limit.obstacle == "limit"
    both = "services: {a: {image: postgres, ports: [1]}, b: {image: postgres, ports: [1]}}"
    [port] = in_compose("a", "b", text=both)
    assert isinstance(port, UnavailableService) and port.obstacle == "port"


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20)
    | st.sampled_from(["postgres", "${A:-b}", "$$", "${{ secrets.X }}", "5432:5432", "./a:/b"]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(["image", "env", "environment", "ports", "volumes", "options", "command",
                         "target", "published", "source", "expose", "A"]) | st.text(max_size=5),
        inner, max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(st.text(max_size=8), values, max_size=8))
def test_whatever_the_files_contain_the_result_is_bounded(services: dict[str, Any]) -> None:
    text = yaml.safe_dump({"services": services})
    tree = ProjectTree.from_files({"compose.yaml": text})
    found = read_compose_services(tree, tuple(services), ALLOWED)
    assert len(found) <= MAX_SERVICES
    for service in found:
        if isinstance(service, CheckService):
            assert service.image == "postgres:latest" and len(service.ports) <= 10
            assert all("\0" not in value for value in service.environment.values())
        else:
            assert service.describe().isprintable()


def test_services_are_a_part_of_what_an_execution_is_known_by() -> None:
    check = ProjectCheck(name="unit", command="pytest")
    [service] = in_compose("cache")
    assert isinstance(service, CheckService)
    with_service = check.model_copy(update={"services": (service,)})
    assert execution_key("e", "t", check) != execution_key("e", "t", with_service)


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (ServicePolicy(), "db"),
        (ServicePolicy(("redis",)), "its image postgres:16 is not on the operator's list"),
        (ServicePolicy(("postgres",), is_supported=False), "services need the docker runtime"),
    ],
)
def test_services_that_are_not_allowed_are_named(policy: ServicePolicy, reason: str) -> None:
    tree = ProjectTree.from_files({"compose.yaml": COMPOSE})
    [found] = read_compose_services(tree, ("db",), policy)
    assert isinstance(found, UnavailableService) and reason in found.describe()


def test_a_repository_can_not_allow_itself_services() -> None:
    with pytest.raises(UsageError, match="'image_options' can't be set there"):
        load_settings({}, {}, {"image_options": {"services": ["postgres"]}})
    settings = load_settings({}, {"RESOLVER_IMAGE_OPTIONS": "{services: [postgres, 'redis:7']}"})
    assert settings.image_options.services == ("postgres", "redis:7")
    with pytest.raises(UsageError, match="is not the name of an image"):
        load_settings({}, {"RESOLVER_IMAGE_OPTIONS": "{services: [no image!]}"})
