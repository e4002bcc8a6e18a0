"""`Killer`: runs `resolver` command lines that are killed (SIGKILL) at a moment they are told.

Its program is started once and forks for each command line, so that Python and litellm are loaded
once. The moments are those at which the world changes: right before or after the N-th event is
durable, or right before a step that Python itself announces (an audit event: a request, a child,
a rename).

    python -m tests.parts.killer < ORDERS > REPORTS

One JSON object a line: `{"args": [...], "environment": {...}, "log": PATH, "moment": {...}}` in,
`{"status": wait status}` out. What the command line prints goes to the file LOG.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from resolver.cli.main import run
from resolver.events.log import Event
from resolver.events.stream import JsonlStore

LOADED_ONCE = (
    "litellm",
    "litellm.responses.mcp.chat_completions_handler",
    "litellm.proxy.openai_files_endpoints.common_utils",
    "openai.resources.chat",
    "resolver.cli.resolve",
)
"""What a command line would load by itself, and what takes longest."""


@pytest.fixture(scope="session")
def killer_program() -> Iterator["subprocess.Popen[str]"]:
    """The program, started once: it loads litellm."""
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.parts.killer"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield program
    program.communicate()


class Killer:
    """Gives the program its orders. `environment` is that of the command lines."""

    def __init__(
        self, program: "subprocess.Popen[str]", folder: Path, environment: Mapping[str, str]
    ) -> None:
        self.environment = environment
        self._log = folder / "killer.log"
        self._program = program

    def run(self, *args: str | Path, **moment: str | int | bool) -> int:
        """Exit code of a command line, or the negative signal that ended it.

        moment: event=N with before=True or not; kind=NAME for the first event of that kind; or
            audit=NAME and word=TEXT.
        """
        order = {
            "args": [str(arg) for arg in args],
            "environment": dict(self.environment),
            "log": str(self._log),
            "moment": moment,
        }
        assert self._program.stdin is not None and self._program.stdout is not None
        self._program.stdin.write(json.dumps(order) + "\n")
        self._program.stdin.flush()
        status: int = json.loads(self._program.stdout.readline())["status"]
        return os.waitstatus_to_exitcode(status)

    @property
    def printed(self) -> str:
        """What all command lines have printed."""
        return self._log.read_text() if self._log.exists() else ""


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_around_append(number: int, before: bool) -> None:
    """Die before, or right after, the event `number` (the file's, from 0) is on the disk."""
    append = JsonlStore.append

    def deadly(store: JsonlStore, event: Event) -> None:
        if before and event.id >= number:
            _die()
        append(store, event)
        if event.id >= number:
            _die()

    JsonlStore.append = deadly  # type: ignore[method-assign]


def kill_after_kind(kind: str) -> None:
    """Die right after the first event of the kind is on the disk."""
    append = JsonlStore.append

    def deadly(store: JsonlStore, event: Event) -> None:
        append(store, event)
        if event.kind == kind:
            _die()

    JsonlStore.append = deadly  # type: ignore[method-assign]


def kill_at_step(name: str, word: str) -> None:
    """Die right before the first audit event `name` whose arguments hold `word`."""

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == name and word in " ".join(map(str, args)):
            _die()

    sys.addaudithook(hook)


def _arm(moment: dict[str, Any]) -> None:
    if "event" in moment:
        kill_around_append(moment["event"], moment.get("before", False))
    elif "kind" in moment:
        kill_after_kind(moment["kind"])
    elif "audit" in moment:
        kill_at_step(moment["audit"], moment["word"])


def _obey(order: dict[str, Any]) -> None:
    """In the forked child: never returns."""
    output = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    code = 70
    try:
        _arm(order["moment"])
        code = run(order["args"], order["environment"])
    finally:
        if sys.exc_info()[0]:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Obey until stdin ends."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    for name in LOADED_ONCE:
        importlib.import_module(name)
    importlib.import_module("litellm").encoding  # noqa: B018 - a table that is loaded when asked for
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _obey(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(json.dumps({"status": status}), flush=True)


if __name__ == "__main__":
    main()
