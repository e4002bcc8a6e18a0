"""`RemoteMachine`: a sandbox on a machine that runs `resolver sandbox serve`."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Final, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from resolver.errors import SandboxError, UsageError
from resolver.models.verification import CheckService
from resolver.runtime.base import Channel, SandboxSpec, refuse_services
from resolver.runtime.remote.access import ConnectionCut, RemoteAccess
from resolver.runtime.remote.channel import RemoteChannel, RemoteStream
from resolver.runtime.remote.protocol import (
    MAX_SEGMENT_BYTES,
    SandboxRequest,
    SandboxState,
    StreamEnd,
    StreamRequest,
    StreamState,
)

logger = logging.getLogger("resolver.runtime")

M = TypeVar("M", bound=BaseModel)

START_SECONDS: Final = 900.0
"""Longest time for the start of a sandbox, whose image may have to be pulled."""

_START_RETRY_SECONDS: Final = 5.0
"""Seconds for which a server that does not answer the first request is retried."""

_REMOVE_RETRY_SECONDS: Final = 10.0
"""Seconds for which the removal is retried. After that, the server removes the sandbox by
itself."""

REMOVE_SECONDS: Final = 60.0
"""Longest time to wait for the removal."""

REPEAT_SECONDS: Final = 0.1
"""Pause before a request is repeated that the server has answered with 202."""


def _new_name() -> str:
    return uuid4().hex


class RemoteMachine:
    """One sandbox of the server that `access` leads to. `access` is closed with it.

    new_name: returns ids for the sandbox and its streams, which must not be guessable.
    """

    def __init__(
        self, spec: SandboxSpec, access: RemoteAccess, new_name: Callable[[], str] = _new_name
    ) -> None:
        self._request_body = _request(spec)
        self._access = access
        self._new_name = new_name
        self._path = f"/v1/sandboxes/{new_name()}"
        self._given_up = threading.Event()
        self._scratch = ""
        self.isolation = "on another machine, not started"

    @property
    def scratch(self) -> str:
        """Folder outside the repository for bundles and long outputs."""
        return self._scratch

    def __enter__(self) -> "RemoteMachine":
        try:
            state = self._await_ready(
                self._path, self._request_body, SandboxState, _START_RETRY_SECONDS
            )
        except SandboxError:
            self._access.close()
            raise
        except BaseException:
            self.__exit__()
            raise
        self._scratch = state.scratch
        self._set_isolation(state.isolation)
        return self

    def __exit__(self, *exc: object) -> None:
        """Have the sandbox removed.

        A server that can't be reached removes it by itself after a while.
        """
        self._given_up.set()
        remove = partial(self._access.delete, self._path)
        try:
            deadline = time.monotonic() + REMOVE_SECONDS
            while not self._access.persist(remove, threading.Event(), _REMOVE_RETRY_SECONDS):
                if time.monotonic() > deadline:
                    raise SandboxError("it was not removed in time", "")
                time.sleep(REPEAT_SECONDS)
        except SandboxError as error:
            logger.warning("the remote sandbox was left to its server: %s", error.what)
        finally:
            self._access.close()

    def connect(self) -> Channel:
        """Start the action server and return its stdin and stdout."""
        path, state = self._open(StreamRequest(kind="wire"))
        self._set_isolation(state.isolation)
        return RemoteChannel(RemoteStream(self._access, path))

    def put_archive(self, path: str, tar: bytes | Iterator[bytes]) -> None:
        """Unpack a tar stream below `path`."""
        stream_path, _ = self._open(StreamRequest(kind="put", path=path))
        stream = RemoteStream(self._access, stream_path)
        try:
            for piece in _pieces(iter([tar]) if isinstance(tar, bytes) else tar):
                stream.send(piece)
            stream.send(b"", last=True)
            _check_end(stream.receive())
        except SandboxError:
            if not stream.has_ended:
                _check_end(stream.receive())  # raises the server's reason, if it gave one
            raise
        finally:
            self._delete_stream(stream_path)

    def get_archive(self, path: str) -> Iterator[bytes]:
        """Yield the file or folder as a tar stream."""
        stream_path, _ = self._open(StreamRequest(kind="get", path=path))
        stream = RemoteStream(self._access, stream_path)
        try:
            while isinstance(received := stream.receive(), bytes):
                yield received
            _check_end(received)
        finally:
            stream.close()
            self._delete_stream(stream_path)

    def run_services(
        self,
        services: Sequence[CheckService],
        seconds: float,  # noqa: ARG002 - none are started
        cancelled: Callable[[], bool],  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """Return a context for no services. Raises ServiceUnavailable if there are any."""
        return refuse_services(services, "remote")

    def save(self, image: str, labels: Mapping[str, str]) -> bool:  # noqa: ARG002 - not for clients
        """Return False: clients can't create images on the server's engine."""
        return False

    def _open(self, request: StreamRequest) -> tuple[str, StreamState]:
        path = f"{self._path}/streams/{self._new_name()}"
        return path, self._await_ready(path, request, StreamState)

    def _await_ready(
        self, path: str, request: BaseModel, result: type[M], patience: float | None = None
    ) -> M:
        """Repeat the PUT request until the resource is ready.

        Raises SandboxError if it isn't in time.
        """
        deadline = time.monotonic() + START_SECONDS
        put = partial(self._access.ask, "PUT", path, result, content=request)
        while time.monotonic() < deadline:
            state = self._access.persist(put, self._given_up, patience)
            if state is not None:
                return state
            self._given_up.wait(REPEAT_SECONDS)
        raise SandboxError(
            f"the remote sandbox did not start in {START_SECONDS:.0f} seconds",
            "see the log of its server, which may be pulling the image",
        )

    def _delete_stream(self, stream_path: str) -> None:
        # If this fails, the stream ends with its sandbox.
        with contextlib.suppress(ConnectionCut, SandboxError):
            self._access.delete(stream_path)

    def _set_isolation(self, description: str) -> None:
        self.isolation = f"on another machine: {description[:1000]}"


def _request(spec: SandboxSpec) -> SandboxRequest:
    try:
        return SandboxRequest(**spec.model_dump(include=set(SandboxRequest.model_fields)))
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"no remote sandbox can have these settings: {first['loc'][0]}: {first['msg']}",
            "correct that setting",
        ) from error


def _pieces(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in pieces of at least MAX_SEGMENT_BYTES; the last may be shorter."""
    collected = bytearray()
    for chunk in chunks:
        collected += chunk
        if len(collected) >= MAX_SEGMENT_BYTES:
            yield bytes(collected)
            collected.clear()
    if collected:
        yield bytes(collected)


def _check_end(end: bytes | StreamEnd) -> None:
    """Raise SandboxError if the stream did not end successfully."""
    if isinstance(end, bytes):
        raise SandboxError("the sandbox server sent an unexpected message", "")
    if end.failure is not None:
        raise SandboxError(end.failure.what[:1000], end.failure.next_step[:1000])
