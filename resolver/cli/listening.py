"""What the commands that serve have in common: a socket, the web server's settings, a log."""

import logging
import resource
import socket
from typing import Any

import uvicorn

from resolver.cli.connections import BoundedConnection
from resolver.errors import UsageError
from resolver.security.logging import RewritingFilter
from resolver.security.redaction import Redactor


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on. Raises UsageError."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise UsageError(
            f"can't listen on {host}:{port}: {error.strerror}", "choose another --host or --port"
        ) from error
    # Connections inherit it. Without it the body of an answer waits 40 ms for the other end's
    # delayed acknowledgement of its head; asyncio does not know such a socket as one of TCP.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def allow_open_files(wanted: int) -> None:
    """Raise the process's limit of open files to `wanted`, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def address_of(listening: socket.socket) -> str:
    """HOST:PORT as it stands in a URL."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def server_settings(
    app: Any,
    connections: int,
    protocol: type[BoundedConnection] = BoundedConnection,
    **more: Any,
) -> uvicorn.Config:
    """A web server that says nothing of itself and logs what went wrong alone.

    app: an ASGI application. connections: open at a time; what comes beyond is answered 503. From
    half of them on, a new one takes the place of the oldest that `protocol` calls replaceable.
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


def log_to_stderr(redactor: Redactor) -> None:
    """Plain lines on stderr, without secrets; of other packages their warnings alone."""
    handler = logging.StreamHandler()
    handler.addFilter(RewritingFilter(redactor.redact_text))
    logging.basicConfig(
        level=logging.WARNING,
        handlers=[handler],
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    logging.captureWarnings(True)
    logging.getLogger("resolver").setLevel(logging.INFO)
