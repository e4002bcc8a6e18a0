"""Services alongside a Docker sandbox: databases, caches and queues that a check needs.

A service shares the network of the sandbox (`network_mode: container:ID`), which is a loopback
interface and nothing else: the check reaches the service at `localhost` as in a workflow job, and
neither of them reaches anything outside. A service ends when the connection to its stdin does, so
it doesn't outlive the process of the host that has started it.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from docker import DockerClient
from docker.models.containers import Container

from resolver.errors import SandboxError, ServiceUnavailable
from resolver.models.verification import CheckService
from resolver.runtime.base import SandboxSpec
from resolver.runtime.channel import DockerChannel
from resolver.runtime.disk import DiskWatch
from resolver.runtime.engine import (
    RUN_LABEL,
    confinement,
    engine_errors,
    image_settings,
    remove_container,
    watch_disk,
)
from resolver.runtime.toolbox import BASH, ENTRY, PYTHON, SOCKET_FILTER, Toolbox
from resolver.runtime.volume import toolbox_mount

SERVICE_LABEL: Final = "resolver.service-of"
"""Label on the container of a service; its value is the id of the sandbox's container."""

START_SECONDS: Final = 60.0
"""Maximum time until all services of a check listen on their ports."""

SHARED_MEMORY: Final = "256m"
"""Size of /dev/shm, which databases use for their caches."""

CAPABILITIES: Final = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID")
"""Capabilities that images of databases need to prepare their folder and to change their user."""

_KEPT_OUTPUT: Final = 2_000
_POLL_SECONDS: Final = 0.1

# The shell is the container's first process. It ends with the service or with its own stdin, which
# the host holds open, and the kernel then ends everything in the container.
_RUN_SERVICE: Final = 'exec 3<&0; "$@" </dev/null 3<&- & { read -r _ <&3; } & wait -n'
FILTERED: Final = (ENTRY, "-I", "-S", SOCKET_FILTER)
"""Begins the command of a container whose programs open sockets of the usual families only."""

_PROBE: Final = """
import socket, sys, time
end = time.monotonic() + float(sys.argv[1])
def listens(port):
    try:
        socket.create_connection(("127.0.0.1", int(port)), 1).close()
    except OSError:
        return False
    return True
for ports in sys.argv[2:]:
    while not any(map(listens, ports.split(","))):
        if time.monotonic() > end:
            sys.exit(1)
        time.sleep(0.1)
"""


@dataclass(frozen=True)
class ServiceHost:
    """The sandbox that services belong to. container: id of its container."""

    client: DockerClient
    toolbox: Toolbox
    spec: SandboxSpec
    container: str


@contextmanager
def run_service_containers(
    sandbox: ServiceHost,
    services: Sequence[CheckService],
    seconds: float,
    cancelled: Callable[[], bool],
) -> Iterator[None]:
    """Run the services while the block runs; see `Machine.run_services`.

    Each has the limits of the sandbox. Raises ServiceUnavailable.
    """
    if not services:
        yield
        return
    with ExitStack() as running:
        end = time.monotonic() + min(seconds, START_SECONDS)
        started = [
            running.enter_context(_ServiceContainer(sandbox, service)) for service in services
        ]
        if any(container.ports for container in started):
            with _probe(sandbox, started, max(1.0, end - time.monotonic())) as probe:
                _wait_until_ready(probe, started, cancelled)
        yield


class _ServiceContainer:
    """A running service. Its output is read until it ends, and the end of it is kept."""

    def __init__(self, sandbox: ServiceHost, service: CheckService) -> None:
        self._sandbox = sandbox
        self._container: Container | None = None
        self._watch: DiskWatch | None = None
        self._output = b""
        self.service = service
        self.ended = threading.Event()
        self.ports: tuple[str, ...] = ()
        """Lists of ports that are separated by commas. The service has to listen on one of each."""

    def __enter__(self) -> "_ServiceContainer":
        try:
            self._start()
        except SandboxError as error:
            self.__exit__()
            raise ServiceUnavailable(
                f"the service {self.service.name} could not be started: {error.what}",
                error.next_step,
            ) from error
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        if self._watch is not None:
            self._watch.close()
        container, self._container = self._container, None
        if container is not None:
            remove_container(container)

    def output(self) -> str:
        """Return the end of what the service has printed."""
        return self._output.decode(errors="replace").strip()

    def _start(self) -> None:
        client, service = self._sandbox.client, self.service
        settings = image_settings(client, service.image)
        command = _command(settings, service)
        if not command:
            raise SandboxError("its image starts no program", "name another image")
        exposed = [port.partition("/")[0] for port in settings.get("ExposedPorts") or ()]
        self.ports = tuple(map(str, service.ports)) or ((",".join(exposed),) if exposed else ())
        with engine_errors("the engine refused it", "check the limits of the sandbox"):
            self._container = client.containers.create(
                service.image, command, **self._options(settings)
            )
            parameters = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            connection = self._container.attach_socket(params=parameters)
            channel = DockerChannel(connection)
            reader = threading.Thread(target=self._read, args=(channel,), daemon=True)
            reader.start()
            self._container.start()
        self._watch = watch_disk(client, self._container, self._sandbox.spec.disk)

    def _options(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **service_options(self._sandbox),
            "entrypoint": [*FILTERED, BASH, "-p", "-c", _RUN_SERVICE, "service"],
            "environment": self.service.environment,
            "stdin_open": True,
            "cap_add": list(CAPABILITIES),
            "shm_size": SHARED_MEMORY,
            # In memory, so that what a service stores counts towards a limit.
            "tmpfs": dict.fromkeys(settings.get("Volumes") or (), ""),
        }

    def _read(self, channel: DockerChannel) -> None:
        while data := channel.receive():
            self._output = (self._output + data)[-_KEPT_OUTPUT:]
        if details := channel.exit_details():
            self._output = (self._output + b"\n" + details.encode())[-_KEPT_OUTPUT:]
        self.ended.set()
        channel.close()


def _command(settings: Mapping[str, Any], service: CheckService) -> list[str]:
    arguments = list(service.command) or list(settings.get("Cmd") or ())
    return [*(settings.get("Entrypoint") or ()), *arguments]


def service_options(sandbox: ServiceHost) -> dict[str, Any]:
    """Return options for a container that shares the sandbox's network, limits and run."""
    return {
        **confinement(sandbox.spec),
        "labels": {RUN_LABEL: sandbox.spec.run, SERVICE_LABEL: sandbox.container},
        "mounts": [toolbox_mount(sandbox.toolbox, read_only=True)],
        "network_mode": f"container:{sandbox.container}",
    }


@contextmanager
def _probe(
    sandbox: ServiceHost, services: Sequence[_ServiceContainer], seconds: float
) -> Iterator[Container]:
    """Start a container that ends with exit code 0 as soon as all services listen.

    It is a container of its own, so that no program of the sandbox can trace it.
    """
    ports = [port for service in services for port in service.ports]
    options = {**service_options(sandbox), "auto_remove": False}
    with engine_errors("the engine can't look for the services", "start the run again"):
        container = sandbox.client.containers.create(
            sandbox.spec.image,
            [PYTHON, "-I", "-S", "-c", _PROBE, str(seconds), *ports],
            entrypoint=list(FILTERED),
            **options,
        )
    try:
        with engine_errors("the engine can't look for the services", "start the run again"):
            container.start()
        yield container
    finally:
        remove_container(container)


def _wait_until_ready(
    probe: Container, services: Sequence[_ServiceContainer], cancelled: Callable[[], bool]
) -> None:
    while not cancelled():
        for service in services:
            if service.ended.is_set():
                raise _failure(service, "it ended")
        with engine_errors("the engine can't look for the services", "start the run again"):
            probe.reload()
        if probe.status == "exited":
            if probe.attrs["State"]["ExitCode"] == 0:
                return
            raise _failure(services[-1], "the services did not listen on their ports in time")
        services[0].ended.wait(_POLL_SECONDS)
    raise ServiceUnavailable("the wait for services was interrupted", "start the run again")


def _failure(container: _ServiceContainer, why: str) -> ServiceUnavailable:
    output = container.output()
    name = container.service.name
    shown = f". The end of its output:\n{output}" if output else ""
    return ServiceUnavailable(
        f"the service {name} is not available: {why}{shown}",
        "check its image, variables and ports",
    )
