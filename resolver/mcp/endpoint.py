"""The address of an MCP server: a program behind a pair of pipes, or a URL."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


class Pipe(Protocol):
    """A server's standard input and output. Two threads may read and write at the same time."""

    def read(self) -> bytes:
        """Return the next output, waiting for it; b"" if the server has ended."""
        ...

    def write(self, data: bytes) -> None:
        """Write to the server's input. Raises SandboxError or OSError if that fails."""
        ...

    def close(self) -> None:
        """End the server and everything it has started; a waiting `read` returns b"" then.

        May be called more than once.
        """
        ...

    @property
    def last_words(self) -> str:
        """The end of what the server wrote to standard error."""
        ...


Launch = Callable[[], Pipe]
"""Start a server. Raises OSError or ResolverError if that fails."""


@dataclass(frozen=True)
class Address:
    """A server at a URL. headers: sent with every request; they hold credentials."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Endpoint:
    """One server of a run.

    way: how it is reached.
    allows: returns True if the tool of that name may be used.
    timeout: seconds that a call may take without a progress notification.
    """

    name: str
    way: Launch | Address
    allows: Callable[[str], bool]
    timeout: float
