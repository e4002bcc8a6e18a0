"""A host outside the sandbox: a real HTTP server on loopback, and a policy that lets runs there."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from resolver.config.allowed_hosts import AllowList
from resolver.runtime.egress import EgressPolicy

NAME = "mirror.test"
"""The name under which the policy of `let_out` knows the server."""


class Outside:
    """Answers GET /x with the path and the Host header, GET /bytes/N with N bytes, POST with the
    body's length, /to/URL with a redirect. `seen` holds "METHOD path host" of each request."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.seen: list[str] = []

    @property
    def entry(self) -> str:
        """The allow-list entry that names it."""
        return f"private:{NAME}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{NAME}:{self.port}"


@contextmanager
def serving_outside() -> Iterator[Outside]:
    """The server, listening on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        outside: Outside

        def log_message(self, format: str, *args: Any) -> None:
            self.outside.seen.append(f"{self.command} {self.path} {self.headers['Host']}")

        def do_GET(self) -> None:
            if self.path.startswith("/to/"):
                self.send_response(302)
                self.send_header("Location", self.path.removeprefix("/to/"))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if self.path.startswith("/bytes/"):
                self._answer(b"x" * int(self.path.removeprefix("/bytes/")))
                return
            self._answer(f"{self.path} {self.headers['Host']}\n".encode())

        def do_POST(self) -> None:
            count = 0
            for size in self._sizes():
                count += len(self.rfile.read(size))
            self._answer(f"{count}\n".encode())

        def _sizes(self) -> Iterator[int]:
            if self.headers["Transfer-Encoding"] != "chunked":
                yield int(self.headers["Content-Length"])
                return
            while size := int(self.rfile.readline(), 16):
                yield size
                self.rfile.readline()
            self.rfile.readline()

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client that goes away is what some tests are about

    server = Server(("127.0.0.1", 0), Handler)
    Handler.outside = Outside(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Handler.outside
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def names(known: Mapping[str, Sequence[str]]) -> Any:
    """A name resolver that knows only these names. `requested_hosts` has the requested names."""

    def resolve(host: str, port: int) -> Sequence[str]:
        resolve.requested_hosts.append(host)  # type: ignore[attr-defined]
        if host not in known:
            raise OSError("Name or service not known")
        return known[host]

    resolve.requested_hosts = []  # type: ignore[attr-defined]
    return resolve


def let_out(
    *entries: str, max_bytes: int = 10**9, known: Mapping[str, Sequence[str]] | None = None
) -> EgressPolicy:
    """Return a policy for these entries; `NAME` is on loopback, in addition to the names in
    `known`."""
    resolve = names({NAME: ["127.0.0.1"], **(known or {})})
    return EgressPolicy(AllowList.parse(entries), max_bytes, resolve)
