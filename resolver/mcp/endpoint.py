"""What there is at the other end: a program behind a pair of pipes, or an address."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


class Pipe(Protocol):
    """A server's standard input and output. Reading and writing may be done by two threads."""

    def read(self) -> bytes:
        """Its next output; b"" when it has ended. Waits."""
        ...

    def write(self, data: bytes) -> None:
        """Give it input. Raises SandboxError or OSError when it takes none."""
        ...

    def close(self) -> None:
        """End it with all that it has started; a waiting `read` returns b"". May be repeated."""
        ...

    @property
    def last_words(self) -> str:
        """The end of what it wrote to standard error."""
        ...


Launch = Callable[[], Pipe]
"""Starts a server. Raises OSError or ResolverError where it can't be."""


@dataclass(frozen=True)
class Address:
    """A server that runs elsewhere. headers: sent with every request; they hold credentials."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Endpoint:
    """One server of a run.

    allows: whether a tool of that name may be used. timeout: seconds that a call may take without
    a sign of life.
    """

    name: str
    way: Launch | Address
    allows: Callable[[str], bool]
    timeout: float
