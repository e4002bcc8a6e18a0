"""The agent's bash session, which lives as long as the sandbox.

shell.py controls the process. This module decides what the agent sees of commands, input and
timeouts, and how a shell that is gone is replaced.
"""

import os
import re
import time
from collections.abc import Mapping
from typing import Final

from .environment import Outputs
from .processes import Family, MemoryKills, end_session
from .shell import KEYS, CommandFinished, Shell, ShellState, syntax_error
from .spool import Excerpt, readable
from .wire import CommandResult

QUIET_SECONDS: Final = 1.5
"""Seconds without output after which a program that was given input is assumed to wait for more."""

INTERRUPT_SECONDS: Final = 0.4
"""Seconds that an interrupted command has to end by itself before it is killed."""

MAX_FORMER_SHELLS: Final = 8
"""Maximum number of exited shells whose background jobs keep running, and whose pipes are read."""

PLAIN_LINE: Final = re.compile(r"[\w ./:,@%+-]*\Z", re.ASCII)
"""A line of plain words, for which no process is started to check its syntax."""

JOB_MESSAGE: Final = re.compile(r"^\[\d+\][+ -] +(?:Done|Exit \d+) .*\n?", re.MULTILINE)
"""Messages of job control about background jobs that ended, which are removed from the output."""

NEW_SHELL_NOTICE: Final = (
    "A new shell has the same directory and exported variables, not its functions, options and "
    "job list."
)
OUT_OF_MEMORY_NOTICE: Final = (
    "The sandbox reached its memory limit, and the kernel killed the process that used most."
)
STILL_RUNNING_NOTICE: Final = (
    "The command still runs. Wait for more output with an empty input, answer it, or send C-c. "
    "The next command that is not input ends it."
)


class Bash:
    """The bash session.

    Use it from one thread at a time; `interrupt` may be called from any thread.
    """

    def __init__(
        self,
        family: Family,
        bash: str,
        environment: Mapping[str, str],
        root: str,
        new_spool: Outputs,
    ) -> None:
        self._family = family
        self._bash = bash
        self._environment = environment
        self._root = root
        self._new_spool = new_spool
        self._memory_kills = MemoryKills()
        self._shell: Shell | None = None
        self._former_shells: list[Shell] = []
        self._state = ShellState(root, "")
        self._status = 0
        self._running = False
        self._interrupted = False
        self._shows_jobs = False

    def run(self, command: str, timeout: float, is_input: bool) -> CommandResult:
        """Run a command, or send input to the running one; see CommandResult.

        A command that can't be parsed is not started. Raises OSError if no bash can be started.
        """
        started = time.monotonic()
        if is_input or (self._running and command in KEYS):
            return self._send_input(command, timeout, started)
        notices = []
        if self._running:
            notices.append(self._end_previous())
        if "\0" in command:
            command = command.replace("\0", "")
            notices.append("NUL characters were removed from the command.")
        if not PLAIN_LINE.match(command):
            command_to_check = command
            syntax_message = self._family.with_room(
                lambda: syntax_error(self._bash, command_to_check, self._environment)
            )
            if syntax_message:
                notices.append("Nothing was run: bash can't parse the command.")
                return self._result(Excerpt(readable(syntax_message), 0, None), 2, started, notices)
        if self._shell and self._shell.pump.ended:
            notices.append(self._replace_ended(self._shell))
        shell = self._shell or self._start()
        self._shows_jobs = "jobs" in command
        self._running, self._interrupted = True, False
        if shell.start(command, self._status):
            notices.append("The output begins with what background jobs wrote before.")
        return self._collect(shell, timeout, None, started, notices)

    def interrupt(self) -> bool:
        """Send Ctrl-C to the running command; a second call kills its shell.

        Return False if no command is running.
        """
        shell = self._shell
        if shell is None or not self._running or shell.pump.ended:
            return False
        if self._interrupted:
            end_session(shell.process.pid)
        else:
            shell.interrupt()
        self._interrupted = True
        return True

    def close(self) -> None:
        """Kill the shell and its jobs."""
        for shell in (*self._former_shells, *([self._shell] if self._shell else ())):
            shell.close()
        self._former_shells.clear()
        self._shell = None
        self._running = False

    def _send_input(self, text: str, timeout: float, started: float) -> CommandResult:
        """Send a line or key to the running program, and wait for its output."""
        shell = self._shell
        if shell is None or not self._running:
            excerpt = shell.pump.take().excerpt() if shell else Excerpt("", 0, None)
            notices = ["No command is running, so nothing was sent."]
            return self._result(excerpt, self._status, started, notices)
        if not text:
            return self._collect(shell, timeout, None, started, [])
        notices = []
        shell.pump.reset_silence()
        if not shell.type(text, timeout):
            notices.append("The program did not read all of the input.")
        return self._collect(shell, timeout, QUIET_SECONDS, started, notices)

    def _collect(
        self, shell: Shell, timeout: float, quiet: float | None, started: float, notices: list[str]
    ) -> CommandResult:
        """Wait for the running command and return its result.

        quiet: also return after this many seconds without output.
        """
        event = shell.wait(timeout, quiet)
        excerpt = self._take_output(shell)
        finished = shell.finished()
        if event == "done" and finished:
            self._record_result(finished)
            if finished.restricted:
                notices.append(self._give_up(shell, "was restricted by `set -r`"))
            if self._status and self._memory_kills.more():
                notices.append(OUT_OF_MEMORY_NOTICE)
            return self._result(excerpt, self._status, started, notices)
        if event in ("done", "lost"):
            notices.append(self._give_up(shell, "could not say any more how the command ended"))
            return self._result(excerpt, self._status, started, notices)
        if event == "ended":
            notices.append(self._replace_ended(shell))
            if self._memory_kills.more():
                notices.append(OUT_OF_MEMORY_NOTICE)
            return self._result(excerpt, self._status, started, notices)
        notices.append(
            f"No end after {timeout:g} s. {STILL_RUNNING_NOTICE}"
            if event == "timeout"
            else STILL_RUNNING_NOTICE
        )
        return self._result(excerpt, None, started, notices, timed_out=event == "timeout")

    def _record_result(self, finished: CommandFinished) -> None:
        self._running = False
        self._status, self._state = finished.status, finished.state

    def _take_output(self, shell: Shell) -> Excerpt:
        """Return the output without the command file's path and without notes of job control."""
        excerpt = shell.pump.take().excerpt()
        return Excerpt(self._clean(shell, excerpt.text), excerpt.omitted, excerpt.path)

    def _clean(self, shell: Shell, text: str) -> str:
        text = text.replace(f"{shell.source}: ", "")
        return text if self._shows_jobs else JOB_MESSAGE.sub("", text)

    def _start(self) -> Shell:
        folder = self._root if os.path.isdir(self._root) else "/"
        shell = self._family.with_room(
            lambda: Shell(self._family, self._bash, self._environment, folder, self._new_spool)
        )
        self._shell = shell
        return shell

    def _end_previous(self) -> str:
        """End the running command so that the shell is free again, and return a notice about it.

        If the shell does not become ready, it is killed and replaced.
        """
        shell = self._shell
        assert shell is not None
        finished = shell.end_job(INTERRUPT_SECONDS)
        if finished:
            self._record_result(finished)
            last_output = shell.pump.take().excerpt().text
            quoted_output = (
                f" Its last output: {last_output[-400:]!r}." if last_output.strip() else ""
            )
            return f"The previous command was still running and has been ended.{quoted_output}"
        shell.close()
        self._shell = None
        self._running = False
        self._status = 137
        self._start().restore(self._state)
        return (
            "The previous command was still running and could only be killed with its shell. "
            f"{NEW_SHELL_NOTICE}"
        )

    def _give_up(self, shell: Shell, reason: str) -> str:
        """Replace a shell that is alive but unusable, and return a notice.

        The old shell and its jobs are killed.
        """
        shell.close()
        self._shell = None
        self._running = False
        self._status = self._status or 137
        self._start().restore(self._state)
        return f"The shell {reason}, and was killed. {NEW_SHELL_NOTICE}"

    def _replace_ended(self, shell: Shell) -> str:
        """Start the next shell after one exited, was killed or replaced itself; return a notice."""
        code = shell.process.returncode
        self._running = False
        self._status = code if code >= 0 else 128 - code
        self._state = shell.read_saved_state() or self._state
        if shell.has_jobs():
            self._former_shells.append(shell)
        else:
            shell.close()
        while len(self._former_shells) > MAX_FORMER_SHELLS:
            self._former_shells.pop(0).close()
        self._shell = None
        self._start().restore(self._state)
        ending = f"exited with code {code}" if code >= 0 else f"was killed by signal {-code}"
        return f"The shell {ending}. {NEW_SHELL_NOTICE}"

    def _result(
        self,
        excerpt: Excerpt,
        status: int | None,
        started: float,
        notices: list[str],
        *,
        timed_out: bool = False,
    ) -> CommandResult:
        return CommandResult(
            output=excerpt.text,
            exit_code=status,
            cwd=readable(self._state.cwd),
            timed_out=timed_out,
            omitted=excerpt.omitted,
            output_file=excerpt.path,
            notice=" ".join(notices),
            seconds=round(time.monotonic() - started, 3),
        )
