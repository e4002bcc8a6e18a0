"""The two protocols of this room: `Machine` starts and stops, `Channel` carries the wire.

`Runtime` (runtime.py) talks to any machine through them; docker.py and local.py are machines.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field


class SandboxSpec(BaseModel):
    """What a machine is made of and its bounds. Holds no secret: all of it is visible inside."""

    model_config = ConfigDict(frozen=True)

    image: str = Field(description="Docker image; not used by the local machine.")
    run: str = Field(description="Id of the run, put on container and volume labels.")
    memory: str = Field(default="4g", description="Memory limit, Docker notation.")
    cpus: float = 2.0
    pids: int = Field(default=1024, description="Most processes and threads.")
    disk: int = Field(default=10 * 10**9, description="Most bytes that are written in it.", gt=0)
    environment: dict[str, str] = Field(default={}, description="Extra variables inside.")
    egress: tuple[str, ...] = Field(
        default=(),
        description="What the run may reach, as AllowList reads it; where there is anything, the "
        "machine starts the server with `--proxy`.",
    )


class Channel(Protocol):
    """A byte stream to the action server's stdin and from its stdout."""

    def send(self, data: bytes) -> None:
        """Write all of it. Raises SandboxError when the other end is gone."""
        ...

    def receive(self) -> bytes:
        """Next bytes of stdout, b"" at the end."""
        ...

    def close(self) -> None:
        """End the connection; a waiting `receive` returns b"". May be called again."""
        ...

    def last_words(self) -> str:
        """The end of the server's stderr, for an error message; "" where there is none."""
        ...


class Machine(Protocol):
    """A place to run the action server in. Used as a context manager: leaving stops it."""

    isolation: str
    """One line for the log and the person: what separates the sandbox from the host."""

    def __enter__(self) -> "Machine": ...

    def __exit__(self, *exc: object) -> None:
        """Stop and remove everything, whatever happened."""
        ...

    def connect(self) -> Channel:
        """Start the action server and return its stdin/stdout."""
        ...

    def put_archive(self, path: str, tar: bytes | Iterator[bytes]) -> None:
        """Unpack an (uncompressed) tar stream below the absolute sandbox `path`."""
        ...

    def get_archive(self, path: str) -> Iterator[bytes]:
        """The file or folder at the absolute sandbox `path` as a tar stream."""
        ...

    def save(self, image: str, labels: Mapping[str, str]) -> bool:
        """Keep the files as an image of that name; False where there are no images."""
        ...

    @property
    def scratch(self) -> str:
        """Absolute sandbox path of a folder outside the repository for bundles and long outputs."""
        ...
