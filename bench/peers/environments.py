"""Virtual environments of the peers, one each, with the versions in locks/NAME.txt."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

LOCKS = Path(__file__).parent / "locks"
FOLDER = Path(__file__).parent / ".environments"
PYTHONS = ("python3.12", "python3.13")
"""Versions that all peers support."""


def peer_python(name: str) -> str:
    """Return the Python of the peer's environment, made if needed; "" if that fails."""
    lock = LOCKS / f"{name}.txt"
    base = next(
        filter(None, map(_working_python, (os.environ.get("PEER_PYTHON", ""), *PYTHONS))), ""
    )
    if not base:
        print(f"{name} is left out: there is no Python 3.12; name one with PEER_PYTHON")
        return ""
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    environment = FOLDER / f"{name}-{digest}"
    python = environment / "bin" / "python"
    if (environment / "complete").exists():
        return str(python)
    shutil.rmtree(environment, ignore_errors=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = ([base, "-m", "venv", str(environment)], [*install, "-r", str(lock)])
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name} is left out: {done.stderr.strip()[-500:]}")
            return ""
    (environment / "complete").touch()
    return str(python)


def _working_python(name: str) -> str:
    path = shutil.which(name)
    if not path:
        return ""
    # A version manager's launcher may be there without the version.
    done = subprocess.run([path, "--version"], capture_output=True, check=False)
    return path if done.returncode == 0 else ""
