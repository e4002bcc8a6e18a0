"""`DockerMachine`: a container as the sandbox.

No path of the host is mounted: files go in and out as tar streams, and the wire is the stdin and
stdout of one long exec. The engine may therefore be on another machine. What killed runs leave on
an engine is found by labels and removed.
"""

import io
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, Final

from docker import DockerClient
from docker.models.containers import Container

from resolver.errors import SandboxError, SandboxLost
from resolver.models.verification import CheckService
from resolver.runtime.base import BrowserProcess, Channel, SandboxSpec
from resolver.runtime.browser import BrowserContainer
from resolver.runtime.channel import DockerChannel
from resolver.runtime.disk import DiskWatch
from resolver.runtime.engine import (
    RUN_LABEL,
    confinement,
    end_container,
    engine_errors,
    image_settings,
    labeled_containers,
    watch_disk,
)
from resolver.runtime.services import SERVICE_LABEL, ServiceHost, run_service_containers
from resolver.runtime.toolbox import (
    BASH,
    ENTRY,
    GIT,
    PREFIX,
    PYTHON,
    SERVER,
    SOCKET_FILTER,
    Toolbox,
)
from resolver.runtime.volume import (
    TOOLBOX_LABEL,
    fill_volume,
    remove_other_versions,
    toolbox_mount,
)

WORKSPACE: Final = "/workspace"
SCRATCH: Final = "/var/tmp/resolver"  # noqa: S108 (inside the container)

_FOLDERS: Final = (("/tmp", 0o1777), (WORKSPACE, 0o755), (SCRATCH, 0o755))  # noqa: S108
"""The folders that a container needs, and their modes."""

# The server ends when its stdin ends, for example because the host process was killed, and the
# container ends with the server. Everything runs behind the socket filter
# (sandbox/socket_filter.py), the container's first process included: a program that can trace an
# unfiltered process could make it open any socket.
# The waiting shell closes its own descriptors of the wire, because any program of the same user
# could open them through /proc.
_END_CONTAINER: Final = '"$@" <&0 & exec <&- >&-; wait $!; kill 1'
_SERVE: Final = (PYTHON, "-I", "-S", SOCKET_FILTER, BASH, "-p", "-c", _END_CONTAINER, "serve")
_TRANSFER_ADVICE: Final = "the sandbox may be out of disk space or memory; start the run again"
_PRINT_IDS: Final = "import os;print(os.getuid(),os.getgid())"


class DockerMachine:
    """A container of `spec.image` with no network, no capabilities and limited resources.

    local_names: names that resolve to the container's own loopback address, for services.
    """

    def __init__(
        self,
        spec: SandboxSpec,
        toolbox: Toolbox,
        client: DockerClient,
        local_names: Sequence[str] = (),
    ) -> None:
        self._spec = spec
        self._local_names = local_names
        self._toolbox = toolbox
        self._client = client
        self._container: Container | None = None
        self._watch: DiskWatch | None = None
        exception = f" but a proxy to {', '.join(spec.egress)}" if spec.egress else ""
        self.isolation = (
            f"Docker container: no network{exception}, no capabilities, no new privileges, nothing "
            "of the host mounted, bounded memory, processors, processes and disk"
        )

    @property
    def scratch(self) -> str:
        """Folder outside the repository for bundles and long outputs."""
        return SCRATCH

    def __enter__(self) -> "DockerMachine":
        try:
            settings = image_settings(self._client, self._spec.image)
            if self._spec.browser_image:  # pulled here, because an MCP server has less time
                image_settings(self._client, self._spec.browser_image)
            self._start()
            owner = self._user_ids(str(settings.get("User") or ""))
            self._make_folders(owner)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        """End the container, also after an error, and close the connections to the engine."""
        if self._watch is not None:
            self._watch.close()
        container, self._container = self._container, None
        try:
            if container is not None:
                end_container(container)  # its removal took 11 s with 100,000 files
        finally:
            self._client.close()

    def connect(self) -> Channel:
        """Start the action server with one long exec and return its stdin and stdout."""
        api = self._client.api
        path_options = ["--root", WORKSPACE, "--scratch", SCRATCH, "--bash", BASH, "--git", GIT]
        other_options = ["--tools", f"{PREFIX}/bin", "--keep-environment"]
        other_options += ["--proxy"] if self._spec.egress else []
        command = [*_SERVE, PYTHON, "-I", SERVER, *path_options, *other_options]
        with _container_errors(
            self._running_container,
            "the action server could not be started in the container",
            "check that a container of the image stays up on this engine",
        ):
            exec_info = api.exec_create(
                self._running_container.id, command, stdin=True, tty=False, workdir=WORKSPACE
            )
            connection = api.exec_start(exec_info["Id"], socket=True)
        self._watch = watch_disk(self._client, self._running_container, self._spec.disk)
        return _WatchedChannel(connection, self._watch)

    def put_archive(self, path: str, tar: bytes | Iterator[bytes]) -> None:
        """Unpack a tar stream below `path`."""
        container = self._running_container
        with _container_errors(container, f"{path} could not be put into the sandbox"):
            container.put_archive(path, tar)

    def get_archive(self, path: str) -> Iterator[bytes]:
        """Yield the file or folder as a tar stream.

        A symbolic link is returned as a link, not followed.
        """
        with _container_errors(
            self._running_container,
            f"{path} could not be taken out of the sandbox",
            _TRANSFER_ADVICE,
        ):
            stream, _ = self._running_container.get_archive(path)
            yield from stream

    def save(self, image: str, labels: Mapping[str, str]) -> bool:
        """Commit the container as `image` with the labels, and with the run's label emptied."""
        name, _, tag = image.partition(":")
        settings = [f"LABEL {name}={value}" for name, value in {RUN_LABEL: "", **labels}.items()]
        with engine_errors(f"{image} could not be saved", "free some disk space on the engine"):
            self._running_container.commit(repository=name, tag=tag, changes=settings)
        return True

    def run_services(
        self, services: Sequence[CheckService], seconds: float, cancelled: Callable[[], bool]
    ) -> AbstractContextManager[None]:
        """Run services in containers that share the sandbox's network; see `services.py`."""
        container = self._running_container.id or ""
        sandbox = ServiceHost(self._client, self._toolbox, self._spec, container)
        return run_service_containers(sandbox, services, seconds, cancelled)

    @property
    def browser_image(self) -> str | None:
        """The image that `start_browser` starts; "" if there is none."""
        return self._spec.browser_image

    def start_browser(self, proxy_port: int) -> BrowserProcess:
        """Start a browser that shares the sandbox's network; see `browser.py`."""
        container = self._running_container.id or ""
        sandbox = ServiceHost(self._client, self._toolbox, self._spec, container)
        return BrowserContainer(sandbox, proxy_port)

    @property
    def _running_container(self) -> Container:
        if self._container is None:
            raise SandboxError("the sandbox's container is not running", "start the run again")
        return self._container

    def _start(self) -> None:
        """Create and start the container; fill the toolbox volume if the start fails.

        The container's first program is the last file of the toolbox, so a failed start may mean an
        incomplete volume. The volume is then filled and the start repeated, up to twice, because
        the filling of another version may have just removed the volume.
        """
        for _ in range(2):
            try:
                return self._start_once()
            except SandboxError:
                self.__exit__()
                fill_volume(self._client, self._toolbox, self._spec.image)
        return self._start_once()

    def _start_once(self) -> None:
        with engine_errors(
            "the sandbox's container could not be started",
            "check that the image is a Linux image for the engine's processor, and the limits of "
            "memory, cpus and pids",
        ):
            self._container = self._client.containers.create(self._spec.image, **self._options())
            self._container.start()

    def _options(self) -> dict[str, Any]:
        spec = self._spec
        return {
            **confinement(spec),
            "entrypoint": [ENTRY, "-I", "-S", SOCKET_FILTER],
            "command": [],
            "environment": spec.environment,
            "labels": {RUN_LABEL: spec.run},
            "mounts": [toolbox_mount(self._toolbox, read_only=True)],
            "network_mode": "none",
            "extra_hosts": dict.fromkeys(self._local_names, "127.0.0.1"),
        }

    def _make_folders(self, owner: tuple[int, int]) -> None:
        """Create WORKSPACE and SCRATCH, owned by the image's user, and /tmp.

        Without capabilities even root can write only to what it owns.
        """
        folders = [(folder.lstrip("/"), mode) for folder, mode in _FOLDERS]
        self.put_archive("/", _tar_of_folders(folders, owner))

    def _user_ids(self, user: str) -> tuple[int, int]:
        """Return the user and group id for the image's `User` setting.

        If it isn't root, a program is run in the container to resolve the name. Raises SandboxError
        if that fails.
        """
        if user in ("", "0", "root", "0:0", "root:root"):
            return 0, 0
        with engine_errors(f"the image's user {user!r} can't run a program", _TRANSFER_ADVICE):
            answer: Any = self._running_container.exec_run([PYTHON, "-I", "-S", "-c", _PRINT_IDS])
        try:
            uid, gid = (int(part) for part in answer.output.split())
        except ValueError as error:
            raise SandboxError(
                f"the image's user {user!r} can't run a program: {answer.output[:200]!r}",
                "name another image with RESOLVER_IMAGE or `image` in .github/resolver.yml",
            ) from error
        return uid, gid


def _tar_of_folders(folders: Sequence[tuple[str, int]], owner: tuple[int, int]) -> bytes:
    """Return a tar of empty folders. `owner` owns those that not everybody may write to."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, mode in folders:
            member = tarfile.TarInfo(name)
            member.type, member.mode = tarfile.DIRTYPE, mode
            if mode == 0o755:
                member.uid, member.gid = owner
            tar.addfile(member)
    return buffer.getvalue()


@contextmanager
def _container_errors(
    container: Container, what: str, next_step: str = _TRANSFER_ADVICE
) -> Iterator[None]:
    """Raise the errors of `engine_errors`, as SandboxLost if the container has ended."""
    try:
        with engine_errors(what, next_step):
            yield
    except SandboxError as error:
        if _has_ended(container):
            raise SandboxLost(error.what, error.next_step) from error
        raise


def _has_ended(container: Container) -> bool:
    """Return True if the container is not running. False if the engine does not answer."""
    with suppress(SandboxError), engine_errors("the container can't be found", ""):
        assert container.client is not None, "it was created by a client"
        return not container.client.api.containers(filters={"id": container.id})
    return False


class _WatchedChannel(DockerChannel):
    """The wire of a container that the disk watch may kill for a reason unknown to the server."""

    def __init__(self, connection: Any, watch: DiskWatch) -> None:
        super().__init__(connection)
        self._watch = watch

    def exit_details(self) -> str:
        """Return why the container was killed, or else the end of the server's stderr."""
        return self._watch.reason or super().exit_details()


STARTING_PERIOD: Final = timedelta(minutes=5)
"""Age below which a container may belong to a run that is about to use it."""


def idle_containers(client: DockerClient, now: datetime) -> "list[Container]":
    """Return the containers of runs and of toolbox fillings that are no longer in use.

    A running run is recognized by its action server, which runs as an exec in the container.
    """
    labels = (RUN_LABEL, TOOLBOX_LABEL)
    containers = [found for label in labels for found in labeled_containers(client, label)]
    active = {candidate.id for candidate in containers if not _is_idle(candidate, now)}
    # A service is in use as long as the sandbox that it belongs to.
    return [
        candidate
        for candidate in containers
        if candidate.id not in active and candidate.labels.get(SERVICE_LABEL) not in active
    ]


def remove_toolboxes(client: DockerClient, toolbox: Toolbox, before: datetime) -> list[str]:
    """Remove the toolbox volumes of other versions made before that time; return their names."""
    with engine_errors("the engine can't list its volumes", "check it with `docker volume ls`"):
        names_before = {v.name for v in client.volumes.list(filters={"label": TOOLBOX_LABEL})}
        remove_other_versions(client, toolbox, before)
        names_after = {v.name for v in client.volumes.list(filters={"label": TOOLBOX_LABEL})}
    return sorted(names_before - names_after)


def _is_idle(container: Container, now: datetime) -> bool:
    """Return True if the container is old enough and no exec runs in it."""
    creation_time = datetime.fromisoformat(f"{container.attrs['Created'][:19]}+00:00")
    if now - creation_time < STARTING_PERIOD:
        return False
    return not container.attrs.get("ExecIDs")
