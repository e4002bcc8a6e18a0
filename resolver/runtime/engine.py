"""Access to the Docker engine: connecting, pulling images, limiting and removing containers.

The engine is found like the docker command finds it: by DOCKER_HOST, or else by the current
context.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any, Final

import docker
from docker import DockerClient
from docker.models.containers import Container

from resolver.errors import SandboxError
from resolver.runtime.base import SandboxSpec
from resolver.runtime.disk import DiskWatch
from resolver.runtime.image_pull import pull_image

RUN_LABEL: Final = "resolver.run"
"""Label on every container; its value is the id of the run."""

_PROBE_SECONDS: Final = 5
_ANY_VERSION: Final = "1.41"
"""Version of the API for a client that asks for the engine's, in a call without a version."""

_CALL_SECONDS: Final = 120
_CPU_PERIOD: Final = 100_000


@contextmanager
def engine_errors(what: str, next_step: str) -> Iterator[None]:
    """Turn exceptions of the engine's client into SandboxError with the text "<what>: <reason>"."""
    try:
        yield
    except docker.errors.APIError as error:
        if error.response is not None:
            error.response.close()  # that of a streamed call, such as a pull, would stay open
        raise SandboxError(f"{what}: {error.explanation or error}", next_step) from error
    # The exceptions of requests, which the client uses, are OSErrors.
    except (docker.errors.DockerException, OSError) as error:
        raise SandboxError(f"{what}: {error}", next_step) from error


def connect_engine(environment: Mapping[str, str], seconds: int = _CALL_SECONDS) -> DockerClient:
    """Return a client for an engine that answers. Raises SandboxError naming the address tried.

    environment: DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH and DOCKER_CONTEXT are read.
    seconds: time limit for one call to the engine.
    """
    address = _engine_address(environment)
    with engine_errors(
        f"no Docker engine answers at {address}",
        "start Docker, set DOCKER_HOST, or work on this machine with RESOLVER_RUNTIME=local",
    ):
        with closing(_new_client(environment, seconds, _ANY_VERSION)) as probe:
            version = probe.api.version(api_version=False)["ApiVersion"]
        return _new_client(environment, seconds, version)


def _engine_address(environment: Mapping[str, str]) -> str:
    """Return the address for messages. Raises SandboxError if it is one of SSH."""
    address = environment.get("DOCKER_HOST") or "the default socket or the current docker context"
    if address.startswith("ssh:"):  # its client would need a library for SSH, with its own keys
        raise SandboxError(
            f"the Docker engine at {address} can't be reached, since SSH is not spoken here",
            "forward its socket with `ssh -N -L PATH:/var/run/docker.sock USER@HOST`, and set "
            "DOCKER_HOST=unix://PATH; or use tcp:// with TLS",
        )
    return address


def _new_client(environment: Mapping[str, str], seconds: int, version: str) -> DockerClient:
    """Return a client that has not called the engine yet."""
    client = docker.from_env(environment=dict(environment), timeout=seconds, version=version)
    # Otherwise REQUESTS_CA_BUNDLE, which companies set for their proxies, would replace the
    # certificate authority of the engine: https://github.com/psf/requests/issues/3829
    client.api.trust_env = False
    return client


def engine_answers(environment: Mapping[str, str]) -> bool:
    """Return True if a Docker engine answers. Used for `--runtime auto`.

    Raises SandboxError if DOCKER_HOST names an engine that can't be used from here: the person who
    set it expects that engine.
    """
    _engine_address(environment)
    try:
        connect_engine(environment, _PROBE_SECONDS).close()
    except SandboxError:
        return False
    return True


def has_image(environment: Mapping[str, str], image: str) -> bool:
    """Return True if an engine answers and has the image. Nothing is pulled."""
    try:
        client = connect_engine(environment, _PROBE_SECONDS)
    except SandboxError:
        return False
    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        return False
    finally:
        client.close()
    return True


def image_settings(client: DockerClient, image: str) -> dict[str, Any]:
    """Return the image's settings (User, Env, ...), after pulling it if the engine lacks it.

    Raises SandboxError if the image can't be pulled.
    """
    with engine_errors(
        f"the image {image} is not on the engine and can't be pulled",
        "name another with RESOLVER_IMAGE or `image` in .github/resolver.yml, pull or build it "
        "first, or work on this machine with RESOLVER_RUNTIME=local",
    ):
        try:
            image_info = client.images.get(image)
        except docker.errors.ImageNotFound:
            image_info = pull_image(client, image)
    settings = image_info.attrs.get("Config")
    return settings if isinstance(settings, dict) else {}


def confinement(spec: SandboxSpec) -> dict[str, Any]:
    """Return options for a container with the limits of a sandbox and no privileges."""
    return {
        "healthcheck": {"test": ["NONE"]},
        "auto_remove": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "mem_limit": spec.memory,
        "memswap_limit": spec.memory,
        # A quota instead of nano_cpus: the engine refuses nano_cpus above the number of its cores.
        "cpu_period": _CPU_PERIOD,
        "cpu_quota": int(spec.cpus * _CPU_PERIOD),
        "pids_limit": spec.pids,
        "ulimits": [{"Name": "fsize", "Soft": spec.disk, "Hard": spec.disk}],
    }


def watch_disk(client: DockerClient, container: Container, max_bytes: int) -> DiskWatch:
    """Return a watch on the container's writable layer, as measured by the engine."""

    def measure() -> int:
        with engine_errors(
            "the engine can't measure its container", "check it with `docker ps -s`"
        ):
            (found,) = client.api.containers(all=True, size=True, filters={"id": container.id}) or [
                {}
            ]
        return int(found.get("SizeRw") or 0)

    def kill() -> None:
        with suppress(SandboxError), engine_errors("the container can't be killed", ""):
            container.kill()

    return DiskWatch(measure, kill, max_bytes)


def remove_container(container: Container) -> None:
    """Remove a container, running or not, with its anonymous volumes; a missing one is no error.

    When this returns, it uses neither its image nor its volumes any more.
    """
    name = container.name or container.short_id
    with engine_errors(
        f"the container {name} could not be removed", f"remove it with `docker rm -f {name}`"
    ):
        try:
            container.remove(force=True, v=True)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            if error.status_code != 409:
                raise
            # The engine removes a container with `auto_remove` itself when its process ends.
            with suppress(docker.errors.NotFound):
                container.wait(condition="removed", timeout=_CALL_SECONDS)


def end_container(container: Container) -> None:
    """End every process of a container with `auto_remove` and return. The engine then removes it by
    itself, which takes seconds if it has many files; a missing container is no error.

    Until it is removed it uses its image and its volumes; `remove_container` waits for that.
    """
    name = container.name or container.short_id
    with engine_errors(
        f"the container {name} could not be ended", f"remove it with `docker rm -f {name}`"
    ):
        try:
            # The engine answers after the processes have ended.
            container.kill()
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            if error.status_code != 409:
                raise
            # It was never started, or it has ended and its removal may have failed.
            remove_container(container)


def labeled_containers(client: DockerClient, label: str) -> "list[Container]":
    """Return the containers with a label, `NAME` or `NAME=VALUE`, running or not."""
    with engine_errors("the engine can't list its containers", "check it with `docker ps`"):
        return client.containers.list(all=True, filters={"label": label}, ignore_removed=True)


def remove_leftovers(client: DockerClient, run: str) -> int:
    """Remove every container of a run, for example after a crash of the host; return the number."""
    containers = labeled_containers(client, f"{RUN_LABEL}={run}")
    for container in containers:
        remove_container(container)
    return len(containers)
