"""Models of the MCP servers that settings declare, and the choice of those that a run gets.

The operator's servers are commands on the host or URLs, with credentials. A repository may disable
or narrow those, and may declare commands of its own, which run in the sandbox and get no secrets.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Generic, TypeVar
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

MAX_SERVERS = 16
"""Maximum number of servers that an operator can declare."""
MAX_SANDBOX_SERVERS = 6
"""Maximum number of a repository's own servers.

Must be less than the number of background programs that a sandbox allows.
"""

_MIN_SECRET_LENGTH = 8
"""Minimum length of a secret. Shorter values are taken for plain settings, like `info` or `1`."""

_MIN_KEY_SEGMENT_LENGTH = 20
"""Minimum length of a URL path segment that is taken for a key; some services put one there."""

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_SCHEME = re.compile(r"^(?:Bearer|Basic|Token|ApiKey)\s+", re.IGNORECASE)


class _DeclaredServer(BaseModel):
    """Fields that all declared servers have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    args: tuple[str, ...] = Field(default=(), description="Arguments of the command.")
    tools: Tools = Field(
        default=None,
        description="Names of the server's tools that may be used; `*` matches any text.",
    )
    timeout: float = Field(
        default=60.0, gt=0, le=3600, description="Seconds a call may take without progress."
    )


class McpServer(_DeclaredServer):
    """A server of the operator: a command on the host, or a URL (streamable HTTP)."""

    command: str = Field(default="", description="Program that is started on the host.")
    env: dict[str, SecretStr] = Field(
        default={}, description="Environment variables of the command that hold secrets."
    )
    variables: dict[str, str] = Field(
        default={}, description="Environment variables of the command that hold no secret."
    )
    url: str = Field(
        default="", repr=False, description="Address of a server that is already running."
    )
    headers: dict[str, SecretStr] = Field(default={}, description="Headers of every request.")
    plain_http: bool = Field(
        default=False,
        description="Allow sending the headers to another machine without TLS (`http:`).",
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
        """Values that must be redacted everywhere.

        These are the values of `env` and of the headers, the latter also without their scheme
        (`Bearer`), the query parameters of the URL and its long path segments, raw and
        percent-decoded.
        """
        candidates = [v.get_secret_value() for v in self.env.values()]
        for header in self.headers.values():
            value = header.get_secret_value()
            candidates += [value, _SCHEME.sub("", value)]
        parts = urlsplit(self.url)
        candidates += [value for _, value in parse_qsl(parts.query)]
        segments = [
            segment for segment in parts.path.split("/") if len(segment) >= _MIN_KEY_SEGMENT_LENGTH
        ]
        candidates += [*segments, *map(unquote, segments)]
        return tuple(
            value for value in dict.fromkeys(candidates) if len(value) >= _MIN_SECRET_LENGTH
        )


class RepositoryServer(_DeclaredServer):
    """A server as a repository configures it: one of its own, or one of the operator's."""

    use: bool = Field(default=True, description="False disables the operator's server.")
    command: str = Field(
        default="", description="Program of the repository's own server, started in the sandbox."
    )

    @model_validator(mode="after")
    def _args_have_a_command(self) -> "RepositoryServer":
        if self.args and not self.command:
            raise ValueError("args belong to a command")
        return self


def _from_boolean(value: Any) -> Any:
    return {"use": value} if isinstance(value, bool) else value


McpServers = Annotated[dict[ServerName, McpServer], Field(max_length=MAX_SERVERS)]
RepositoryServers = dict[ServerName, Annotated[RepositoryServer, BeforeValidator(_from_boolean)]]


Declared = TypeVar("Declared", McpServer, RepositoryServer)


@dataclass(frozen=True)
class ChosenServer(Generic[Declared]):
    """A server that a run uses.

    narrowed: the repository's list of allowed tools of an operator's server, None if it gives none.
    """

    name: str
    server: Declared
    narrowed: Tools = None

    def allows(self, tool: str) -> bool:
        """Return True if all lists allow the tool."""
        return is_allowed_tool(tool, self.server.tools) and is_allowed_tool(tool, self.narrowed)


@dataclass(frozen=True)
class ChosenServers:
    """The operator's servers that a run uses, those of the repository inside the sandbox, and
    warnings for a person about the choice."""

    host: tuple[ChosenServer[McpServer], ...] = ()
    inside: tuple[ChosenServer[RepositoryServer], ...] = ()
    warnings: tuple[str, ...] = ()


def choose_servers(
    operator: Mapping[str, McpServer], repository: Mapping[str, RepositoryServer]
) -> ChosenServers:
    """Return the servers that a run uses.

    A repository can disable the operator's servers and narrow their tools. It can't add a server
    outside the sandbox.
    """
    host: list[ChosenServer[McpServer]] = []
    inside: list[ChosenServer[RepositoryServer]] = []
    warnings: list[str] = []
    for name, server in operator.items():
        override = repository.get(name, RepositoryServer())
        if override.command:
            warnings.append(
                f"{name} is a server of this installation: the repository's command is not used"
            )
        if override.use:
            host.append(ChosenServer(name, server, override.tools))
    for name, declared in repository.items():
        if name in operator or not declared.use:
            continue
        if not declared.command:
            warnings.append(f"{name} is not a server of this installation")
        elif len(inside) == MAX_SANDBOX_SERVERS:
            warnings.append(
                f"{name} is left out: a repository may have at most {MAX_SANDBOX_SERVERS} servers"
            )
        else:
            inside.append(ChosenServer(name, declared))
    return ChosenServers(tuple(host), tuple(inside), tuple(warnings))


def is_allowed_tool(tool: str, patterns: Iterable[str] | None) -> bool:
    """Return True if one of the wildcard patterns allows the tool. None allows all tools."""
    return patterns is None or any(fnmatchcase(tool, pattern) for pattern in patterns)


def secrets_of(servers: Mapping[str, McpServer]) -> tuple[str, ...]:
    """Return the secrets of all servers, for the redactor."""
    return tuple(secret for server in servers.values() for secret in server.secrets)
