"""The same tortures for two ways to run an agent's commands: ours and SWE-ReX.

    python bench/torture_compare.py [--rex PYTHON]

Prints a Markdown table of the cases and their results. PYTHON is an interpreter of an
environment of its own that has `swe-rex`; without it that column is left out. Both run on this
machine. A case is survived when its own answer is right and
the next command, in the same session, is answered in ten seconds with the state kept.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Case:
    """right: whether output and exit code (None: not known) are what they should be."""

    name: str
    command: str
    right: Callable[[str, int | None], bool]
    timeout: float = 5.0


def _ends(text: str, code: int) -> Callable[[str, int | None], bool]:
    return lambda out, found: out.strip().endswith(text) and found == code


def _starts(text: str) -> Callable[[str, int | None], bool]:
    return lambda out, found: out.startswith(text) and found == 0


CASES = [
    Case("several lines and a here-document", "for i in 1 2\ndo echo $i\ndone\ncat <<'X'\n$HOME\nX",
         _ends("$HOME", 0)),
    Case("a syntax error runs nothing", "echo ran\nif true; then",
         lambda out, code: "syntax" in out and not out.startswith("ran") and code not in (0, None)),
    Case("exit code of a subshell", "(exit 3)", lambda _, code: code == 3),
    Case("no newline at the end", "printf abc", lambda out, code: (out, code) == ("abc", 0)),
    Case("NUL and broken UTF-8", "printf 'a\\0b\\377c'; echo end", _ends("end", 0)),
    Case("stdout and stderr in order", "for i in 1 2 3; do echo o$i; echo e$i >&2; done",
         lambda out, _: out.split() == ["o1", "e1", "o2", "e2", "o3", "e3"]),
    Case("a million lines", "seq 1 1000000", _starts("1\n2\n"), 30),
    Case("a line of 5 MB", "head -c 5000000 /dev/zero | tr '\\0' a; echo; echo end",
         _ends("end", 0), 30),
    Case("a command of 300 kB", ": " + "y " * 150_000 + "\necho end", _ends("end", 0), 30),
    Case("set -e and a failure", "set -e; false; echo no", lambda _, code: code == 1),
    Case("exit 3", "echo bye; exit 3", lambda out, code: "bye" in out and code == 3),
    Case("kill -9 $$", "kill -9 $$", lambda _, code: code == 137),
    Case("exec another program", "exec sh -c 'echo x; exit 6'", lambda _, code: code == 6),
    Case("closed stdout", "exec >&-; true", lambda _, code: code == 0),
    Case("another PS1", "PS1='$ '; PS2='> '; echo on", _ends("on", 0)),
    Case("PROMPT_COMMAND", "PROMPT_COMMAND='echo noise'; echo on", _ends("on", 0)),
    Case("stty raw -echo", "stty raw -echo 2>/dev/null; echo on", _ends("on", 0)),
    Case("IFS of digits", "IFS=0123456789; (exit 5)", lambda _, code: code == 5),
    Case("a function named echo", "echo() { :; }; true", lambda _, code: code == 0),
    Case("imitated end of a command", "echo SHELLPS1PREFIX; echo EXITCODESTARTEXITCODEEND; false",
         lambda _, code: code == 1),
    Case("a background job", "sleep 8 & echo started",
         lambda out, code: "started" in out and code == 0),
    Case("a program that waits for input", "cat", lambda _, code: code is None, 1),
    Case("a timeout keeps the output", "echo begun; sleep 61.3",
         lambda out, code: "begun" in out and code is None, 1),
    Case("a program deaf to Ctrl-C", "trap '' INT; sleep 61.3", lambda _, code: code is None, 1),
    Case("suspend", "suspend -f", lambda _, code: code == 0, 5),
]  # fmt: skip


class Backend(Protocol):
    def run(self, command: str, timeout: float) -> tuple[str, int | None]: ...

    def close(self) -> None: ...


class Ours:
    """The sandbox's own bash, without a container around it."""

    def __init__(self) -> None:
        sys.path.insert(0, str(ROOT))
        from resolver.sandbox.bash import Bash
        from resolver.sandbox.environment import Outputs, shell_environment
        from resolver.sandbox.processes import Family

        self._folder = tempfile.mkdtemp()
        bash = shutil.which("bash") or "/bin/bash"
        known = shell_environment(os.environ, False, None, {}, bash)
        outputs = Outputs(f"{self._folder}/scratch")
        self._bash = Bash(Family(), bash, known, self._folder, outputs)

    def run(self, command: str, timeout: float) -> tuple[str, int | None]:
        result = self._bash.run(command, timeout, False)
        return result["output"], result["exit_code"]

    def close(self) -> None:
        self._bash.close()
        shutil.rmtree(self._folder)


class Rex:
    """SWE-ReX's local runtime, in a process of its environment that this file is run in again."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, __file__, "--serve-rex"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip

    def run(self, command: str, timeout: float) -> tuple[str, int | None]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([command, timeout]) + "\n")
        self._process.stdin.flush()
        output, code = json.loads(self._process.stdout.readline() or '["(it died)", -1]')
        return str(output), code

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()


def judge_backend(make: Callable[[], Backend], case: Case) -> str:
    """ "yes", or what was wrong; with the milliseconds that both commands took."""
    backend = make()
    try:
        backend.run("export KEPT=yes; cd /usr", 10)
        started = time.perf_counter()
        output, code = backend.run(case.command, case.timeout)
        answered = case.right(output, code)
        after, _ = backend.run("builtin echo $KEPT $PWD", 10)
        milliseconds = (time.perf_counter() - started) * 1000
    finally:
        backend.close()
    wrong = [] if answered else [f"answer (code {code})"]
    if "yes /usr" not in after:
        wrong.append("state lost" if after.strip() else "session dead")
    return f"{'yes' if not wrong else 'no: ' + ', '.join(wrong)} ({milliseconds:.0f} ms)"


def serve_rex() -> None:
    """Commands as JSON lines from stdin, answers to stdout, through SWE-ReX."""
    import asyncio

    from swerex.runtime.abstract import BashAction, CreateBashSessionRequest
    from swerex.runtime.local import LocalRuntime

    async def answer(runtime: Any, command: str, timeout: float) -> list[Any]:
        action = BashAction(command=command, timeout=timeout, check="silent")
        try:
            found = await asyncio.wait_for(runtime.run_in_session(action), 45)
        except Exception as error:  # noqa: BLE001 - whatever it raises is its answer
            late = "Timeout" in type(error).__name__
            return [f"{type(error).__name__}", None if late else -1]
        return [found.output.replace("\r\n", "\n"), found.exit_code]

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # it logs to stdout

    async def serve() -> None:
        runtime = LocalRuntime()
        await runtime.create_session(CreateBashSessionRequest(startup_timeout=5))
        for line in sys.stdin:
            command, timeout = json.loads(line)
            print(json.dumps(await answer(runtime, command, timeout)), file=answers, flush=True)

    asyncio.run(serve())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rex", metavar="PYTHON")
    parser.add_argument("--serve-rex", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve_rex:
        serve_rex()
        return
    backends: dict[str, Callable[[], Backend]] = {"ours": Ours}
    if arguments.rex:
        backends["SWE-ReX"] = lambda: Rex(arguments.rex)
    print(f"| case | {' | '.join(backends)} |\n|---|{'---|' * len(backends)}")
    survived = dict.fromkeys(backends, 0)
    for case in CASES:
        row = []
        for name, make in backends.items():
            row.append(judge_backend(make, case))
            survived[name] += row[-1].startswith("yes")
        print(f"| {case.name} | {' | '.join(row)} |", flush=True)
    print(f"| **survived of {len(CASES)}** | {' | '.join(map(str, survived.values()))} |")


if __name__ == "__main__":
    main()
