"""Playwright's MCP server and this machine's Chromium: as an image, and on a PATH."""

import json
import os
import re
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
) -> str:
    """The image's name. It is made once for each Chromium, in about ten seconds."""
    version = subprocess.run(
        [chromium_program, "--version"], capture_output=True, text=True, check=True
    ).stdout
    number = re.search(r"[0-9]+(?:\.[0-9]+)+", version)
    name = f"resolver-test/browser:{number[0] if number else 'unknown'}"
    if engine.images.list(name=name):
        return name
    # Copied and committed, because a builder would write all of it three times.
    made = _docker(
        "create", "--network", "none", python_image, "useradd", "--create-home", "browser"
    )
    files = _files_of(CHROMIUM, browser_packages.node)
    with subprocess.Popen(
        ["tar", "--hard-dereference", "-cf", "-", "-C", "/", *files], stdout=subprocess.PIPE
    ) as packed:
        subprocess.run(["docker", "cp", "-q", "-", f"{made}:/"], stdin=packed.stdout, check=True)
    _docker("cp", "-q", browser_packages.node, f"{made}:/usr/local/bin/node")
    _docker("cp", "-q", browser_packages.modules, f"{made}:/opt/node_modules")
    _docker("start", "-a", made)
    server = ["node", "/opt/node_modules/@playwright/mcp/cli.js"]
    entrypoint = json.dumps([*server, "--executable-path", "/usr/bin/chromium"])
    changes = ["-c", "USER browser", "-c", f"ENTRYPOINT {entrypoint}"]
    _docker("commit", *changes, made, name)
    _docker("rm", made)
    return name


def _docker(*words: str | Path) -> str:
    done = subprocess.run(["docker", *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


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
