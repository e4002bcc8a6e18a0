"""A test image with a Chromium: this machine's own, put on the Python image without a download."""

import os
import re
import subprocess
from pathlib import Path

import docker
import pytest

PROGRAM = "/usr/lib/chromium/chromium"
PLACES = ("/usr/lib/chromium", "/usr/bin/chromium", "/etc/chromium.d", "/etc/fonts")
LIBRARIES = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
LOADED_LATER = ("libsoftokn3.so", "libfreeblpriv3.so", "libnssckbi.so")
OF_THE_IMAGE = re.compile(r"/(?:ld-linux|lib(?:c|m|dl|rt|pthread|resolv)\.so)")


def _files() -> list[str]:
    """Chromium and the libraries it loads, but for the C library, which the image has."""
    linked = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout
    found = {Path(path) for path in re.findall(r"(/\S+) \(0x", linked)}
    found |= {path for name in LOADED_LATER for path in LIBRARIES.glob(f"**/{name}")}
    # The image's /lib leads to /usr/lib.
    names = {str(path.parent.resolve() / path.name) for path in found}
    names |= {str(path.resolve()) for path in found} | {p for p in PLACES if Path(p).exists()}
    return sorted(name.lstrip("/") for name in names if not OF_THE_IMAGE.search(name))


@pytest.fixture(scope="session")
def chromium_image(
    chromium_program: str,
    engine: docker.DockerClient,
    python_image: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """The image's name. It is made once for each Chromium, in about ten seconds."""
    version = subprocess.run(
        [chromium_program, "--version"], capture_output=True, text=True, check=True
    ).stdout
    number = re.search(r"[0-9]+(?:\.[0-9]+)+", version)
    name = f"resolver-test/chromium:{number[0] if number else 'unknown'}"
    if engine.images.list(name=name):
        return name
    context = tmp_path_factory.mktemp("image")
    (context / "Dockerfile").write_text(f"FROM {python_image}\nADD chromium.tar /\n")
    subprocess.run(
        ["tar", "--hard-dereference", "-cf", context / "chromium.tar", "-C", "/", *_files()],
        check=True,
    )
    subprocess.run(
        ["docker", "build", "-q", "-t", name, context],
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
        check=True,
        capture_output=True,
    )
    (context / "chromium.tar").unlink()
    return name
