"""The containers of `deploy/kubernetes` and `compose.yaml`, started on an engine as the files say.

Neither a cluster nor Compose is needed for that: the images, arguments, variables, users, limits,
volumes and probes of the files are given to the engine one by one.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import docker
import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from docker.models.containers import Container
from docker.types import DriverConfig, Mount

from tests.action.image import ROOT
from tests.parts.engine import POSTGRES_IMAGE
from tests.parts.waiting import until

pytestmark = [
    pytest.mark.engine,
    pytest.mark.xdist_group("action"),
    pytest.mark.timeout(900),  # the first test builds the image
    pytest.mark.nightly,
]

UTF_8 = {"LANG": "C.UTF-8"}
"""The encoding of the databases in the official image of PostgreSQL."""

PLACEHOLDER = "replace-me"
NOBODY = {"api.github.com": "127.0.0.1"}
"""The GitHub of these containers refuses connections. They start nevertheless."""

IMPATIENT = {"RESOLVER_PACE": '{"first_wait": 0.05}'}
"""A start tries to reach GitHub several times."""

UNITS = {"Mi": 1 << 20, "Gi": 1 << 30}
SECRET = {"sizeLimit": "1Mi"}
"""A Secret as a volume: a small folder in memory."""

GET = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=5).status)"


class Cluster:
    """A network with a database; containers that are started in it end with the test."""

    def __init__(self, engine: docker.DockerClient, image: str, opened: ExitStack) -> None:
        self.engine, self.image, self._opened = engine, image, opened
        self.network = engine.networks.create(f"deployment-{uuid.uuid4().hex[:8]}", internal=True)
        opened.callback(self.network.remove)

    def start(self, image: str, command: list[str], name: str, **options: Any) -> Container:
        """Start a container that the others reach by its name."""
        container = self.engine.containers.create(
            image, command, network=self.network.name, extra_hosts=NOBODY, **options
        )
        self._opened.callback(container.remove, v=True, force=True)
        self.network.disconnect(container, force=True)
        self.network.connect(container, aliases=[name])  # `create` takes no names
        container.start()
        return container


@pytest.fixture
def cluster(
    engine: docker.DockerClient, image: str, service_images: tuple[str, str]
) -> Iterator[Cluster]:
    with ExitStack() as opened:
        yield Cluster(engine, image, opened)


def new_key() -> str:
    """A private key of a GitHub App."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()


def with_credentials(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables with values for the placeholders, as the files ask for."""
    values = {"RESOLVER_APP_PRIVATE_KEY": new_key(), "RESOLVER_APP_ID": "4711"}
    # There is no GitHub to ask for it.
    login = {"RESOLVER_BOT_LOGIN": "resolver[bot]"}
    filled = {
        name: "canary-0f5d2b7c91e3a846" if value == PLACEHOLDER else value
        for name, value in variables.items()
    }
    return {
        **IMPATIENT,
        **login,
        **filled,
        **{name: value for name, value in values.items() if name in variables},
    }


def succeeds(container: Container, *command: str) -> bool:
    container.reload()
    assert container.status == "running", container.logs().decode()
    return bool(container.exec_run(list(command)).exit_code == 0)


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((ROOT / "deploy/kubernetes" / name).read_text()))


def start_pod(cluster: Cluster, name: str, pod: dict[str, Any]) -> Container:
    """Start the container of a pod as a kubelet does."""
    [spec] = pod["containers"]
    [settings], [secret] = documents("config.yaml"), documents("examples/secret.yaml")
    account, limits = pod["securityContext"], spec["securityContext"]
    assert account["runAsNonRoot"] and not limits["allowPrivilegeEscalation"]
    folders = {each["name"]: each.get("emptyDir", SECRET)["sizeLimit"] for each in pod["volumes"]}
    return cluster.start(
        cluster.image,
        spec["args"],
        name,
        working_dir=spec["workingDir"],
        environment=with_credentials({**settings["data"], **secret["stringData"]}),
        user=f"{account['runAsUser']}:{account['runAsGroup']}",
        read_only=limits["readOnlyRootFilesystem"],
        cap_drop=limits["capabilities"]["drop"],
        security_opt=["no-new-privileges"],
        mem_limit=size(spec["resources"]["limits"]["memory"]),
        mounts=[
            empty_folder(each["mountPath"], size(folders[each["name"]]), account.get("fsGroup", 0))
            for each in spec["volumeMounts"]
        ],
    )


def empty_folder(path: str, max_bytes: int, group: int) -> Mount:
    """An emptyDir: everybody may write to it, and files in it belong to the group fsGroup."""
    options = f"size={max_bytes},mode=2777,gid={group}"
    driver = DriverConfig("local", {"type": "tmpfs", "device": "tmpfs", "o": options})
    return Mount(path, None, type="volume", driver_config=driver, no_copy=True)


def size(quantity: str) -> int:
    return int(quantity[:-2]) * UNITS[quantity[-2:]]


def answers(container: Container, spec: dict[str, Any], probe: str) -> bool:
    """Whether the probe of a pod's container succeeds."""
    ports = {each["name"]: each["containerPort"] for each in spec["ports"]}
    get = spec[probe]["httpGet"]
    url = f"http://127.0.0.1:{ports[get['port']]}{get['path']}"
    return succeeds(container, "python3", "-c", GET, url)


def stop_together(graces: Iterable[tuple[Container, int]]) -> None:
    """Stop the containers side by side, and check that each ends well within its seconds."""
    stopped = list(graces)
    with ThreadPoolExecutor(len(stopped)) as pool:
        list(pool.map(lambda one: one[0].stop(timeout=one[1]), stopped))
    for container, _ in stopped:
        log = container.logs().decode()
        assert container.wait()["StatusCode"] == 0, log
        assert "Traceback" not in log


def test_the_pods_of_the_manifests_become_ready_and_end_in_time(cluster: Cluster) -> None:
    """Web and worker start at once on an empty database."""
    variables = {"POSTGRES_USER": "resolver", "POSTGRES_PASSWORD": "PASSWORD", **UTF_8}
    database = cluster.start(
        POSTGRES_IMAGE, ["postgres"], "database.example.org", environment=variables
    )
    until(lambda: succeeds(database, "pg_isready", "-h", "127.0.0.1", "-U", "resolver"))
    pods = {
        name: documents(f"{name}.yaml")[0]["spec"]["template"]["spec"] for name in ("web", "worker")
    }
    containers = {name: start_pod(cluster, name, pod) for name, pod in pods.items()}
    for name, pod in pods.items():
        [spec] = pod["containers"]
        for probe in sorted(key for key in spec if key.endswith("Probe")):
            until(lambda: answers(containers[name], spec, probe))  # noqa: B023
    listed = containers["web"].exec_run(["resolver", "admin", "runs"])
    assert listed.exit_code == 0, listed.output.decode()

    stop_together(
        (containers[name], pod["terminationGracePeriodSeconds"]) for name, pod in pods.items()
    )
