"""The `%pip` magic of the IPython session: installs packages for the session's own Python.

That Python has no pip and runs from a read-only folder, so the pip of the image installs the
packages to a separate folder. The project's environment belongs to the shell and is not touched.
"""

import importlib
import os
import shlex
import shutil
import subprocess
import sys

from .file_functions import say

NO_PIP = (
    "Nothing was done: there is no pip here. The shell has the project's own tools and environment."
)
INSTALLED = "[Installed for this IPython session alone, not for the project.]"


def pip(line: str, folder: str) -> None:
    """Do what `%pip line` asks.

    Installed packages go to `folder`, which is appended to this process's sys.path.
    """
    python = shutil.which("python3") or shutil.which("python")
    if python is None or not _has_pip(python):
        say(NO_PIP)
        return
    words = shlex.split(line)
    if words[:1] != ["install"]:
        subprocess.run([python, "-m", "pip", *words], check=False)
        return
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    # pip would choose builds for the Python that runs it, which may have another version than the
    # session's. Source distributions can't be built for another Python, so wheels only.
    fitting = ["--only-binary=:all:", "--implementation", "cp", "--python-version", version]
    command = [python, "-m", "pip", *words, "--upgrade", "--target", folder, *fitting]
    if subprocess.run(command, check=False).returncode == 0:
        if folder not in sys.path:
            sys.path.append(folder)
        importlib.invalidate_caches()
        say(INSTALLED)


def _has_pip(python: str) -> bool:
    asked = subprocess.run(
        [python, "-c", "import pip"], stderr=subprocess.DEVNULL, env=os.environ, check=False
    )
    return asked.returncode == 0
