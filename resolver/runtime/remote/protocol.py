"""What both ends of the remote runtime agree on: paths, sizes, times, and the JSON bodies.

A sandbox has streams: `wire` (the action server's stdin and stdout), `put` and `get` (an archive
in, an archive out). Both directions of a stream are counted in bytes. Who sends says at which byte
the piece begins, and keeps it until the other end has said that it has it; what arrives twice is
left out. So a connection may break anywhere: nothing is lost, and nothing is done twice.

    PUT    /v1/sandboxes/ID                    SandboxRequest -> SandboxState; 202 while it starts
    DELETE /v1/sandboxes/ID                    204; 202 while it is removed
    PUT    /v1/sandboxes/ID/streams/STREAM     StreamRequest -> StreamState; 202 while it starts
    POST   ..../STREAM?offset=N[&last=true]    bytes from N on -> Received
    GET    ..../STREAM?offset=N                bytes from N on, and everything before N is let go;
                                               application/json instead: the stream's End
    DELETE ..../STREAM                         204
    GET    /v1/limits                          Limits
    GET    /healthz                            answers anybody

All but the last need `Authorization: Bearer TOKEN`. Every PUT and DELETE may be said again. An
error has a Failure as its body.
"""

import re
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

PROTOCOL: Final = 1

SHORTEST_TOKEN: Final = 16
"""Characters a token needs at least."""

WAIT_SECONDS: Final = 20.0
"""Longest an answer is held back while there is nothing to say."""

SEGMENT: Final = 1024 * 1024
"""Most bytes of one POST, and of one answer to GET: as much is kept by who sends. Proxies take no
longer bodies unless they are told to."""

MAX_JSON: Final = 64 * 1024
"""Longest JSON body, in bytes."""

BYTES: Final = "application/octet-stream"
JSON: Final = "application/json"

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{7,99}")
"""Ids that a client gives to its sandboxes and streams."""


class Body(BaseModel):
    """A JSON body: of exactly these fields and types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SandboxRequest(Body):
    """The sandbox that is asked for; the fields of runtime.base.SandboxSpec."""

    image: str = Field(max_length=500)
    run: str = Field(max_length=200)
    memory: str = Field(max_length=20)
    cpus: float = Field(gt=0, allow_inf_nan=False)
    pids: int = Field(gt=0)
    disk: int = Field(gt=0)
    environment: dict[str, str] = {}
    egress: tuple[Annotated[str, Field(max_length=300)], ...] = Field(default=(), max_length=200)


class SandboxState(Body):
    """A sandbox, as it is now. Empty strings while it starts."""

    isolation: str
    scratch: str
    idle_seconds: float


class StreamRequest(Body):
    """The stream that is asked for. path: of the archive, empty for the wire."""

    kind: Literal["wire", "put", "get"]
    path: str = Field(default="", max_length=4096)


class StreamState(Body):
    """A stream that carries, or will. isolation: of the sandbox, known for sure from here on."""

    isolation: str


class ReceivedBytes(Body):
    """offset: how many bytes of the stream have arrived in all."""

    offset: int


class RemoteFailure(Body):
    """Why something could not be done, for a person."""

    what: str
    next_step: str = ""


class StreamEnd(Body):
    """The end of a stream. words: the end of the action server's stderr."""

    words: str = ""
    failure: RemoteFailure | None = None


class RemoteLimits(Body):
    """What the server gives at most, and to how many at a time."""

    protocol: int
    runtime: str
    images: list[str]
    memory: str
    cpus: float
    pids: int
    disk: int
    sandboxes: int
    running: int
    idle_seconds: float
