"""A second Docker engine, which listens with TLS only and has its own data, like one elsewhere."""

import io
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest

from resolver.runtime.engine import connect_engine
from tests.parts.waiting import until


@dataclass(frozen=True)
class RemoteEngine:
    """An engine at 127.0.0.1:`port`, with the certificates of its clients in `certificates`."""

    port: int
    certificates: Path
    image: str

    def settings(self, port: int | None = None) -> dict[str, str]:
        """Return the environment of a run whose sandbox is there. port: of a forwarder to it."""
        return {
            "RESOLVER_RUNTIME": "remote",
            "DOCKER_HOST": f"tcp://127.0.0.1:{port or self.port}",
            "RESOLVER_IMAGE": self.image,
            "DOCKER_CERT_PATH": str(self.certificates),
        }

    def connect(self) -> docker.DockerClient:
        """Return a client of it."""
        variables = {"DOCKER_HOST": f"tcp://127.0.0.1:{self.port}", "DOCKER_TLS_VERIFY": "1"}
        return connect_engine({**variables, "DOCKER_CERT_PATH": str(self.certificates)})


@pytest.fixture(scope="session")
def remote_engine(
    engine: docker.DockerClient, busybox_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RemoteEngine]:
    """Start a second `dockerd` on this machine, and give it one image."""
    if os.geteuid() != 0:
        pytest.skip("a second engine needs root")
    # Its sockets are below its folder, and the path of a socket is at most 107 characters long.
    folder = tmp_path_factory.mktemp("e")
    make_certificates(folder)
    # In a network of its own, because an engine changes the bridge and the firewall of its network.
    # The listening socket comes from this one: systemd's protocol, sd_listen_fds(3).
    listening = socket.create_server(("127.0.0.1", 0))
    options = ["--host", "fd://", "--tlsverify", "--tlscacert", "ca.pem", "--tlscert", "server.pem"]
    options += ["--tlskey", "server-key.pem", "--bridge", "none", "--iptables=false"]
    options += ["--pidfile", str(folder / "pid"), "--data-root", str(folder / "data")]
    options += ["--exec-root", str(folder / "exec")]
    start = f'exec 3<&{listening.fileno()}; export LISTEN_PID=$$ LISTEN_FDS=1; exec dockerd "$@"'
    command = ["unshare", "--net", "bash", "-c", start, "dockerd", *options]
    with (folder / "log").open("wb") as log, listening:
        port = listening.getsockname()[1]
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, pass_fds=[listening.fileno()]
        )
    try:
        until(lambda: process.poll() is not None or b"API listen on" in _read(folder / "log"))
        remote = RemoteEngine(port, folder, busybox_image)
        client = remote.connect()
        client.images.load(io.BytesIO(b"".join(engine.images.get(busybox_image).save(named=True))))
        client.close()
        yield remote
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def make_certificates(folder: Path) -> None:
    """Make an authority and its certificates of the server and of a client, which is cert.pem."""
    new_key = ["openssl", "req", "-newkey", "rsa:2048", "-nodes"]
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    ca = ["-x509", "-days", "1", "-subj", "/CN=ca", "-keyout", "ca-key.pem", "-out", "ca.pem"]
    _run([*new_key, *ca], folder)
    for name, key, certificate in (
        ("server", "server-key.pem", "server.pem"),
        ("client", "key.pem", "cert.pem"),
    ):
        _run([*new_key, "-subj", f"/CN={name}", "-keyout", key, "-out", "request"], folder)
        sign = ["-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-extfile", "names"]
        options = ["-req", "-days", "1", "-in", "request", *sign, "-out", certificate]
        _run(["openssl", "x509", *options], folder)


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def _read(path: Path) -> bytes:
    return path.read_bytes()
