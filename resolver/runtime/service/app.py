"""The web application of the sandbox server: authentication, requests, bytes in both directions.

The paths are listed in resolver/runtime/remote/protocol.py.
"""

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator
from typing import Annotated, Final, TypeVar

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from resolver.errors import Refused, SandboxError, UsageError
from resolver.models.base import describe_first_error
from resolver.runtime.remote.protocol import (
    BYTES,
    JSON,
    MAX_JSON,
    MAX_SEGMENT_BYTES,
    NAME,
    WAIT_SECONDS,
    Body,
    ReceivedBytes,
    RemoteFailure,
    RemoteLimits,
    SandboxRequest,
    SandboxState,
    StreamRequest,
    StreamState,
)
from resolver.runtime.service.sandboxes import (
    ConflictError,
    FullError,
    Sandboxes,
    ServedSandbox,
    ServiceBounds,
    UnknownError,
)
from resolver.runtime.service.stream import OffsetError, Stream

logger = logging.getLogger("resolver.sandboxes")

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

BODY_SECONDS: Final = 30.0
"""Longest pause of a client while it sends a body."""


class BodyError(Exception):
    """A body that did not arrive completely: the client may repeat the request."""


_CLOSE_HEADERS: Final = {"Connection": "close"}
_STREAM_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Headers of a streamed answer: a proxy must not buffer it."""
_STATUS: Final[dict[type[Exception], int]] = {
    ValidationError: 422,
    UsageError: 422,
    Refused: 403,
    UnknownError: 404,
    ConflictError: 409,
    OffsetError: 409,
    FullError: 429,
    BodyError: 408,
    SandboxError: 500,
}
Offset = Annotated[int, Query(ge=0, le=1 << 60)]


def create_service_app(sandboxes: Sandboxes, bounds: ServiceBounds, token: str) -> ASGIApp:
    """Return the web application, which requires the token."""
    app = FastAPI(title="Sandboxes", docs_url=None, redoc_url=None, openapi_url=None)
    for kind in _STATUS:
        app.add_exception_handler(kind, _error_response)

    @app.get("/v1/limits")
    async def limits() -> RemoteLimits:
        return bounds.limits(sandboxes.count)

    @app.put("/v1/sandboxes/{name}")
    async def start(name: str, request: Request) -> Response:
        sandbox_request = await _parse_request(request, SandboxRequest)
        sandbox = sandboxes.start(_checked_id(name), sandbox_request)
        machine = await _wait_for_result(sandbox.starting)
        return _response(
            SandboxState(
                isolation=machine.isolation if machine else "",
                scratch=machine.scratch if machine else "",
                idle_seconds=bounds.idle_seconds,
            ),
            ready=machine is not None,
        )

    @app.delete("/v1/sandboxes/{name}")
    async def remove(name: str) -> Response:
        reason = RemoteFailure(what="the sandbox was closed")
        removing = sandboxes.remove(_checked_id(name), reason)
        if removing is None:
            return Response(status_code=204)
        await asyncio.wait([removing], timeout=WAIT_SECONDS)
        if removing.done():
            removing.result()
        return Response(status_code=204 if removing.done() else 202)

    _add_streams(app, sandboxes, min(WAIT_SECONDS, bounds.idle_seconds / 2))
    return BearerOnly(app, token)


def _add_streams(app: FastAPI, sandboxes: Sandboxes, quiet_seconds: float) -> None:
    path = "/v1/sandboxes/{name}/streams/{stream}"

    async def find_stream(name: str, stream: str) -> tuple[ServedSandbox, Stream]:
        sandbox = sandboxes.find(name)
        if stream not in sandbox.streams:
            raise UnknownError(RemoteFailure(what="there is no such stream of the sandbox"))
        return sandbox, await asyncio.shield(sandbox.streams[stream][1])

    @app.put(path)
    async def open_one(name: str, stream: str, request: Request) -> Response:
        stream_request = await _parse_request(request, StreamRequest)
        sandbox = sandboxes.find(name)
        opened_stream = await _wait_for_result(
            sandboxes.open_stream(sandbox, _checked_id(stream), stream_request)
        )
        isolation = sandbox.starting.result().isolation if opened_stream else ""
        return _response(StreamState(isolation=isolation), ready=opened_stream is not None)

    @app.post(path)
    async def send(
        name: str, stream: str, request: Request, offset: Offset, last: bool = False
    ) -> Response:
        sandbox, opened_stream = await find_stream(name, stream)
        incoming, position = opened_stream.incoming, offset
        async for data in _body(request, MAX_SEGMENT_BYTES):
            sandbox.touch()
            await incoming.accept(position, data)
            position += len(data)
        if last:
            incoming.finish(position)
        return _response(ReceivedBytes(offset=incoming.received))

    @app.get(path)
    async def receive(name: str, stream: str, offset: Offset) -> Response:
        sandbox, opened_stream = await find_stream(name, stream)
        opened_stream.outgoing.release(offset)
        end = opened_stream.outgoing.end_at(offset)
        if end is not None:
            return _response(end)
        content = _bytes(sandbox, opened_stream, offset, quiet_seconds)
        return StreamingResponse(content, headers=_STREAM_HEADERS, media_type=BYTES)

    @app.delete(path)
    async def close(name: str, stream: str) -> Response:
        sandbox = sandboxes.find(name)
        _, opening = sandbox.streams.pop(stream, (None, None))
        if opening is not None:
            (await opening).close(RemoteFailure(what="the stream was closed"))
        return Response(status_code=204)


async def _bytes(
    sandbox: ServedSandbox, stream: Stream, offset: int, quiet_seconds: float
) -> AsyncIterator[bytes]:
    """Yield the stream from `offset` on as it arrives.

    It stops at the stream's end, after MAX_SEGMENT_BYTES, or if nothing arrives for
    `quiet_seconds`; the client then asks again.
    """
    position = offset
    while position - offset < MAX_SEGMENT_BYTES:
        data = await stream.outgoing.read(position, quiet_seconds)
        if not data:
            return
        sandbox.touch()
        position += len(data)
        yield data


class BearerOnly:
    """Middleware that passes on requests with the token and answers the health check."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        response: Response | None = None
        if scope["path"] == "/healthz":
            response = JSONResponse({"status": "ok"})
        else:
            authorizations = [v for n, v in scope["headers"] if n == b"authorization"]
            if len(authorizations) != 1 or not hmac.compare_digest(
                authorizations[0], self._expected
            ):
                response = Response(status_code=401, headers=_CLOSE_HEADERS)
        await (response or self._app)(scope, receive, send)


async def _body(request: Request, max_bytes: int) -> AsyncIterator[bytes]:
    """Yield the body as it arrives.

    Raises BodyError if it breaks off, UsageError if it is too long.
    """
    size = 0
    parts = request.stream()
    while True:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                data = await anext(parts, b"")
        except (TimeoutError, ClientDisconnect):
            raise BodyError("the request body is incomplete") from None
        if not data:
            return
        size += len(data)
        if size > max_bytes:
            raise UsageError(f"a body has {max_bytes} bytes at most")
        yield data


async def _parse_request(request: Request, model: type[M]) -> M:
    """Parse the JSON body. Raises ValidationError and what `_body` raises."""
    body = b"".join([part async for part in _body(request, MAX_JSON)])
    return model.model_validate_json(body)


async def _wait_for_result(task: "asyncio.Task[T]") -> T | None:
    """Return the task's result, or None if it takes longer than an answer may be held back."""
    await asyncio.wait([task], timeout=WAIT_SECONDS)
    return task.result() if task.done() else None


def _checked_id(name: str) -> str:
    if not NAME.fullmatch(name):
        raise UsageError("an id has 8 to 100 letters, digits, - and _")
    return name


def _response(body: Body, ready: bool = True) -> Response:
    status = 200 if ready else 202
    return Response(body.model_dump_json(), status_code=status, media_type=JSON)


async def _error_response(request: Request, error: Exception) -> Response:  # noqa: ARG001 - its form
    """Return an error as a RemoteFailure. The rest of the request's body is not read."""
    status = next(status for kind, status in _STATUS.items() if isinstance(error, kind))
    if isinstance(error, SandboxError | Refused | UsageError):
        failure = RemoteFailure(what=error.what, next_step=error.next_step)
    elif isinstance(error, ValidationError):
        failure = RemoteFailure(what=f"the request is wrong: {describe_first_error(error)}")
    elif isinstance(error, UnknownError):
        failure = error.reason
    else:
        failure = RemoteFailure(what=f"the sandbox server refused the request: {error}")
    return Response(failure.model_dump_json(), status, _CLOSE_HEADERS, JSON)
