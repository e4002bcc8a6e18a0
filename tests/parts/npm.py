"""Programs from npm: pinned by a lock file, installed once in the cache.

Their install scripts don't run.
"""

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.parts.missing import skip_without
from tests.parts.published import cache_folder, locked, npm_command


@dataclass(frozen=True)
class NpmPackages:
    """node: the program. modules: folder of the installed packages."""

    node: str
    modules: Path


def install_packages(packages: Path, name: str) -> NpmPackages:
    """Install what the folder's lock file lists. A machine without network skips.

    name: of the packages, for the cache and for messages.
    """
    npm = npm_command()
    digest = hashlib.sha256((packages / "package-lock.json").read_bytes()).hexdigest()[:16]
    folder = cache_folder() / f"{name}-{digest}"
    cache_folder().mkdir(parents=True, exist_ok=True)
    with locked(cache_folder() / f"{name}.lock"):
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(packages, folder)
            options = ["--ignore-scripts", "--no-audit", "--no-fund", "--cache", folder / "npm"]
            done = subprocess.run(
                [*npm, "ci", *options], cwd=folder, capture_output=True, text=True, timeout=300
            )
            shutil.rmtree(folder / "npm", ignore_errors=True)
            if done.returncode:
                shutil.rmtree(folder)
                skip_without(f"{name} from npm", done.stderr.strip()[-500:])
            (folder / "whole").touch()
    return NpmPackages(npm[0], folder / "node_modules")
