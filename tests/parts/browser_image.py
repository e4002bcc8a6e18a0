"""Playwright's MCP server and this machine's Chromium: as an image, and on a PATH."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import docker
import pytest

from tests.parts.npm import NpmPackages, install_packages

PACKAGES = Path(__file__).parent / "browser_packages"
CHROMIUM = "/usr/lib/chromium/chromium"
PLACES = ("/usr/lib/chromium", "/usr/bin/chromium", "/etc/chromium.d", "/etc/fonts",
          "/usr/share/fonts/truetype/dejavu")  # fmt: skip
LIBRARIES = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
LOADED_LATER = ("libsoftokn3.so", "libfreeblpriv3.so", "libnssckbi.so")
OF_THE_IMAGE = re.compile(r"/(?:ld-linux|lib(?:c|m|dl|rt|pthread|resolv)\.so)")


@pytest.fixture(scope="session")
def browser_packages(chromium_program: str) -> NpmPackages:
    """The server, installed from npm."""
    return install_packages(PACKAGES, "browser")


@pytest.fixture(scope="session")
def browser_path(browser_packages: NpmPackages) -> str:
    """A PATH on which the server and Chromium are."""
    folder = browser_packages.modules.parent
    program = folder / "playwright-mcp"
    cli = browser_packages.modules / "@playwright/mcp/cli.js"
    text = f'#!/bin/sh\nexec "{browser_packages.node}" "{cli}" "$@"\n'
    # Node is in a virtual environment, and the folder is shared with those of other checkouts.
    if not program.exists() or program.read_text() != text:
        new = folder / f"playwright-mcp.{os.getpid()}"
        new.write_text(text)
        new.chmod(0o755)
        new.rename(program)
    # Node is in a folder that is on PATH too, because the sandbox hides others.
    return f"{folder}:{Path(browser_packages.node).parent}:{os.environ['PATH']}"


@pytest.fixture(scope="session")
def browser_image(
    browser_packages: NpmPackages,
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
    name = f"resolver-test/browser:{number[0] if number else 'unknown'}"
    if engine.images.list(name=name):
        return name
    context = tmp_path_factory.mktemp("image")
    for source, target in (
        (browser_packages.modules, "node_modules"),
        (Path(browser_packages.node), "node"),
    ):
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, context / target)
    server = ["node", "/opt/node_modules/@playwright/mcp/cli.js"]
    entrypoint = [*server, "--executable-path", "/usr/bin/chromium"]
    quoted = ", ".join(f'"{part}"' for part in entrypoint)
    (context / "Dockerfile").write_text(
        f"FROM {python_image}\nADD chromium.tar /\nCOPY node /usr/local/bin/\n"
        f"COPY node_modules /opt/node_modules/\nRUN useradd --create-home browser\n"
        f"USER browser\nENTRYPOINT [{quoted}]\n"
    )
    files = _files_of(CHROMIUM, browser_packages.node)
    subprocess.run(
        ["tar", "--hard-dereference", "-cf", context / "chromium.tar", "-C", "/", *files],
        check=True,
    )
    subprocess.run(
        ["docker", "build", "-q", "-t", name, context],
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
        check=True,
        capture_output=True,
    )
    shutil.rmtree(context)
    return name


def _files_of(*programs: str) -> list[str]:
    """Chromium and the libraries that the programs load, but for the C library of the image."""
    found = {path for name in LOADED_LATER for path in LIBRARIES.glob(f"**/{name}")}
    for program in programs:
        linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
        found |= {Path(path) for path in re.findall(r"(/\S+) \(0x", linked.stdout)}
    # The image's /lib leads to /usr/lib.
    names = {str(path.parent.resolve() / path.name) for path in found}
    names |= {str(path.resolve()) for path in found} | {p for p in PLACES if Path(p).exists()}
    return sorted(name.lstrip("/") for name in names if not OF_THE_IMAGE.search(name))
