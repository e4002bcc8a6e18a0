"""Helpers of the entry points that serve HTTP: protocol, socket, web server settings and logging.

The HTTP protocol is uvicorn's with limits on the head of a request and on open connections.
"""

import asyncio
import logging
import resource
import socket
from enum import Enum, auto
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from resolver.entrypoints.log_format import LogFormat, formatter_of
from resolver.errors import UsageError
from resolver.runs.common import RewritingFormatter
from resolver.security.redaction import Redactor

HEAD_SECONDS = 10.0
"""Time in seconds for a connection to send a complete request head, from when it was opened.

On a connection that is kept open, the time starts with the first byte of a request.
"""


MAX_HEAD_BYTES = 32_768
"""Maximum size in bytes of a request head. That of a delivery has about 1,000; a browser adds the
cookie of its session."""


class Awaited(Enum):
    """What a client has to send next. NOTHING: its request is complete, the response is not."""

    HEAD = auto()
    BODY = auto()
    NOTHING = auto()


class BoundedConnection(HttpToolsProtocol):
    """A connection that is closed if it sends no request, so that it does not keep others out.

    uvicorn limits how long a connection may be idle after a response, but not how long the first
    request, or one that is sent byte by byte, may take (a slow loris attack), nor the size of a
    request's head. When more than half of `limit_concurrency` connections are open, the oldest one
    without a request is closed for a new one.
    """

    head_seconds = HEAD_SECONDS
    replaceable: frozenset[Awaited] = frozenset({Awaited.HEAD})
    """What a connection waits for when it may be closed for a new one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_timer: asyncio.TimerHandle | None = None
        self._opened_at = 0.0
        self._is_in_body = False
        self._head_bytes = 0

    @property
    def awaited(self) -> Awaited:
        """What the client has to send next."""
        if self._is_in_body:
            return Awaited.BODY
        is_answered = self.cycle is None or self.cycle.response_complete
        return Awaited.HEAD if is_answered else Awaited.NOTHING

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._opened_at = self.loop.time()
        self._update_head_timer()
        self._close_oldest()

    def data_received(self, data: bytes) -> None:
        self._head_bytes += 0 if self._is_in_body else len(data)
        super().data_received(data)
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.logger.warning("Invalid HTTP request received: its head is too large.")
            self.send_400_response("The head of the request is too large.")
        self._update_head_timer()

    def on_headers_complete(self) -> None:
        self._is_in_body, self._head_bytes = True, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_in_body, self._head_bytes = False, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()  # may continue with a pipelined request
        self._update_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_head_timer()
        super().connection_lost(exc)

    def _update_head_timer(self) -> None:
        """Keep the timer running only while a request head is awaited.

        There is no timer either while uvicorn's own timer for idle connections is set.
        """
        awaits_head = self.awaited is Awaited.HEAD and not self.transport.is_closing()
        if not awaits_head or self.timeout_keep_alive_task is not None:
            self._unset_head_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_seconds, self.transport.close)

    def _unset_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_oldest(self) -> None:
        # uvicorn also counts the tasks of closed connections until they end. At half of its limit
        # there is enough time for that.
        limit = (self.limit_concurrency or 0) // 2
        while limit and len(self.connections) > limit:
            others = (c for c in self.connections if isinstance(c, BoundedConnection))
            waiting = [c for c in others if c is not self and c.awaited in self.replaceable]
            if not waiting:
                return
            oldest = min(waiting, key=lambda connection: connection._opened_at)
            self.connections.discard(oldest)
            oldest.transport.close()


class ShortRequestConnection(BoundedConnection):
    """For a server whose requests are short: one whose body is incomplete makes room as well."""

    replaceable = frozenset({Awaited.HEAD, Awaited.BODY})


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises UsageError if the address cannot be used."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise UsageError(
            f"can't listen on {host}:{port}: {error.strerror}", "choose another --host or --port"
        ) from error
    # Connections inherit this option. Without it the body of a response waits 40 ms for the
    # client's delayed acknowledgement of its head (Nagle's algorithm). asyncio sets the option only
    # on sockets whose `proto` is IPPROTO_TCP, and create_server leaves it 0.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def allow_open_files(count: int) -> None:
    """Raise the process's soft limit of open files to `count`, as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    new_limit = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < new_limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (new_limit, hard))


def address_of(listening: socket.socket) -> str:
    """Return HOST:PORT as it is written in a URL."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def server_settings(
    app: Any,
    connections: int,
    protocol: type[BoundedConnection] = BoundedConnection,
    **more: Any,
) -> uvicorn.Config:
    """Return the settings of a web server that sends no server header and logs only problems.

    `app` is an ASGI application. `connections` is the maximum number of open connections; further
    requests are answered with status 503. From half of it on, a new connection replaces the oldest
    one that `protocol` considers replaceable.
    """
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=protocol,
        ws="none",
        lifespan="off",
        limit_concurrency=connections,
        **more,
    )


def log_to_stderr(redactor: Redactor, log_format: LogFormat = "text") -> logging.Handler:
    """Log to stderr without secrets, and return the handler. Other packages log only their
    warnings."""
    handler = logging.StreamHandler()
    handler.setFormatter(RewritingFormatter(formatter_of(log_format), redactor.redact_text))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.captureWarnings(True)
    logging.getLogger("resolver").setLevel(logging.INFO)
    return handler
