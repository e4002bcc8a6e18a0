"""Builds the Action's own image where there is no image registry and pip needs this machine's
certificates: the Dockerfile as it is, on a base of the tests."""

import hashlib
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import docker

from tests.parts.run_action import build_image

ROOT = Path(__file__).parents[2]

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
"""What Debian trusts: on this machine, and at the same place in the base image."""

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


def action_image(engine: docker.DockerClient, python_image: str) -> str:
    """Name of the image of this checkout's Dockerfile, built as far as it is not cached."""
    proxies = {name: os.environ[name] for name in PROXIES if name in os.environ}
    base = _base(engine, python_image)
    return build_image(engine, ROOT, {"BASE": base, **proxies})


def _base(engine: docker.DockerClient, image: str) -> str:
    """`image` with what this machine trusts and with its package index; made once."""
    settings = _pip_settings()
    if CERTIFICATES.is_file():
        settings["PIP_CERT"] = str(CERTIFICATES)
    trusted = CERTIFICATES.read_bytes() if CERTIFICATES.is_file() else b""
    made_of = [engine.images.get(image).id, *sorted(settings.items()), trusted]
    name = f"resolver-test/action-base:{hashlib.sha256(repr(made_of).encode()).hexdigest()[:12]}"
    if settings and not engine.images.list(name):
        container = engine.containers.create(image, ["true"])
        try:
            if trusted:
                container.put_archive("/", _tar(str(CERTIFICATES), trusted))
            repository, _, tag = name.partition(":")
            changes = [f'ENV {name}="{value}"' for name, value in settings.items()]
            container.commit(repository, tag, changes="\n".join(changes))
        finally:
            container.remove()
    return name if settings else image


def _pip_settings() -> dict[str, str]:
    """Return the variables that point pip to this machine's package index."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    found = {}
    for line in listed.stdout.splitlines():
        name, _, value = line.partition("=")
        name = name.rpartition(".")[2]
        if name in ("index-url", "trusted-host"):
            found[f"PIP_{name.replace('-', '_').upper()}"] = value.strip("'\"")
    return found


def _tar(path: str, data: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        member = tarfile.TarInfo(path.lstrip("/"))
        member.size, member.mode = len(data), 0o644
        tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()
