"""The services that declared checks name, and which of them may run."""

import pytest

from resolver.config.settings import load_settings
from resolver.models.verification import CheckService, ProjectCheck
from resolver.runtime.service_policy import ServicePolicy, allow_services
from resolver.verification.runner import execution_key

ALLOWED = ServicePolicy(("postgres", "redis:7*", "ghcr.io/acme/*"))
DECLARED = """
- name: unit
  command: pytest
  services:
    db:
      image: postgres:16
      environment: {POSTGRES_PASSWORD: pass$word, POSTGRES_PORT: 5432}
      ports: [5432]
      command: [postgres, -c, fsync=off]
    cache: ghcr.io/acme/redis
    queue: {image: "redis:7.2", ports: 6379}
"""


def test_the_services_of_a_declared_check_are_read() -> None:
    (check,) = load_settings({}, {"RESOLVER_CHECKS": DECLARED}).project_checks
    db, cache, queue = check.services
    assert db == CheckService(
        name="db",
        image="postgres:16",
        environment={"POSTGRES_PASSWORD": "pass$word", "POSTGRES_PORT": "5432"},
        ports=(5432,),
        command=("postgres", "-c", "fsync=off"),
    )
    assert cache == CheckService(name="cache", image="ghcr.io/acme/redis")
    assert queue.ports == (6379,)
    ((allowed,), omitted) = allow_services([check], ALLOWED)
    assert omitted == ()
    assert [service.image for service in allowed.services] == [
        "postgres:16", "ghcr.io/acme/redis:latest", "redis:7.2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("image", "policy", "reason"),
    [
        ("postgres:16", ServicePolicy(), "has not allowed its image postgres:16"),
        ("mysql", ALLOWED, "has not allowed its image mysql"),
        ("evil.example/postgres", ALLOWED, "has not allowed"),
        ("redis:6", ALLOWED, "has not allowed"),
        ("resolver-prepared:x", ALLOWED, "is not an image of a registry"),
        ("postgres", ServicePolicy(("postgres",), is_supported=False), "need the docker runtime"),
    ],
)
def test_a_check_whose_service_may_not_run_is_named(
    image: str, policy: ServicePolicy, reason: str
) -> None:
    check = ProjectCheck(name="unit", command="x", services=(CheckService(name="db", image=image),))
    checks, (omitted,) = allow_services([check], policy)
    assert checks == ()
    assert omitted.reason.startswith("The check `unit` needs the service db (")
    assert reason in omitted.reason


def test_services_are_a_part_of_what_an_execution_is_known_by() -> None:
    check = ProjectCheck(name="unit", command="pytest")
    services = (CheckService(name="db", image="postgres"),)
    with_service = check.model_copy(update={"services": services})
    assert execution_key("e", "t", check) != execution_key("e", "t", with_service)
