"""One bash process: start it, give it a command, interrupt it, end it.

bash.py decides what happens if the process dies or stops responding.

The shell is interactive, without line editing and with job control, and leads a session on a
pseudo-terminal (pty(7)). The terminal is the standard input of commands: programs can be answered,
and Ctrl-C reaches exactly the foreground job and returns the shell to its top level with all its
state. The output is a pipe, so that there are no colours, no pager, no echo and no CR, and the
writes of several programs arrive in order. A command is written to a file that the shell sources;
the shell's own input carries only the line that does so.
"""

import array
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import termios
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Literal, NamedTuple

from .environment import Outputs
from .processes import Family, is_stopped, session_members, signal_group
from .pump import Event, Pump, wide_pipe

# What a command prints must not be mistaken for the shell's own report on it. So the shell reports
# on a second pipe, CONTROL, which the command never holds: RUN_SOURCE closes these descriptors for
# the sourced file. The numbers are far above those that scripts use and that bash allocates for
# itself (from 10 upwards, and 255).
CONTROL, OUTPUT, TERMINAL = 240, 241, 242
"""Descriptors of the shell itself; a redirection closes them for every command that it runs."""

LAUNCH: Final = (
    f'exec {TERMINAL}<>"$1" {CONTROL}>&"$2" {OUTPUT}>&"$3"; control=$2 output=$3; '
    'exec {control}>&- {output}>&-; exec "$0" --norc --noprofile --noediting -i'
)
"""Command line of the first bash, which replaces itself with the interactive one.

The process is the leader of a new session without a terminal, so that opening one makes it the
controlling terminal. Source: credentials(7), open(2) (O_NOCTTY). The arguments are the terminal and
the numbers under which the process inherits the pipes CONTROL and OUTPUT.
"""

SETUP: Final = """PS1= PS2=; set +o history +H; history -c; unset HISTFILE MAILCHECK
trap {last_words} EXIT
"""
"""First input of the shell: no prompts, no history, a trap that saves the state on exit."""

SAVE_STATE: Final = r'\builtin printf "%s\0" "$PWD" >{saved}; \builtin declare -px >>{saved}'
"""Saves the directory and the exported variables in a file; the arguments of the EXIT trap."""

# `\builtin` bypasses functions and aliases that the agent may have defined under these names. The
# report is: token, exit status, shell options ($-), directory and `declare -px`, separated by NUL,
# which no variable can hold. The random token marks where the report begins and ends, in case
# something else has written to the pipe (through /proc/PID/fd).
RUN_SOURCE: Final = rf"""
\builtin . {{source}} <&{TERMINAL} >&{OUTPUT} 2>&1 {CONTROL}>&- {OUTPUT}>&- {TERMINAL}>&-
"""
"""Input that runs the command's file."""

REPORT: Final = rf"""{{{{ \builtin printf '{{token}}\000%s\000%s\000%s\000' "$?" "$-" "$PWD"
\builtin declare -px
\builtin printf '\000{{token}}\000'; }}}} >&{CONTROL}

"""
"""Input that reports on CONTROL how the command before it ended."""

SET_STATUS: Final = "[[ $- == *e* ]] || (exit {status})"
"""Sets `$?` for the next command, unless `set -e` is on, which would end the shell."""

INTERRUPTED_STATUS: Final = 128 + signal.SIGINT
"""Exit status of a command that SIGINT has ended."""

READY_SECONDS: Final = 5.0
"""Seconds that a new or interrupted shell has to do what it was sent.

An interrupted one that does not is killed, and its functions and variables are lost.
"""

LATE_REPORT_SECONDS: Final = 0.5
"""Seconds until a report that is in the pipe already must have been read by the pump's thread."""

FIRST_CHECK_SECONDS: Final = 1.0
"""Seconds until the first check whether a command has ended without a report.

The interval doubles after each check.
"""

READ_CALLS: Final = (b"0 0x0 ", b"63 0x0 ")
"""Beginnings of /proc/PID/syscall (proc(5)) in a read(2) of descriptor 0, x86_64 and aarch64."""

SPARE_FOLDER: Final = "/dev/shm"
"""Folder of the command's file if the disk is full: the command may be the one that frees space."""

KEYS: Final = {"C-c": b"\x03", "C-d": b"\x04", "C-z": b"\x1a", "C-\\": b"\x1c"}
"""Keys that can be sent to a program, and the bytes that a terminal sends for them."""

MAX_LINE_BYTES: Final = 3000
"""Bytes that are sent at once to a terminal in canonical mode.

It holds lines of at most 4095 bytes (termios(3)); a longer line is passed on in parts, each ended
by Ctrl-D, which makes the typed part available without a newline.
"""


class ShellState(NamedTuple):
    """The state that a new shell takes over from its predecessor."""

    cwd: str
    exported: str  # lines as printed by `declare -px`


class CommandFinished(NamedTuple):
    """The end of the last command: its status and the state of the shell."""

    status: int
    state: ShellState
    restricted: bool  # after `set -r`, which makes the shell unable to source another file


def _open_terminal() -> tuple[int, int]:
    """Return (master, slave) of a pseudo-terminal without echo and output processing."""
    master, slave = os.openpty()
    settings = termios.tcgetattr(slave)
    # The agent should see the programs' own bytes: no CR before LF, and no echo of the input.
    settings[1] &= ~termios.OPOST
    settings[3] &= ~(termios.ECHO | termios.ECHONL | termios.ECHOCTL)
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    os.set_blocking(master, False)
    return master, slave


def check_terminals() -> None:
    """Raise OSError if the machine provides no pseudo-terminal: no command could run."""
    for descriptor in _open_terminal():
        os.close(descriptor)


class Shell:
    """A running bash process. Raises OSError if it can't be started."""

    def __init__(
        self,
        family: Family,
        bash: str,
        environment: Mapping[str, str],
        folder: str,
        new_spool: Outputs,
    ) -> None:
        self._family = family
        self._files = _make_folder(new_spool.scratch)
        self.source = os.path.join(self._files, "command")
        """Path of the file with the command, which also appears in the shell's error messages."""
        self._master, self._slave = _open_terminal()
        control, control_writer = os.pipe()
        output, output_writer = wide_pipe()
        self._output = output
        os.set_blocking(output, False)
        stdin, self._stdin = os.pipe()
        null_output = os.open(os.devnull, os.O_WRONLY)
        # Popen passes descriptors on under their own numbers only. This process may use the shell's
        # numbers for something else, so the pipes get free ones above them, and the shell moves
        # them.
        passed = [
            fcntl.fcntl(writer, fcntl.F_DUPFD_CLOEXEC, TERMINAL + 1)
            for writer in (control_writer, output_writer)
        ]
        with family.starting(
            [bash, "--norc", "--noprofile", "-c", LAUNCH, bash, os.ttyname(self._slave)]
            + [str(descriptor) for descriptor in passed],
            environment=environment,
            folder=folder,
            stdin=stdin,
            output=null_output,
            passed=passed,
            kept=(self._stdin, output, control, self._master, self._slave),
            given=(stdin, null_output, control_writer, output_writer, *passed),
        ) as self.process:
            self.pump = Pump(self.process, [output, self._master], control, new_spool)
        self._token = b""
        self._is_interrupted = False
        save_state = SAVE_STATE.format(saved=_quoted(self._saved_state_file))
        self._write_input(SETUP.format(last_words=_quoted(save_state)))

    @property
    def _saved_state_file(self) -> str:
        return os.path.join(self._files, "state")

    def start(self, command: str, last_status: int) -> bool:
        """Give a command to the shell, with `last_status` as its initial `$?`.

        Return True if there is output from before, which nobody has taken yet. Raises OSError if no
        file can hold the command.
        """
        text = command.encode("utf-8", "surrogateescape") + b"\n"
        self._is_interrupted = False
        try:
            self.source = _write_file(os.path.join(self._files, "command"), text)
        except OSError:
            self.source = _write_file(
                os.path.join(SPARE_FOLDER, os.path.basename(self._files)), text
            )
        return self._run_source(SET_STATUS.format(status=last_status) if last_status else "")

    def restore(self, state: ShellState) -> None:
        """Give a new shell the directory and the exported variables of an old one."""
        self.start(f"{state.exported}\n\\builtin cd -- {_quoted(state.cwd)}", 0)
        self.wait(READY_SECONDS)
        self.pump.take()

    def wait(self, timeout: float, quiet: float | None = None) -> Event | Literal["lost"]:
        """Wait as Pump.wait does, with one more result, "lost".

        It means that the command has ended but the shell's report did not arrive, because the
        command has closed a descriptor or replaced a builtin.
        """
        deadline = time.monotonic() + timeout
        check_interval = FIRST_CHECK_SECONDS
        while True:
            seconds_left = deadline - time.monotonic()
            event = self.pump.wait(min(seconds_left, check_interval), quiet)
            if event != "timeout":
                return event
            if self._waits_for_input():
                return self._late_report()
            if seconds_left <= check_interval:
                return "timeout"
            if is_stopped(self.process.pid):  # by `suspend`; nothing else would continue it
                signal_group(self.process.pid, signal.SIGCONT)
            check_interval *= 2

    def finished(self) -> CommandFinished | None:
        """Return how the command ended, after `wait` returned "done".

        None if something else wrote to the shell's own pipes.
        """
        report = self.pump.message.partition(self._token + b"\0")[2]
        status, mark, remaining = report.partition(b"\0")
        if not mark or not status.isdigit():
            return None
        options, _, remaining = remaining.partition(b"\0")
        cwd, _, exported = remaining.partition(b"\0")
        return CommandFinished(int(status), _state(cwd, exported), b"r" in options)

    def read_saved_state(self) -> ShellState | None:
        """Return the state that the shell saved on a regular exit, or None.

        Valid after `wait` returned "ended".
        """
        try:
            with open(self._saved_state_file, "rb") as file:
                cwd, mark, exported = file.read().partition(b"\0")
        except OSError:
            return None
        return _state(cwd, exported) if mark else None

    def type(self, text: str, timeout: float) -> bool:
        """Send a line, or one of KEYS, to the running program; return False if some was left."""
        if text in KEYS:
            self._is_interrupted = self._is_interrupted or text == "C-c"
            return self._write_terminal(KEYS[text], timeout)
        line = text.encode("utf-8", "surrogateescape") + b"\n"
        if len(line) <= MAX_LINE_BYTES or not termios.tcgetattr(self._master)[3] & termios.ICANON:
            return self._write_terminal(line, timeout)
        parts = [
            line[start : start + MAX_LINE_BYTES] for start in range(0, len(line), MAX_LINE_BYTES)
        ]
        return self._write_terminal(KEYS["C-d"].join(parts), timeout)

    def interrupt(self) -> None:
        """Send SIGINT to the foreground job and to the shell, whatever the terminal's mode."""
        self._is_interrupted = True
        for group in {self._foreground(), self.process.pid}:
            signal_group(group, signal.SIGINT)
        signal_group(self.process.pid, signal.SIGCONT)

    def end_job(self, interrupt_seconds: float) -> CommandFinished | None:
        """End the running command: with SIGINT, and after `interrupt_seconds` seconds with SIGKILL.

        Return None if the shell is not ready within READY_SECONDS after that.
        """
        self.interrupt()
        if self.wait(interrupt_seconds) == "timeout":
            job = self._foreground()
            if job != self.process.pid:
                signal_group(job, signal.SIGKILL)
            self._is_interrupted = True
            signal_group(self.process.pid, signal.SIGINT)
            self.wait(READY_SECONDS)
        return self.finished()

    def has_jobs(self) -> bool:
        """Return True if the shell has ended and has left processes behind."""
        return bool(session_members(self.process.pid))

    def close(self) -> None:
        """Kill the shell and its whole session, and close the descriptors."""
        self._family.end(self.process)
        self.pump.close()
        for descriptor in (self._stdin, self._output, self._master, self._slave):
            os.close(descriptor)
        shutil.rmtree(self._files, ignore_errors=True)
        if self.source.startswith(f"{SPARE_FOLDER}/"):
            with suppress(OSError):
                os.unlink(self.source)

    def _late_report(self) -> Event | Literal["lost"]:
        """Return how a command ended whose shell waits for input, or "lost" if it does not say."""
        event = self.pump.wait(LATE_REPORT_SECONDS)
        if not self._is_interrupted:
            return "lost" if event == "timeout" else event
        # An interactive bash that gets SIGINT discards the line that it is reading. That may have
        # been the report: bash(1), "SIGNALS". If the signal arrives just before read(2), bash
        # notices it only in the next line, which is discarded then: so this may happen again.
        self._is_interrupted = False
        deadline = time.monotonic() + READY_SECONDS
        while event == "timeout" and time.monotonic() < deadline:
            if self._waits_for_input():
                self._request(f"{SET_STATUS.format(status=INTERRUPTED_STATUS)}\n")
            event = self.pump.wait(LATE_REPORT_SECONDS)
        return "lost" if event == "timeout" else event

    def _waits_for_input(self) -> bool:
        """Return True if the shell has consumed its input and blocks in read(2) for more.

        False if /proc is unavailable.
        """
        # All three must hold: no byte is left in the pipe, the shell is in read(2) of descriptor 0,
        # and descriptor 0 is that pipe (a command may have redirected it with `exec <file`).
        unread = array.array("i", [0])
        fcntl.ioctl(self._stdin, termios.FIONREAD, unread)
        process_folder = f"/proc/{self.process.pid}"
        try:
            with open(f"{process_folder}/syscall", "rb") as file:
                is_reading = file.read().startswith(READ_CALLS)
            is_own_input = os.path.samestat(
                os.stat(f"{process_folder}/fd/0"), os.fstat(self._stdin)
            )
            return is_reading and is_own_input and not unread[0]
        except OSError:
            return False

    def _run_source(self, first_line: str) -> bool:
        """Let the shell run the command file. Return True if there is output from before.

        first_line: line to run first.
        """
        return self._request(f"{first_line}{RUN_SOURCE.format(source=_quoted(self.source))}")

    def _request(self, text: str) -> bool:
        """Give the shell lines to run, and REPORT. Return True if there is output from before."""
        token = os.urandom(16).hex()
        self._token = token.encode()
        has_earlier_output = self.pump.expect(b"\0" + self._token + b"\0")
        self._write_input(text + REPORT.format(token=token))
        return has_earlier_output

    def _write_input(self, line: str) -> None:
        with suppress(BrokenPipeError):  # the shell is gone; `wait` reports it
            os.write(self._stdin, line.encode())

    def _foreground(self) -> int:
        """Return the process group of the terminal's foreground job; the shell's own if unknown."""
        try:
            # 0 once the foreground job is gone, and a signal to group 0 would go to the server.
            return os.tcgetpgrp(self._master) or self.process.pid
        except OSError:
            return self.process.pid

    def _write_terminal(self, data: bytes, timeout: float) -> bool:
        """Write to the terminal; return False if the program does not read all of it in time."""
        deadline = time.monotonic() + timeout
        while data:
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                if time.monotonic() > deadline or self.pump.wait(0.02) != "timeout":
                    return False
            except OSError:
                return False
        return True


def _make_folder(scratch: str) -> str:
    """Return a new folder for the files of one shell; only its name if the disk is full."""
    try:
        os.makedirs(scratch, exist_ok=True)
        return tempfile.mkdtemp(prefix="shell-", dir=scratch)
    except OSError:
        return os.path.join(scratch, f"shell-{os.urandom(4).hex()}")


def _write_file(path: str, text: bytes) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(os.open(path, flags, 0o600), "wb", buffering=0) as file:
        while text:
            text = text[file.write(text) :]
    return path


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"


def _state(cwd: bytes, exported: bytes) -> ShellState:
    return ShellState(
        cwd.decode("utf-8", "surrogateescape"), exported.decode("utf-8", "surrogateescape")
    )


def syntax_error(bash: str, command: str, environment: Mapping[str, str]) -> str:
    """Return bash's error message if it can't parse the command; "" if it can. Nothing is run."""
    process = subprocess.run(
        [bash, "--norc", "--noprofile", "-O", "extglob", "-n"],
        input=command.encode("utf-8", "surrogateescape") + b"\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(environment),
        check=False,
    )
    message = process.stdout.decode("utf-8", "replace").replace(f"{bash}: ", "bash: ")
    return message if process.returncode else ""
