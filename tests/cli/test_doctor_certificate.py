"""`resolver doctor --model` with an endpoint whose certificate is not trusted."""

import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.parts.remote_engine import make_certificates
from tests.parts.runs import RESOLVER

KEY = "sk-doctor-0123456789abcdef"
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "DOCKER_HOST": "tcp://127.0.0.1:1",
    "RESOLVER_RUNTIME": "local",
    "LLM_MODEL": "gpt-4o",
    "LLM_API_KEY": KEY,
}


class Completes(BaseHTTPRequestHandler):
    """Answers each call to a model."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = (
            b'{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,'
            b'"finish_reason":"stop","message":{"role":"assistant","content":"ready"}}]}'
        )
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


@contextmanager
def serving(tls: ssl.SSLContext) -> Iterator[int]:
    """A server on a free port of loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Completes)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


def doctor(**environment: str) -> tuple[int, str]:
    """In a process of its own, as what the environment says of proxies and certificates is of a
    process."""
    done = subprocess.run(
        [RESOLVER, "doctor", "--model"],
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert KEY not in done.stdout + done.stderr
    return done.returncode, done.stdout


def test_a_certificate_that_is_not_trusted_is_reported_and_trusted_when_it_is_named(
    tmp_path: Path,
) -> None:
    make_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server-key.pem")
    with serving(context) as port:
        address = {"LLM_BASE_URL": f"https://127.0.0.1:{port}/v1"}
        code, said = doctor(**address)
        assert code == 1
        assert "nothing answers at the address" in said
        assert "SSL_CERT_FILE" in said
        code, said = doctor(**address, SSL_CERT_FILE=str(tmp_path / "ca.pem"))
        assert code == 0, said
