"""A registry of images on this machine: builds take their base images from it, releases push to it.

API: https://github.com/opencontainers/distribution-spec/blob/main/spec.md
"""

import hashlib
import socket
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import docker
import pytest

TLS_HANDSHAKE = b"\x16"
"""First byte of a TLS connection. Source: https://www.rfc-editor.org/rfc/rfc8446#section-5.1"""

Answer = tuple[int, dict[str, str], bytes]


class ImageRegistry:
    """Blobs by digest, and manifests by digest and by tag. name: of an image that has nothing but
    a static busybox."""

    def __init__(self, engine: docker.DockerClient) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        self._types: dict[str, str] = {}
        self._uploads: dict[str, bytes] = {}
        self._engine = engine
        self.address = self.name = ""

    def publish(self, image: str, name: str) -> str:
        """Move an image of the engine into the registry, and return its name there. An image with
        another name stays on the engine as well."""
        repository = f"{self.address}/{name}"
        self._engine.images.get(image).tag(repository, "1")
        self._engine.images.push(repository, "1")
        self._engine.images.remove(f"{repository}:1")
        return f"{repository}:1"

    def answer(self, method: str, address: str, kind: str, body: bytes) -> Answer:
        """Return the status, the headers and the body for a request. kind: its content type."""
        path = urlsplit(address).path
        what = path.rsplit("/", 1)[-1]
        if path in {"/v2", "/v2/"}:
            return 200, {}, b"{}"
        if method == "POST":
            where = f"{path}{uuid.uuid4()}"
            self._uploads[where] = b""
            return 202, {"Location": where, "Range": "0-0"}, b""
        if path in self._uploads:
            self._uploads[path] += body
            if method == "PATCH":
                return 202, {"Location": path, "Range": f"0-{len(self._uploads[path]) - 1}"}, b""
            [digest] = parse_qs(urlsplit(address).query)["digest"]
            self.blobs[digest] = self._uploads.pop(path)
            return 201, {"Docker-Content-Digest": digest, "Location": path}, b""
        if "/manifests/" in path and method == "PUT":
            digest = _digest(body)
            self._types[digest] = kind
            self.manifests[what] = self.manifests[digest] = body
            if not what.startswith("sha256:"):
                # Images of several names have the same tag here.
                self.manifests[path] = body
            return 201, {"Docker-Content-Digest": digest}, b""
        found = self.manifests.get(path, self.manifests.get(what))
        if "/manifests/" not in path:
            found = self.blobs.get(what)
        if found is None:
            return 404, {}, b"{}"
        kind = self._types.get(_digest(found), "application/octet-stream")
        return 200, {"Docker-Content-Digest": _digest(found), "Content-Type": kind}, found


@pytest.fixture
def registry(engine: docker.DockerClient, busybox_image: str) -> Iterator[ImageRegistry]:
    """The registry. What the engine pulls of it is removed at the test's end."""
    images = ImageRegistry(engine)

    class Handler(BaseHTTPRequestHandler):
        def handle(self) -> None:
            # Clients try TLS first, and go on without it if the answer is one in plain HTTP.
            if self.connection.recv(1, socket.MSG_PEEK) == TLS_HANDSHAKE:
                self.connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            else:
                super().handle()

        def do_GET(self) -> None:
            kind = self.headers.get("Content-Type", "")
            status, headers, content = images.answer(self.command, self.path, kind, self._body())
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_HEAD = do_POST = do_PATCH = do_PUT = do_GET

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    images.address = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    images.name = images.publish(busybox_image, "base")
    yield images
    server.shutdown()
    server.server_close()
    thread.join()
    for image in engine.api.images():
        for tag in image["RepoTags"] or ():
            if tag.startswith(f"{images.address}/"):
                engine.images.remove(tag, force=True)


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
