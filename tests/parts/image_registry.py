"""A registry of images on this machine, from which builds take their base images.

API: https://distribution.github.io/distribution/spec/api/
"""

import hashlib
import json
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO

import docker
import pytest

_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG = "application/vnd.docker.container.image.v1+json"
_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


class ImageRegistry:
    """The images of a registry. name: of an image that has nothing but a static busybox."""

    def __init__(self, engine: docker.DockerClient, port: int) -> None:
        self.found = {"/v2/": (b"{}", "application/json")}
        self._engine = engine
        self._port = port
        self.name = self.publish("resolver-test/busybox:latest", "base")

    def publish(self, image: str, name: str) -> str:
        """Copy an image of the engine into the registry, and return its name there."""
        saved = BytesIO(b"".join(self._engine.images.get(image).save()))
        with tarfile.open(fileobj=saved) as tar:
            [listed] = json.loads(_member(tar, "manifest.json"))
            manifest = {
                "schemaVersion": 2,
                "mediaType": _MANIFEST,
                "config": self._add(name, _member(tar, listed["Config"]), _CONFIG),
                "layers": [
                    self._add(name, _member(tar, layer), _LAYER) for layer in listed["Layers"]
                ],
            }
        content = json.dumps(manifest).encode()
        self.found[f"/v2/{name}/manifests/1"] = (content, _MANIFEST)
        self.found[f"/v2/{name}/manifests/{_digest(content)}"] = (content, _MANIFEST)
        return f"127.0.0.1:{self._port}/{name}:1"

    def _add(self, name: str, content: bytes, kind: str) -> dict[str, object]:
        self.found[f"/v2/{name}/blobs/{_digest(content)}"] = (content, "application/octet-stream")
        return {"mediaType": kind, "size": len(content), "digest": _digest(content)}


@pytest.fixture
def registry(engine: docker.DockerClient, busybox_image: str) -> Iterator[ImageRegistry]:
    """The registry. What the engine pulls of it is removed at the test's end."""
    assert busybox_image == "resolver-test/busybox:latest"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content, kind = images.found.get(self.path, (b"", ""))
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind or "text/plain")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Docker-Content-Digest", _digest(content))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    images = ImageRegistry(engine, server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield images
    server.shutdown()
    server.server_close()
    thread.join()
    for image in engine.api.images():
        for tag in image["RepoTags"] or ():
            if tag.startswith(f"127.0.0.1:{server.server_port}/"):
                engine.images.remove(tag, force=True)


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None
    return file.read()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
