"""One bash process: started, given a command, interrupted, ended. What to do when it dies, or
does not come back, is decided in bash.py.

The shell is interactive, without line editing and with job control, and leads a session on a
pseudo-terminal. Standard input of commands is that terminal: it can be answered, Ctrl-C reaches
exactly the running job and throws the shell back to its top level with all its state. Output is a
pipe: no colours, no pager, no echo, no CR, and programs' writes arrive in the order they happen.
Commands come as a file that the shell sources; its own input carries only that line.
"""

import array
import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import termios
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

from .environment import Outputs
from .processes import Family, end_session, is_stopped, session_members, signal_group
from .pump import Event, Pump, wide_pipe

CONTROL, OUTPUT, TERMINAL = 240, 241, 242
"""Descriptors of the shell itself. Redirections close them for every command it runs."""

LAUNCH: Final = f'exec {TERMINAL}<>"$1"; exec "$0" --norc --noprofile --noediting -i'
"""Opening the terminal as leader of a new session makes it the controlling one."""

SETUP: Final = """PS1= PS2=; set +o history +H; history -c; unset HISTFILE MAILCHECK
trap {last_words} EXIT
"""
LAST_WORDS: Final = r'\builtin printf "%s\0" "$PWD" >{saved}; \builtin declare -px >>{saved}'
RUN: Final = rf"""{{before}}
\builtin . {{source}} <&{TERMINAL} >&{OUTPUT} 2>&1 {CONTROL}>&- {OUTPUT}>&- {TERMINAL}>&-
{{{{ \builtin printf '{{token}}\000%s\000%s\000%s\000' "$?" "$-" "$PWD"; \builtin declare -px
\builtin printf '\000{{token}}\000'; }}}} >&{CONTROL}

"""
STATUS: Final = "[[ $- == *e* ]] || (exit {status})"
FIRST_LOOK: Final = 1.0
"""Seconds until it is looked whether the shell goes on without saying so; then twice as long."""

READS: Final = (b"0 0x0 ", b"63 0x0 ")
"""The system call `read` of descriptor 0 on x86_64 and aarch64, as in /proc/PID/syscall."""

SPARE: Final = "/dev/shm"
"""Where commands are put when the disk is full: the one that frees it must still run."""

KEYS: Final = {"C-c": b"\x03", "C-d": b"\x04", "C-z": b"\x1a", "C-\\": b"\x1c"}
LONG_LINE: Final = 3000
"""A terminal that edits lines takes 4095 bytes; a longer one is pushed through with Ctrl-D."""


@dataclass(frozen=True)
class ShellState:
    """What a new shell is given of an old one."""

    cwd: str
    exported: str  # `declare -px` lines


@dataclass(frozen=True)
class CommandFinished:
    """How the last command ended."""

    status: int
    state: ShellState
    restricted: bool  # by `set -r`: it will source nothing more


def _open_terminal() -> tuple[int, int]:
    master, slave = os.openpty()
    settings = termios.tcgetattr(slave)
    settings[1] &= ~termios.OPOST
    settings[3] &= ~(termios.ECHO | termios.ECHONL | termios.ECHOCTL)
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    os.set_blocking(master, False)
    return master, slave


def check_terminals() -> None:
    """Raise OSError where the machine gives no pseudo-terminal: no command could be run then."""
    for descriptor in _open_terminal():
        os.close(descriptor)


class Shell:
    """A live bash. Raises OSError when it can't be started."""

    def __init__(
        self,
        family: Family,
        bash: str,
        environment: Mapping[str, str],
        folder: str,
        outputs: Outputs,
    ) -> None:
        self._family = family
        self._files = _own_folder(outputs.scratch)
        self.source = os.path.join(self._files, "command")
        """Path by which the shell, and its error messages, know the text of a command."""
        self._master, self._slave = _open_terminal()
        control, control_writer = os.pipe()
        output, output_writer = wide_pipe()
        self._output = output
        os.set_blocking(output, False)
        stdin, self._stdin = os.pipe()
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(control_writer, CONTROL)
        os.dup2(output_writer, OUTPUT)
        try:
            self.process = family.spawn(
                [bash, "--norc", "--noprofile", "-c", LAUNCH, bash, os.ttyname(self._slave)],
                environment=environment,
                folder=folder,
                stdin=stdin,
                output=nothing,
                passed=(CONTROL, OUTPUT),
            )
        finally:
            for descriptor in (stdin, nothing, control_writer, output_writer, CONTROL, OUTPUT):
                os.close(descriptor)
        self.pump = Pump(self.process, [output, self._master], control, outputs)
        self._token = b""
        last_words = LAST_WORDS.format(saved=_quoted(self._saved))
        self._tell(SETUP.format(last_words=_quoted(last_words)))

    @property
    def _saved(self) -> str:
        return os.path.join(self._files, "state")

    def start(self, command: str, last_status: int) -> bool:
        """Hand over a command; `$?` is `last_status` at its start. True: unasked output waits.

        Raises OSError where no file can hold the command.
        """
        text = command.encode("utf-8", "surrogateescape") + b"\n"
        try:
            self.source = _written(os.path.join(self._files, "command"), text)
        except OSError:
            self.source = _written(os.path.join(SPARE, os.path.basename(self._files)), text)
        return self._begin(STATUS.format(status=last_status) if last_status else "")

    def restore(self, state: ShellState) -> None:
        """Give a new shell the directory and the exported variables of an old one."""
        self.start(f"{state.exported}\n\\builtin cd -- {_quoted(state.cwd)}", 0)
        self.wait(5)
        self.pump.take()

    def wait(self, timeout: float, quiet: float | None = None) -> Event | Literal["lost"]:
        """As the pump's. "lost": the command has ended, but what the shell said of it went nowhere,
        because the command has closed a descriptor or replaced a builtin."""
        until = time.monotonic() + timeout
        look = FIRST_LOOK
        while True:
            rest = until - time.monotonic()
            event = self.pump.wait(min(rest, look), quiet)
            if event != "timeout":
                return event
            if self._waits_for_orders():
                event = self.pump.wait(0.1)
                return "lost" if event == "timeout" else event
            if rest <= look:
                return "timeout"
            if is_stopped(self.process.pid):  # by `suspend`: nobody else would wake it
                signal_group(self.process.pid, signal.SIGCONT)
            look *= 2

    def finished(self) -> CommandFinished | None:
        """After `wait` said done. None when something else wrote to the shell's own pipes."""
        said = self.pump.message.partition(self._token + b"\0")[2]
        status, mark, rest = said.partition(b"\0")
        if not mark or not status.isdigit():
            return None
        options, _, rest = rest.partition(b"\0")
        cwd, _, exported = rest.partition(b"\0")
        return CommandFinished(int(status), _state(cwd, exported), b"r" in options)

    def last_words(self) -> ShellState | None:
        """After `wait` said ended: what the shell saved on a regular exit."""
        try:
            with open(self._saved, "rb") as file:
                cwd, mark, exported = file.read().partition(b"\0")
        except OSError:
            return None
        return _state(cwd, exported) if mark else None

    def type(self, text: str, timeout: float) -> bool:
        """Send a line, or a key of KEYS, to the running program. False: it was not all taken."""
        if text in KEYS:
            return self._feed(KEYS[text], timeout)
        line = text.encode("utf-8", "surrogateescape") + b"\n"
        if len(line) <= LONG_LINE or not termios.tcgetattr(self._master)[3] & termios.ICANON:
            return self._feed(line, timeout)
        parts = [line[at : at + LONG_LINE] for at in range(0, len(line), LONG_LINE)]
        return self._feed(KEYS["C-d"].join(parts), timeout)

    def interrupt(self) -> None:
        """Ctrl-C for the job in the foreground and for the shell, whatever the terminal's mode."""
        for group in {self._foreground(), self.process.pid}:
            signal_group(group, signal.SIGINT)
        signal_group(self.process.pid, signal.SIGCONT)

    def end_job(self, patience: float, shell_patience: float) -> CommandFinished | None:
        """End the running command: Ctrl-C, and after `patience` seconds the hard way.

        None when the shell itself does not come back in `shell_patience` seconds after that.
        """
        self.interrupt()
        if self.wait(patience) == "timeout":
            job = self._foreground()
            if job != self.process.pid:
                signal_group(job, signal.SIGKILL)
            signal_group(self.process.pid, signal.SIGINT)
            self.wait(shell_patience)
        return self.finished()

    def has_jobs(self) -> bool:
        """After the shell has ended: processes that it left behind."""
        return bool(session_members(self.process.pid))

    def kill(self) -> None:
        """End the shell and all of its session."""
        end_session(self.process.pid)
        self.process.wait()

    def close(self) -> None:
        """Kill what is left and give the descriptors back."""
        self.kill()
        self._family.forget(self.process)
        self.pump.close()
        for descriptor in (self._stdin, self._output, self._master, self._slave):
            os.close(descriptor)
        shutil.rmtree(self._files, ignore_errors=True)
        if self.source.startswith(f"{SPARE}/"):
            with suppress(OSError):
                os.unlink(self.source)

    def _waits_for_orders(self) -> bool:
        """It has come to the end of its own input and reads on. False where /proc does not say."""
        unread = array.array("i", [0])
        fcntl.ioctl(self._stdin, termios.FIONREAD, unread)
        place = f"/proc/{self.process.pid}"
        try:
            with open(f"{place}/syscall", "rb") as file:
                reads = file.read().startswith(READS)
            own = os.path.samestat(os.stat(f"{place}/fd/0"), os.fstat(self._stdin))
            return reads and own and not unread[0]
        except OSError:
            return False

    def _begin(self, before: str) -> bool:
        token = secrets.token_hex(16)
        self._token = token.encode()
        waiting = self.pump.expect(b"\0" + self._token + b"\0")
        self._tell(RUN.format(before=before, source=_quoted(self.source), token=token))
        return waiting

    def _tell(self, line: str) -> None:
        with suppress(BrokenPipeError):  # the shell is gone: `wait` says so
            os.write(self._stdin, line.encode())

    def _foreground(self) -> int:
        try:
            return os.tcgetpgrp(self._master)
        except OSError:
            return self.process.pid

    def _feed(self, data: bytes, timeout: float) -> bool:
        until = time.monotonic() + timeout
        while data:
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                if time.monotonic() > until or self.pump.wait(0.02) != "timeout":
                    return False
            except OSError:
                return False
        return True


def _own_folder(scratch: str) -> str:
    """A folder for the files of one shell. Where the disk is full it is only a name."""
    try:
        os.makedirs(scratch, exist_ok=True)
        return tempfile.mkdtemp(prefix="shell-", dir=scratch)
    except OSError:
        return os.path.join(scratch, f"shell-{secrets.token_hex(4)}")


def _written(path: str, text: bytes) -> str:
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
    """What bash says against the command before anything of it has run; "" when it can run."""
    checked = subprocess.run(
        [bash, "--norc", "--noprofile", "-O", "extglob", "-n"],
        input=command.encode("utf-8", "surrogateescape") + b"\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(environment),
        check=False,
    )
    said = checked.stdout.decode("utf-8", "replace").replace(f"{bash}: ", "bash: ")
    return said if checked.returncode else ""
