"""The protocols `Machine` and `Channel` between `Runtime` and the places a sandbox runs in.

A `Machine` starts and stops a sandbox, a `Channel` carries the wire. `Runtime` (runtime.py) works
with any machine; docker.py and local.py implement it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

from pydantic import BaseModel, ConfigDict, Field

from resolver.errors import ServiceUnavailable
from resolver.models.verification import CheckService


class SandboxSpec(BaseModel):
    """Properties and limits of a machine. Holds no secret: the sandbox can see all of it."""

    model_config = ConfigDict(frozen=True)

    image: str = Field(description="Docker image; not used by the local machine.")
    run: str = Field(description="Id of the run, put on container and volume labels.")
    memory: str = Field(default="4g", description="Memory limit, Docker notation.")
    cpus: float = 2.0
    pids: int = Field(default=1024, description="Maximum number of processes and threads.")
    disk: int = Field(
        default=10 * 10**9, description="Maximum number of bytes that may be written in it.", gt=0
    )
    environment: dict[str, str] = Field(
        default={}, description="Additional environment variables in the sandbox."
    )
    browser_image: str | None = Field(
        default=None, description="Image with Playwright's MCP server; None for no browser."
    )
    egress: tuple[str, ...] = Field(
        default=(),
        description="What the run may reach, as AllowList reads it; where there is anything, the "
        "machine starts the server with `--proxy`.",
    )


class Channel(Protocol):
    """A byte stream to the action server's stdin and from its stdout."""

    def send(self, data: bytes) -> None:
        """Write all the data. Raises SandboxError if the other end is gone."""
        ...

    def receive(self) -> bytes:
        """Return the next bytes of stdout, b"" at the end."""
        ...

    def close(self) -> None:
        """Close the connection; a waiting `receive` returns b"" then.

        May be called more than once.
        """
        ...

    def exit_details(self) -> str:
        """Return the end of the server's stderr for an error message, "" if there is none."""
        ...


BROWSER_OPTIONS: Final = (
    "--headless",
    "--isolated",
    # Chromium's own sandbox needs user namespaces or a set-uid program, which a container without
    # privileges does not have. A hostile page is confined by what confines the agent's programs.
    "--no-sandbox",
    "--no-webmcp",  # a page can't offer tools to the model
    "--codegen=none",
)
"""Options of Playwright's MCP server."""


class BrowserProcess(Protocol):
    """The input and output of a browser's MCP server. Two threads may read and write at once."""

    def read(self) -> bytes:
        """Return the next output, waiting for it; b"" if the server has ended."""
        ...

    def write(self, data: bytes) -> None:
        """Write to the server's input. Raises SandboxError if that fails."""
        ...

    def close(self) -> None:
        """End the server and its browser. May be called more than once."""
        ...

    @property
    def exit_details(self) -> str:
        """The end of what the server wrote to standard error."""
        ...


NOT_SEPARATED: Final = "NOT separated: "
"""Begins the part of an `isolation` line that says what a sandbox shares with its host."""


def can_change_host_files(isolation: str) -> bool:
    """Return True if the commands of a sandbox may change files that other sandboxes read too."""
    return f"{NOT_SEPARATED}files," in isolation


class Machine(Protocol):
    """A place that runs the action server. Used as a context manager: leaving stops it."""

    isolation: str
    """One line for the log and for people: what separates the sandbox from the host."""

    def __enter__(self) -> "Machine": ...

    def __exit__(self, *exc: object) -> None:
        """Stop everything and have it removed, also after an error. The removal may end later."""
        ...

    def connect(self) -> Channel:
        """Start the action server and return its stdin and stdout."""
        ...

    def put_archive(self, path: str, tar: bytes | Iterator[bytes]) -> None:
        """Unpack an uncompressed tar stream below the absolute sandbox path `path`."""
        ...

    def get_archive(self, path: str) -> Iterator[bytes]:
        """Return the file or folder at the absolute sandbox path `path` as a tar stream."""
        ...

    def save(self, image: str, labels: Mapping[str, str]) -> bool:
        """Save the files as an image of that name. Return False if the machine has no images."""
        ...

    def run_services(
        self, services: Sequence[CheckService], seconds: float, cancelled: Callable[[], bool]
    ) -> AbstractContextManager[None]:
        """Run services alongside the sandbox while the context is open, and wait until they listen.

        seconds: maximum time for their start. cancelled: returns True if the wait is to end.
        Raises ServiceUnavailable.
        """
        ...

    def start_browser(self, proxy_port: int) -> BrowserProcess:
        """Start the server of `browser_image` in the sandbox's network. Raises SandboxError.

        proxy_port: port of the sandbox's proxy on loopback; 0 if there is none.
        """
        ...

    @property
    def browser_image(self) -> str | None:
        """The image that `start_browser` starts; None if the machine can start none."""
        ...

    @property
    def scratch(self) -> str:
        """Absolute sandbox path of a folder outside the repository for bundles and long outputs."""
        ...


def refuse_services(services: Sequence[CheckService], runtime: str) -> AbstractContextManager[None]:
    """Return a context for no services, for a machine that can't run any.

    Raises ServiceUnavailable if there are services. runtime: name of the machine's runtime.
    """
    if services:
        raise ServiceUnavailable(
            f"the {runtime} runtime can't start services", "use the docker runtime"
        )
    return nullcontext()
