"""Helpers of the entry points that serve HTTP: socket, web server settings and logging."""

import logging
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import uvicorn

from resolver.errors import UsageError
from resolver.runs.common import RewritingFormatter
from resolver.security.redaction import Redactor

KEEP_ALIVE_SECONDS = 10
"""Time in seconds that a connection may be idle after a response."""

MAX_HEAD_BYTES = 32_768
"""Maximum size in bytes of a request head. That of a delivery has about 1,000; a browser adds the
cookie of its session."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises UsageError if the address cannot be used."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        # create_server adds a Python tuple to the text of the system's errors.
        is_of_name = isinstance(error, socket.gaierror)
        reason = error.strerror if is_of_name else os.strerror(error.errno or 0)
        raise UsageError(
            f"can't listen on {host}:{port}: {reason}", "choose another --host or --port"
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


def server_settings(app: Any, connections: int, **more: Any) -> uvicorn.Config:
    """Return the settings of a web server that sends no server header and logs only problems.

    `app` is an ASGI application. `connections` is the maximum number of open connections; requests
    on further ones are answered with status 503.

    uvicorn does not limit the time in which a client sends its first request. A proxy in front of
    the server does, see docs/how-to/operating.md.
    """
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        http="h11",  # uvicorn's other implementation does not limit the size of a head
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        ws="none",
        lifespan="off",
        limit_concurrency=connections,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        **more,
    )


LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s%(run)s %(message)s"
"""A line of the log. run: a space and the id of the run that wrote it, if any did."""

_run: ContextVar[str] = ContextVar("run", default="")


@contextmanager
def logging_run(run: str) -> Iterator[None]:
    """Add the id of a run to the lines that this thread logs in the block, and to those of threads
    that are started with a copy of its context."""
    token = _run.set(f" {run}")
    try:
        yield
    finally:
        _run.reset(token)


def _add_run(record: logging.LogRecord) -> bool:
    record.run = _run.get()
    return True


def log_to_stderr(redactor: Redactor) -> logging.Handler:
    """Log to stderr without secrets, and return the handler. Other packages log only their
    warnings."""
    handler = logging.StreamHandler()
    handler.addFilter(_add_run)
    handler.setFormatter(RewritingFormatter(logging.Formatter(LOG_FORMAT), redactor.redact_text))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.captureWarnings(True)
    logging.getLogger("resolver").setLevel(logging.INFO)
    return handler
