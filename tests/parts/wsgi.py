"""Serves a WSGI application on a real socket, in a thread of the test's own process.

Raise `ConnectionCut` inside the application to close the connection without an answer.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import waitress
from waitress.channel import ClientDisconnected

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

# The WSGI server takes this for a client that went away: it drops the connection at once.
ConnectionCut = ClientDisconnected


@dataclass(frozen=True)
class Address:
    """The address of the application. `host` is the one that clients on this machine use."""

    host: str
    port: int

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


@contextmanager
def serve(app: WsgiApp, bind: str = "127.0.0.1", threads: int = 8) -> Iterator[Address]:
    """Runs `app` until the block ends.

    bind: "0.0.0.0" makes it reachable from containers on the engine's bridge as well.
    threads: requests answered at the same time.
    """
    sockets: dict[int, Any] = {}
    server = waitress.create_server(
        app,
        map=sockets,
        host=bind,
        port=0,
        threads=threads,
        max_request_body_size=1 << 31,
        # beyond this it keeps an answer in a file, and leaves that open for a client that goes
        outbuf_overflow=1 << 26,
        asyncore_loop_timeout=1,
        clear_untrusted_proxy_headers=True,
    )
    stopping = threading.Event()
    loop = threading.Thread(target=_run, args=(server, sockets, stopping), daemon=True)
    loop.start()
    try:
        yield Address("127.0.0.1" if bind == "0.0.0.0" else bind, int(server.effective_port))
    finally:
        server.task_dispatcher.shutdown(timeout=1)
        stopping.set()
        with suppress(OSError):  # the loop may have seen it already and closed its trigger
            server.pull_trigger()
        loop.join(timeout=60)


def _run(server: Any, sockets: dict[int, Any], stopping: threading.Event) -> None:
    # The sockets are closed by the thread that polls them: closing them from outside
    # would let the poll meet a number that now belongs to somebody else's file.
    while not stopping.is_set():
        server.asyncore.loop(timeout=1, map=sockets, count=1)
    for channel in list(sockets.values()):
        channel.close()
