"""Reads the services that checks need from a compose file.

https://github.com/compose-spec/compose-spec/blob/main/05-services.md

The files belong to the repository. They choose among the images that the operator allows and set
variables; nothing of the host is mounted, and no secret is given to a service.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from resolver.config.bounded_yaml import read_yaml
from resolver.config.image_reference import ImagePattern, parse_registry_reference
from resolver.config.templates import render
from resolver.errors import UsageError
from resolver.models.verification import CheckService
from resolver.verification.check_candidates import printable
from resolver.verification.project_tree import ProjectTree, table

COMPOSE_FILES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
"""Names of the compose file in the root of a repository, in order of precedence."""

MAX_SERVICES = 5
"""Maximum number of services that run alongside one sandbox."""

_MAX_LISTED = 10
_MAX_VARIABLES = 50
_MAX_VALUE = 2_000
_MAX_PORTS = 10
_MAX_ARGUMENTS = 50

ServiceObstacle = Literal[
    "off",
    "not_allowed",
    "runtime",
    "image",
    "secret",
    "variable",
    "key",
    "port",
    "volume",
    "unknown",
    "invalid",
    "limit",
]
"""Why a service can't run alongside the sandbox.

off: the operator allows none. not_allowed: the operator doesn't allow its image. secret,
variable: a value refers to a secret, or to a variable of the host. key: it has a property that is
not supported. port: it is published on another port than it listens on. unknown: the compose file
has no such service.
"""


@dataclass(frozen=True)
class UnavailableService:
    """A service that can't run alongside the sandbox. detail: what stands in the way."""

    name: str
    obstacle: ServiceObstacle
    detail: str = ""

    def describe(self) -> str:
        """Return the name and the reason, as a part of a sentence."""
        text = render(
            "verification/unavailable_service.txt.j2",
            service=self.name,
            obstacle=self.obstacle,
            detail=self.detail,
        )
        return printable(text.strip())


@dataclass(frozen=True)
class ServicePolicy:
    """The services that the operator allows.

    images: patterns of their images. is_supported: False if the runtime can't start services.
    """

    images: tuple[str, ...] = ()
    is_supported: bool = True

    def decide(self, service: CheckService) -> CheckService | UnavailableService:
        """Return the service with the complete reference of its image, or why it can't run."""
        try:
            reference = parse_registry_reference(service.image, f"the service {service.name}")
        except UsageError:
            return UnavailableService(service.name, "image", service.image[:100])
        patterns = map(ImagePattern.parse, self.images)
        if not any(pattern.matches(reference) for pattern in patterns):
            return UnavailableService(service.name, "not_allowed", service.image)
        if not self.is_supported:
            return UnavailableService(service.name, "runtime")
        return service.model_copy(update={"image": reference})


NO_SERVICES = ServicePolicy()

CheckServices = Sequence[CheckService | UnavailableService]


class _Unreadable(Exception):
    """A service that can't run as it is written."""

    def __init__(self, obstacle: ServiceObstacle, detail: str = "") -> None:
        super().__init__(obstacle)
        self.obstacle: ServiceObstacle = obstacle
        self.detail = detail[:100]


def read_compose_services(
    tree: ProjectTree, names: Sequence[str], policy: ServicePolicy
) -> CheckServices:
    """Return the services of these names in the compose file of a repository."""
    path = next((path for path in COMPOSE_FILES if path in tree.names.get("", ())), "")
    try:
        data = read_yaml(tree.read(path) or b"") if path else None
    except yaml.YAMLError:
        data = None
    services = table(data, "services")
    return _read_all([(name, services.get(name)) for name in names], _compose_service, policy)


def _read_all(
    services: Sequence[tuple[str, Any]],
    read: Callable[[str, Any], CheckService],
    policy: ServicePolicy,
) -> CheckServices:
    found: list[CheckService | UnavailableService] = []
    for name, data in services:
        if not policy.images:
            found.append(UnavailableService(name[:63], "off"))
            continue
        try:
            found.append(policy.decide(read(name, data)))
        except _Unreadable as reason:
            found.append(UnavailableService(name[:63], reason.obstacle, reason.detail))
    ports = [
        port for service in found if isinstance(service, CheckService) for port in service.ports
    ]
    shared = next((port for port in ports if ports.count(port) > 1), None)
    if shared is not None:  # they have one loopback interface between them
        return [UnavailableService(found[0].name, "port", str(shared))]
    if len(found) > MAX_SERVICES:
        return [UnavailableService(found[0].name, "limit", str(MAX_SERVICES))]
    return found


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_COMPOSE_KEYS = frozenset({
    "image", "environment", "ports", "expose", "command", "volumes", "healthcheck", "restart",
    "container_name", "hostname", "networks", "depends_on", "profiles", "labels", "logging",
    "shm_size", "mem_limit", "cpus", "platform", "pull_policy", "stop_grace_period", "init", "tty",
    "stdin_open", "tmpfs", "annotations", "deploy",
})  # fmt: skip
"""Properties that are read, or that have no effect on what a check sees."""


def _compose_service(name: str, data: Any) -> CheckService:
    if data is None:
        raise _Unreadable("unknown")
    _require_name(name, data)
    other = next((str(key) for key in data if key not in _COMPOSE_KEYS), None)
    if other is not None:
        raise _Unreadable("secret" if other == "secrets" else "key", other)
    for volume in _list(data.get("volumes")):
        source = volume.get("source") if isinstance(volume, dict) else str(volume)
        if str(source).startswith(("/", ".", "~", "$")) and (
            isinstance(volume, dict) or ":" in str(volume)
        ):
            raise _Unreadable("volume", str(source))
    environment = _environment(data.get("environment"))
    command = data.get("command")
    if isinstance(command, str):
        try:
            command = shlex.split(command[:_MAX_VALUE])
        except ValueError:
            raise _Unreadable("invalid", "command") from None
    return CheckService(
        name=name,
        image=_interpolated(str(data.get("image") or "")),
        environment={key: _interpolated(value) for key, value in environment.items()},
        ports=_ports([*_list(data.get("ports")), *_list(data.get("expose"))], _interpolated),
        command=tuple(_interpolated(str(word)) for word in _list(command)[:_MAX_ARGUMENTS]),
    )


_INTERPOLATION = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<name>\w+)|\{(?P<braced>\w+)(?::?-(?P<default>[^{}$]*))?\}|(?P<other>))"
)


def _interpolated(text: str) -> str:
    """Return a text of a compose file with the defaults of its variables.

    https://github.com/compose-spec/compose-spec/blob/main/12-interpolation.md
    Raises _Unreadable for a variable without a default: those of the host are not used.
    """

    def value(found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        if found["default"] is None:
            raise _Unreadable("variable", found["name"] or found["braced"] or text)
        return found["default"]

    return _INTERPOLATION.sub(value, text[:_MAX_VALUE])


def _require_name(name: str, data: Any) -> None:
    if not isinstance(data, dict) or not _NAME.fullmatch(name):
        raise _Unreadable("invalid", name)


def _list(data: Any) -> list[Any]:
    return data if isinstance(data, list) else [] if data is None else [data]


def _environment(data: Any) -> dict[str, str]:
    """Return the variables of a mapping, or of a list of `NAME=VALUE`."""
    pairs: list[tuple[str, Any]] = (
        [(str(key), value) for key, value in data.items()]
        if isinstance(data, dict)
        else [_variable(str(variable)) for variable in _list(data)]
    )
    if len(pairs) > _MAX_VARIABLES:
        raise _Unreadable("invalid", "environment")
    return {key: _variable_value(key, value) for key, value in pairs}


def _variable(line: str) -> tuple[str, str | None]:
    name, equals, value = line.partition("=")
    return name, value if equals else None


def _variable_value(name: str, value: Any) -> str:
    if value is None:  # the value is that of the host's variable
        raise _Unreadable("variable", name)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    is_plain = isinstance(value, str | int | float) and len(text) <= _MAX_VALUE
    if not is_plain or "\0" in text or not re.fullmatch(r"[A-Za-z_][\w.-]{0,100}", name):
        raise _Unreadable("invalid", name)
    return text


_PORT = re.compile(
    r"(?:(?:[\d.]+:|\[[\da-f:]+\]:)?(?P<published>\d{1,5}):)?(?P<target>\d{1,5})(?:/tcp)?"
)


def _ports(data: Any, insert: Callable[[str], str]) -> tuple[int, ...]:
    """Return the ports that a service listens on."""
    ports = [_port(port, insert) for port in _list(data)[: _MAX_PORTS + 1]]
    if len(ports) > _MAX_PORTS:
        raise _Unreadable("invalid", "ports")
    return tuple(dict.fromkeys(ports))


def _port(data: Any, insert: Callable[[str], str]) -> int:
    if isinstance(data, dict):
        published, target = data.get("published"), data.get("target")
        data = f"{published}:{target}" if published is not None else target
    text = insert(str(data)[:100])
    match = _PORT.fullmatch(text)
    if match is None or not 0 < int(match["target"]) < 65_536:
        raise _Unreadable("invalid", text)
    if match["published"] and int(match["published"]) != int(match["target"]):
        raise _Unreadable("port", text)
    return int(match["target"])


def unavailable_of(found: CheckServices) -> Iterator[UnavailableService]:
    """Yield the services that can't run."""
    return (service for service in found if isinstance(service, UnavailableService))


def available_of(found: CheckServices) -> tuple[CheckService, ...]:
    """Return the services that can run."""
    return tuple(service for service in found if isinstance(service, CheckService))
