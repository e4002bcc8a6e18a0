"""The protocol of the remote runtime: paths, sizes, times and JSON bodies, used by both ends.

A sandbox has streams: `wire` (the action server's stdin and stdout), `put` (an archive in) and
`get` (an archive out). Both directions of a stream count bytes from its beginning. The sender names
the offset at which a piece begins and keeps the piece until the other end has acknowledged it; the
receiver ignores bytes that it already has. A connection may therefore break at any point without
losing or repeating data.

    PUT    /v1/sandboxes/ID                    SandboxRequest -> SandboxState; 202 while it starts
    DELETE /v1/sandboxes/ID                    204; 202 while it is removed
    PUT    /v1/sandboxes/ID/streams/STREAM     StreamRequest -> StreamState; 202 while it starts
    POST   ..../STREAM?offset=N[&last=true]    bytes from N on -> ReceivedBytes
    GET    ..../STREAM?offset=N                bytes from N on; acknowledges all before N;
                                               at the end: application/json, a StreamEnd
    DELETE ..../STREAM                         204
    GET    /v1/limits                          RemoteLimits
    GET    /healthz                            needs no token

All but the last need `Authorization: Bearer TOKEN`. Every PUT and DELETE is idempotent. The body of
an error is a RemoteFailure.
"""

import re
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

PROTOCOL: Final = 2
"""Version of this protocol, which the server sends in RemoteLimits."""

MIN_TOKEN_CHARACTERS: Final = 16
"""Minimum length of the token, in characters."""

WAIT_SECONDS: Final = 20.0
"""Longest time that the server holds back an answer while there is nothing to send."""

MAX_SEGMENT_BYTES: Final = 1024 * 1024
"""Maximum size of one POST, and of one answer to GET, in bytes.

The sender keeps as much. Many proxies refuse larger bodies by default.
"""

MAX_JSON: Final = 64 * 1024
"""Maximum size of a JSON body, in bytes."""

BYTES: Final = "application/octet-stream"
JSON: Final = "application/json"

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{7,99}")
"""Pattern of the ids that a client gives to its sandboxes and streams."""


class Body(BaseModel):
    """A JSON body with exactly these fields and types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SandboxRequest(Body):
    """The requested sandbox: the fields of runtime.base.SandboxSpec, without those that are for the
    operator of the server to choose."""

    image: str = Field(max_length=500)
    run: str = Field(max_length=200)
    memory: str = Field(max_length=20)
    cpus: float = Field(gt=0, allow_inf_nan=False)
    pids: int = Field(gt=0)
    disk: int = Field(gt=0)
    environment: dict[str, str] = Field(default={})
    egress: tuple[Annotated[str, Field(max_length=300)], ...] = Field(default=(), max_length=200)


class SandboxState(Body):
    """The present state of a sandbox. Its strings are empty while it starts."""

    isolation: str
    scratch: str
    idle_seconds: float


class StreamRequest(Body):
    """The requested stream. path: of the archive; empty for the wire."""

    kind: Literal["wire", "put", "get"]
    path: str = Field(default="", max_length=4096)


class StreamState(Body):
    """A stream that is open. isolation: of the sandbox, definitive from here on."""

    isolation: str


class ReceivedBytes(Body):
    """Acknowledgement. offset: number of bytes of the stream that have arrived in all."""

    offset: int


class RemoteFailure(Body):
    """Why something failed, in words for people."""

    what: str
    next_step: str = ""


class StreamEnd(Body):
    """The end of a stream. stderr_tail: the end of the action server's standard error."""

    stderr_tail: str = ""
    failure: RemoteFailure | None = None


class RemoteLimits(Body):
    """The server's limits for one sandbox, and for the number of sandboxes."""

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
