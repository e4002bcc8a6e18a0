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
    """Return the path of the interpreter with this name, "" if there is none."""
    path = shutil.which(name)
    if not path:
        return ""
    # pyenv puts a launcher there for each version that it has, and starts only what is selected.
    selected = {**os.environ, "PYENV_VERSION": Path(name).name.removeprefix("python")}
    done = subprocess.run(
        [path, "-c", "import sys; print(sys.executable)"],
        env=selected,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else ""
