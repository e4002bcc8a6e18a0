"""The Docker engine: reaching it, having the image, and removing what a run left.

The engine is found as the docker command finds it: DOCKER_HOST, else the current context.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from resolver.errors import SandboxError

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

RUN_LABEL: Final = "resolver.run"
"""Label on every container; its value is the run's id."""

_QUICK_SECONDS: Final = 5
_CALL_SECONDS: Final = 120


@contextmanager
def engine_errors(what: str, next_step: str) -> Iterator[None]:
    """Turn whatever the engine's client raises into SandboxError("<what>: <the reason>")."""
    import docker

    try:
        yield
    except docker.errors.APIError as error:
        raise SandboxError(f"{what}: {error.explanation or error}", next_step) from error
    except (docker.errors.DockerException, OSError) as error:  # requests' errors are OSErrors
        raise SandboxError(f"{what}: {error}", next_step) from error


def connect_engine(environment: Mapping[str, str], seconds: int = _CALL_SECONDS) -> "DockerClient":
    """A client of an engine that answers. Raises SandboxError that names what was tried.

    environment: DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH and DOCKER_CONTEXT are read.
    seconds: longest one call to the engine may take.
    """
    import docker

    tried = environment.get("DOCKER_HOST") or "the default socket or the current docker context"
    with engine_errors(
        f"no Docker engine answers at {tried}",
        "start Docker, set DOCKER_HOST, or work on this machine with `--runtime local`",
    ):
        client = docker.from_env(environment=dict(environment), timeout=seconds)
        try:
            client.ping()
        except BaseException:
            client.close()
            raise
    return client


def engine_answers(environment: Mapping[str, str]) -> bool:
    """Whether a Docker engine answers, for `--runtime auto`."""
    try:
        connect_engine(environment, _QUICK_SECONDS).close()
    except SandboxError:
        return False
    return True


def has_image(environment: Mapping[str, str], image: str) -> bool:
    """Whether an engine answers and holds the image already, so that nothing is pulled."""
    import docker

    try:
        client = connect_engine(environment, _QUICK_SECONDS)
    except SandboxError:
        return False
    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        return False
    finally:
        client.close()
    return True


def image_settings(client: "DockerClient", image: str) -> dict[str, Any]:
    """The image's own settings (User, Env, ...), pulled when the engine lacks it.

    Raises SandboxError when it can't be had.
    """
    import docker

    with engine_errors(
        f"the sandbox's image {image} is not on the engine and can't be pulled",
        "name another with `--image`, pull or build it first, or work on this machine with "
        "`--runtime local`",
    ):
        try:
            found = client.images.get(image)
        except docker.errors.ImageNotFound:
            found = client.images.pull(image)
    settings = found.attrs.get("Config")
    return settings if isinstance(settings, dict) else {}


def remove_container(container: "Container") -> None:
    """Remove it with its anonymous volumes, running or not; gone already is fine."""
    import docker

    with engine_errors(
        f"the container {container.name} could not be removed",
        f"remove it with `docker rm -f {container.name}`",
    ):
        try:
            container.remove(force=True, v=True)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            if error.status_code != 409:  # its removal is under way
                raise


def remove_leftovers(client: "DockerClient", run: str) -> int:
    """Remove every container of a run, as after a crash of the host; how many there were."""
    with engine_errors("the engine can't list its containers", "check it with `docker ps`"):
        found = client.containers.list(
            all=True, filters={"label": f"{RUN_LABEL}={run}"}, ignore_removed=True
        )
    for container in found:
        remove_container(container)
    return len(found)
