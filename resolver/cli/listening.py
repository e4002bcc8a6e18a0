"""Helpers for the commands that start servers: socket, web server settings and logging."""

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


def allow_open_files(wanted: int) -> None:
    """Raise the process's soft limit of open files to `wanted`, as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


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


def log_to_stderr(redactor: Redactor) -> None:
    """Log to stderr in plain lines without secrets. Other packages log only their warnings."""
    handler = logging.StreamHandler()
    handler.addFilter(RewritingFilter(redactor.redact_text))
    logging.basicConfig(
        level=logging.WARNING,
        handlers=[handler],
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    logging.captureWarnings(True)
    logging.getLogger("resolver").setLevel(logging.INFO)
