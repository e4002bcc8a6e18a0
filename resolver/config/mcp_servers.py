"""The MCP servers that settings declare, and which of them a run has.

The operator's are commands and addresses of the host's side, with credentials. The repository may
narrow those, and may declare programs of its own, which run in the sandbox and hold no secret.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    model_validator,
)

ServerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")]
Tools = tuple[str, ...] | None

MOST_SERVERS = 16
MOST_INSIDE = 6
"""Servers of the repository; less than the programs that a sandbox holds at once."""

_SECRET_VALUE = 8
"""Values of variables with fewer characters are settings, like `info` or `1`, not secrets."""

_SECRET_STEP = 20
"""A step of an address's path that is this long is a key, as some services have it."""

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_SCHEME = re.compile(r"^(?:Bearer|Basic|Token|ApiKey)\s+", re.IGNORECASE)


class _Declared(BaseModel):
    """What every server may have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    args: tuple[str, ...] = Field(default=(), description="Arguments of the command.")
    tools: Tools = Field(
        default=None, description="Names of its tools that may be used, `*` stands for any text."
    )
    timeout: float = Field(
        default=60.0, gt=0, le=3600, description="Seconds a call may take without a sign of life."
    )


class McpServer(_Declared):
    """A server of the operator: a command of the host, or an address (streamable HTTP)."""

    command: str = Field(default="", description="Program that is started on the host.")
    env: dict[str, SecretStr] = Field(
        default={}, description="Variables of the command that nobody else may know."
    )
    variables: dict[str, str] = Field(
        default={}, description="Variables of the command that are no secret."
    )
    url: str = Field(default="", repr=False, description="Address of a server that runs already.")
    headers: dict[str, SecretStr] = Field(default={}, description="Headers of every request.")
    plain_http: bool = Field(
        default=False, description="Send the headers to another machine without TLS (`http:`)."
    )

    @model_validator(mode="after")
    def _is_one_kind(self) -> "McpServer":
        if bool(self.command) == bool(self.url):
            raise ValueError("an MCP server has a command or a url")
        if self.command and (self.headers or self.plain_http):
            raise ValueError("headers and plain_http belong to a url")
        if self.url and (self.args or self.env or self.variables):
            raise ValueError("args, env and variables belong to a command")
        if self.url:
            self._check_url()
        return self

    def _check_url(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("the url of an MCP server begins with https:// or http://")
        if parts.username or parts.password:
            raise ValueError("credentials belong into headers, not into the url")
        exposed = parts.scheme == "http" and parts.hostname not in _LOOPBACK
        if self.headers and exposed and not self.plain_http:
            raise ValueError("headers go to another machine by https, or with plain_http: true")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What of it must never be written anywhere."""
        found = [v.get_secret_value() for v in self.env.values()]
        for header in self.headers.values():
            value = header.get_secret_value()
            found += [value, _SCHEME.sub("", value)]
        parts = urlsplit(self.url)
        found += [value for _, value in parse_qsl(parts.query)]
        steps = [step for step in parts.path.split("/") if len(step) >= _SECRET_STEP]
        found += [*steps, *map(unquote, steps)]
        return tuple(value for value in dict.fromkeys(found) if len(value) >= _SECRET_VALUE)


class RepositoryServer(_Declared):
    """What a repository says of a server: of one of its own, or of one of the operator's."""

    use: bool = Field(default=True, description="False leaves the operator's server out.")
    command: str = Field(default="", description="Program of its own, started in the sandbox.")

    @model_validator(mode="after")
    def _args_have_a_command(self) -> "RepositoryServer":
        if self.args and not self.command:
            raise ValueError("args belong to a command")
        return self


def _from_word(value: Any) -> Any:
    return {"use": value} if isinstance(value, bool) else value


McpServers = Annotated[dict[ServerName, McpServer], Field(max_length=MOST_SERVERS)]
RepositoryServers = dict[ServerName, Annotated[RepositoryServer, BeforeValidator(_from_word)]]


@dataclass(frozen=True)
class HostServer:
    """A server of the operator in a run. narrowed: the repository's own list of its tools."""

    name: str
    server: McpServer
    narrowed: Tools = None

    def allows(self, tool: str) -> bool:
        return filter_servers(tool, self.server.tools) and filter_servers(tool, self.narrowed)


@dataclass(frozen=True)
class InsideServer:
    """A server of the repository in a run."""

    name: str
    server: RepositoryServer

    def allows(self, tool: str) -> bool:
        return filter_servers(tool, self.server.tools)


@dataclass(frozen=True)
class ChosenServers:
    """The servers of a run, and what a person should know of the choice."""

    host: tuple[HostServer, ...] = ()
    inside: tuple[InsideServer, ...] = ()
    warnings: tuple[str, ...] = ()


def choose_servers(
    operator: Mapping[str, McpServer], repository: Mapping[str, RepositoryServer]
) -> ChosenServers:
    """Which servers a run has. The repository can take away from what the operator gives, and adds
    nothing to it outside of the sandbox."""
    host: list[HostServer] = []
    inside: list[InsideServer] = []
    warnings: list[str] = []
    for name, server in operator.items():
        said = repository.get(name, RepositoryServer())
        if said.command:
            warnings.append(
                f"{name} is a server of this installation: the repository's command is not used"
            )
        if said.use:
            host.append(HostServer(name, server, said.tools))
    for name, own in repository.items():
        if name in operator or not own.use:
            continue
        if not own.command:
            warnings.append(f"{name} is no server of this installation")
        elif len(inside) == MOST_INSIDE:
            warnings.append(
                f"{name} is left out: {MOST_INSIDE} servers of a repository is the most"
            )
        else:
            inside.append(InsideServer(name, own))
    return ChosenServers(tuple(host), tuple(inside), tuple(warnings))


def filter_servers(tool: str, names: Iterable[str] | None) -> bool:
    """Whether a list of names has the tool; no list has all."""
    return names is None or any(fnmatchcase(tool, name) for name in names)


def secrets_of(servers: Mapping[str, McpServer]) -> tuple[str, ...]:
    """The secrets of all servers, for the redactor."""
    return tuple(secret for server in servers.values() for secret in server.secrets)
