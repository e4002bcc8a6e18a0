"""The server of `resolver sandbox serve`, which provides sandboxes for runs on other machines."""

import asyncio
import contextlib
import logging
import os
import re
import signal
import socket
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from resolver.entrypoints.http_server import address_of, listen, log_to_stderr, server_settings
from resolver.entrypoints.webhook.data_folder import DataFolder
from resolver.errors import UsageError
from resolver.runs.common import environment_secrets, open_host
from resolver.runtime.remote.protocol import MIN_TOKEN_CHARACTERS
from resolver.runtime.service.app import create_service_app
from resolver.runtime.service.sandboxes import (
    OpenMachine,
    Sandboxes,
    ServiceBounds,
    docker_machines,
    local_machines,
    memory_bytes,
    remove_abandoned,
    run_prefix,
)
from resolver.runtime.toolbox import Toolbox
from resolver.security.redaction import Redactor

logger = logging.getLogger("resolver.sandboxes")

CONNECTIONS_PER_SANDBOX: Final = 16
"""Maximum number of open connections for each sandbox that may exist."""

DRAIN_SECONDS: Final = 3
"""Time in seconds for responses in progress to finish when the server is stopped."""

REMOVE_SECONDS: Final = 25.0
"""Time in seconds for the sandboxes to be removed when the server is stopped."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,60}")


def serve_sandboxes(
    environment: Mapping[str, str],
    limits: ServiceBounds,
    host: str,
    port: int,
    *,
    tls_cert: str | None,
    tls_key: str | None,
    plain_http: bool,
    name: str | None,
) -> None:
    """Serve sandboxes to clients that have the token, until a signal arrives.

    name: of the server on its engine; made from host name and port if None.

    Raises UsageError if an argument, the token or the address can't be used.
    """
    memory_bytes(limits.memory)
    if name is not None and not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid name", "--name takes up to 60 letters, digits, - and _"
        )
    token = _token(environment)
    _check_tls(host, tls_cert, tls_key, plain_http)
    listening = listen(host, port)
    name = name or _default_name(listening)
    log_to_stderr(Redactor((token, *environment_secrets(environment))))
    signal.signal(signal.SIGTERM, _end_process)
    signal.signal(signal.SIGINT, _end_process)
    # Here the next start finds and removes the local sandboxes of a server that was killed.
    tempfile.tempdir = str(_data_folder(environment, name).empty_scratch())
    sandboxes = Sandboxes(
        limits, _open_machines(limits.runtime, environment, name), run_prefix(name)
    )
    scheme = "https" if tls_cert else "http"
    logger.info("listening on %s://%s, as %s", scheme, address_of(listening), name)
    app = create_service_app(sandboxes, limits, token)
    connections = CONNECTIONS_PER_SANDBOX * (limits.sandboxes + 1)
    _Server(_server_config(app, tls_cert, tls_key, connections), sandboxes).run(sockets=[listening])


def _server_config(
    app: ASGIApp, tls_cert: str | None, tls_key: str | None, connections: int
) -> uvicorn.Config:
    return server_settings(
        app,
        connections,
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )


class _Server(uvicorn.Server):
    """A uvicorn server that removes its sandboxes before it stops.

    Removing them also ends the responses that wait for a sandbox.
    """

    def __init__(self, config: uvicorn.Config, sandboxes: Sandboxes) -> None:
        super().__init__(config)
        self._sandboxes = sandboxes

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REMOVE_SECONDS):
                await self._sandboxes.close()
        await super().shutdown(sockets)


def _token(environment: Mapping[str, str]) -> str:
    token = environment.get("RESOLVER_SANDBOX_TOKEN", "").strip()
    if len(token) < MIN_TOKEN_CHARACTERS or not token.isascii() or not token.isprintable():
        raise UsageError(
            f"there is no token of at least {MIN_TOKEN_CHARACTERS} plain characters",
            "set RESOLVER_SANDBOX_TOKEN, for example to the output of `openssl rand -hex 32`",
        )
    return token


def _check_tls(host: str, cert: str | None, key: str | None, plain_http: bool) -> None:
    """Raise UsageError for an invalid certificate, or if the token would be sent unencrypted."""
    if (cert is None) != (key is None):
        raise UsageError(
            "a certificate and its key are only valid together", "give --tls-cert and --tls-key"
        )
    if cert is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
        except OSError as error:
            raise UsageError(
                f"the certificate {cert} can't be used with its key: {error}",
                "give both in PEM form, the key without a password",
            ) from error
    elif host not in ("127.0.0.1", "::1", "localhost") and not plain_http:
        raise UsageError(
            f"on {host} the token would travel unencrypted",
            "give --tls-cert and --tls-key, or --plain-http behind a proxy that terminates TLS",
        )


def _default_name(listening: socket.socket) -> str:
    port = listening.getsockname()[1]
    return re.sub(r"[^A-Za-z0-9_-]", "-", f"{socket.gethostname()[:50]}-{port}")


def _data_folder(environment: Mapping[str, str], name: str) -> DataFolder:
    """Return the server's data folder, whose lock keeps out a second server of the same name."""
    home = environment.get("HOME", "/")
    state = Path(environment.get("XDG_STATE_HOME") or f"{home}/.local/state") / "resolver"
    return DataFolder(Path(environment.get("RESOLVER_DATA_DIR") or state) / f"sandboxes-{name}")


def _open_machines(runtime: str, environment: Mapping[str, str], name: str) -> OpenMachine:
    if runtime == "local":
        return local_machines(environment)
    removed_count = remove_abandoned(environment, run_prefix(name))
    if removed_count:
        logger.warning("removed %d sandboxes that an earlier server left", removed_count)
    return docker_machines(environment, Toolbox(open_host(environment).cache))


def _end_process(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal handler
    """End this process: the server has stopped already, or never started."""
    logger.info("stopped by %s", signal.Signals(number).name)
    logging.shutdown()
    os._exit(0)
