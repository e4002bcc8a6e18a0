"""A container as the sandbox: `DockerMachine`.

Nothing of the host is mounted; files go in and out as tar streams, the wire is one long exec, so
an engine on another machine works the same.
"""

import io
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from resolver.errors import SandboxError
from resolver.runtime.base import Channel, SandboxSpec
from resolver.runtime.channel import DockerChannel
from resolver.runtime.disk import DiskWatch
from resolver.runtime.engine import RUN_LABEL, engine_errors, image_settings, remove_container
from resolver.runtime.toolbox import BASH, ENTRY, GIT, PREFIX, PYTHON, SERVER, Toolbox
from resolver.runtime.volume import fill_volume, toolbox_mount

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

WORKSPACE: Final = "/workspace"
SCRATCH: Final = "/var/tmp/resolver"  # noqa: S108 (inside the container)

_CPU_PERIOD: Final = 100_000

# The server ends when its stdin does, as when the host was killed; the container ends with it.
# All of it is behind the filter of sockets, and so is the first process: a program that can trace
# one that isn't could have it open any.
_CONFINE: Final = f"{PREFIX}/sandbox/socket_filter.py"
# The shell that waits closes its own ends of the wire: any program could open those.
_END_ALL: Final = '"$@" <&0 & exec <&- >&-; wait $!; kill 1'
_SERVE: Final = (PYTHON, "-I", "-S", _CONFINE, BASH, "-p", "-c", _END_ALL, "serve")
_TRANSFER: Final = "the sandbox may be out of disk space or memory; start the run again"
_WHO: Final = "import os;print(os.getuid(),os.getgid())"


class DockerMachine:
    """A container of `spec.image` with no network, no capabilities and bounded resources."""

    def __init__(self, spec: SandboxSpec, toolbox: Toolbox, client: "DockerClient") -> None:
        self._spec = spec
        self._toolbox = toolbox
        self._client = client
        self._container: Container | None = None
        self._watch: DiskWatch | None = None
        way_out = f" but a proxy to {', '.join(spec.egress)}" if spec.egress else ""
        self.isolation = (
            f"Docker container: no network{way_out}, no capabilities, no new privileges, nothing "
            "of the host mounted, bounded memory, processors, processes and disk"
        )

    @property
    def scratch(self) -> str:
        """Folder outside the repository for bundles and long outputs."""
        return SCRATCH

    def __enter__(self) -> "DockerMachine":
        settings = image_settings(self._client, self._spec.image)
        try:
            self._start()
            self._make_folders(str(settings.get("User") or ""))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        """Remove the container, whatever happened."""
        if self._watch is not None:
            self._watch.close()
        container, self._container = self._container, None
        if container is not None:
            remove_container(container)

    def connect(self) -> Channel:
        """Start the action server with one long exec and return its stdin and stdout."""
        api = self._client.api
        places = ["--root", WORKSPACE, "--scratch", SCRATCH, "--bash", BASH, "--git", GIT]
        more = ["--tools", f"{PREFIX}/bin", "--keep-environment"]
        more += ["--proxy"] if self._spec.egress else []
        command = [*_SERVE, PYTHON, "-I", SERVER, *places, *more]
        with engine_errors(
            "the action server could not be started in the container",
            "check that a container of the image stays up on this engine",
        ):
            made = api.exec_create(
                self._running.id, command, stdin=True, tty=False, workdir=WORKSPACE
            )
            connection = api.exec_start(made["Id"], socket=True)
        self._watch = DiskWatch(self._written, self._kill, self._spec.disk)
        return _WatchedChannel(connection, self._watch)

    def put_archive(self, path: str, tar: bytes | Iterator[bytes]) -> None:
        """Unpack a tar stream below `path`."""
        with engine_errors(f"{path} could not be put into the sandbox", _TRANSFER):
            self._running.put_archive(path, tar)

    def get_archive(self, path: str) -> Iterator[bytes]:
        """The file or folder as a tar stream. A symlink is itself, never what it points to."""
        with engine_errors(f"{path} could not be taken out of the sandbox", _TRANSFER):
            stream, _ = self._running.get_archive(path)
            yield from stream

    def save(self, image: str, labels: Mapping[str, str]) -> bool:
        """Commit the container as `image`, without what a run alone needs."""
        name, _, tag = image.partition(":")
        settings = [f"LABEL {name}={value}" for name, value in {RUN_LABEL: "", **labels}.items()]
        with engine_errors(f"{image} could not be saved", "free some disk space on the engine"):
            self._running.commit(repository=name, tag=tag, changes=settings)
        return True

    def _written(self) -> int:
        """Bytes in the container's own layer, as the engine counts them."""
        with engine_errors(
            "the engine can't measure its container", "check it with `docker ps -s`"
        ):
            (found,) = self._client.api.containers(
                all=True, size=True, filters={"id": self._running.id}
            ) or [{}]
        return int(found.get("SizeRw") or 0)

    def _kill(self) -> None:
        with suppress(SandboxError), engine_errors("the container can't be killed", _TRANSFER):
            self._running.kill()

    @property
    def _running(self) -> "Container":
        if self._container is None:
            raise SandboxError("the sandbox's container is not running", "start the run again")
        return self._container

    def _start(self) -> None:
        """Create and start the container. Its first program is the toolbox's last file, so a
        start that fails may mean an unfilled volume: fill it and try again, and once more for a
        volume that another version's filling has just removed."""
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
            "entrypoint": [ENTRY, "-I", "-S", _CONFINE],
            "command": [],
            "healthcheck": {"test": ["NONE"]},
            "environment": dict(spec.environment),
            "labels": {RUN_LABEL: spec.run},
            "mounts": [toolbox_mount(self._toolbox, read_only=True)],
            "auto_remove": True,
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "mem_limit": spec.memory,
            "memswap_limit": spec.memory,
            # Not nano_cpus: the engine refuses more of those than it has cores.
            "cpu_period": _CPU_PERIOD,
            "cpu_quota": int(spec.cpus * _CPU_PERIOD),
            "pids_limit": spec.pids,
            "ulimits": [{"Name": "fsize", "Soft": spec.disk, "Hard": spec.disk}],
        }

    def _make_folders(self, user: str) -> None:
        """WORKSPACE and SCRATCH, owned by the image's user: without capabilities even root
        writes only what it owns."""
        uid, gid = self._ids(user)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for folder, mode in (("/tmp", 0o1777), (WORKSPACE, 0o755), (SCRATCH, 0o755)):  # noqa: S108
                member = tarfile.TarInfo(folder.lstrip("/"))
                member.type, member.mode = tarfile.DIRTYPE, mode
                if mode == 0o755:
                    member.uid, member.gid = uid, gid
                tar.addfile(member)
        self.put_archive("/", packed.getvalue())

    def _ids(self, user: str) -> tuple[int, int]:
        """User and group id that the image's `User` means, asked inside where it isn't root."""
        if user in ("", "0", "root", "0:0", "root:root"):
            return 0, 0
        with engine_errors(f"the image's user {user!r} can't run a program", _TRANSFER):
            answer: Any = self._running.exec_run([PYTHON, "-I", "-S", "-c", _WHO])
        try:
            uid, gid = (int(part) for part in answer.output.split())
        except ValueError as error:
            raise SandboxError(
                f"the image's user {user!r} can't run a program: {answer.output[:200]!r}",
                "name another image with `--image`",
            ) from error
        return uid, gid


class _WatchedChannel(DockerChannel):
    """The wire of a container whose end may have a reason that the server did not know."""

    def __init__(self, connection: Any, watch: DiskWatch) -> None:
        super().__init__(connection)
        self._watch = watch

    def last_words(self) -> str:
        """Why the container was killed, else the end of the server's stderr."""
        return self._watch.reason or super().last_words()
