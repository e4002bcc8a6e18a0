"""A client of the wire, written from its contract alone: lines of JSON-RPC to a real process."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


class Connection:
    """One server process; its standard error goes to the test's own."""

    def __init__(self, main: Path, root: Path, scratch: Path, bash: str, *more: str) -> None:
        git = shutil.which("git") or "/usr/bin/git"
        places = ["--root", str(root), "--scratch", str(scratch), "--bash", bash, "--git", git]
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(main), *places, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdin and self.process.stdout
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        self._id = 0

    def raw(self, data: bytes) -> None:
        self._stdin.write(data)
        self._stdin.flush()

    def send(self, method: str, **params: Any) -> int:
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self.raw(json.dumps(message).encode() + b"\n")
        return self._id

    def receive(self) -> dict[str, Any]:
        line = self._stdout.readline()
        if not line:
            raise EOFError
        answer: dict[str, Any] = json.loads(line)
        assert answer["jsonrpc"] == "2.0"
        return answer

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the result; a refusal raises an AssertionError that shows it."""
        id = self.send(method, **params)
        answer = self.receive()
        assert answer["id"] == id and "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def refusal(self, method: str, **params: Any) -> dict[str, Any]:
        self.send(method, **params)
        error: dict[str, Any] = self.receive()["error"]
        return error

    def shell(self, command: str, timeout: float = 10, is_input: bool = False) -> dict[str, Any]:
        return self.call("run_command", command=command, timeout=timeout, is_input=is_input)

    def end_of_input(self) -> int:
        self._stdin.close()
        return self.process.wait(120)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._stdin.close()
        self._stdout.close()
