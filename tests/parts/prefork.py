"""The `resolver` script for tests that start it often: see `prefork_server.py`."""

import atexit
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

CLIENT = Path(__file__).with_name("prefork_client.py")


@cache
def server_folder() -> tuple[Path, int]:
    """Return the folder of the server's socket, and the process whose end is the server's. All
    workers of a test run share a server."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    owner = os.getppid() if run else os.getpid()
    folder = Path(tempfile.gettempdir(), f"resolver-prefork-{run or owner}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if not run:
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder, owner


def preforked_script(installed: Path) -> Path:
    """Return a script that does what the installed one does."""
    folder, owner = server_folder()
    script = folder / f"{os.getpid()}" / "resolver"
    script.parent.mkdir(exist_ok=True)
    # Not a shell script: shells drop variables whose names they can't use, as INPUT_MAX-BUDGET.
    given = [str(folder), str(installed), str(owner)]
    script.write_text(
        f"#!{sys._base_executable} -IS\n"  # type: ignore[attr-defined]
        f"import sys\nsys.argv[1:1] = {given!r}\n__file__ = {str(CLIENT)!r}\n"
        "exec(open(__file__).read())\n"
    )
    script.chmod(0o755)
    return script
