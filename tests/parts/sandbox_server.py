"""`resolver sandbox serve` as a process, over HTTP or TLS."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resolver.runtime.base import SandboxSpec
from resolver.runtime.remote.access import RemoteAccess
from resolver.runtime.remote.machine import RemoteMachine
from tests.parts.runs import RESOLVER
from tests.parts.waiting import until

SANDBOX_TOKEN = "st-canary-4c1d9e7f2b6a8035c1e9d7f3"


class SandboxServer:
    """A server that keeps its data and log in `folder`. It can be restarted on the same port."""

    def __init__(self, folder: Path, *options: str, **environment: str) -> None:
        self.folder = folder
        self.options = options
        self.port = 0
        self.url = ""
        self.name = ""
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/root"),
            "RESOLVER_DATA_DIR": str(folder),
            "RESOLVER_SANDBOX_TOKEN": SANDBOX_TOKEN,
            **{n: os.environ[n] for n in ("DOCKER_HOST", "XDG_CACHE_HOME") if n in os.environ},
            **environment,
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None
        return self._process

    @property
    def log(self) -> str:
        """Everything that it has logged, over all starts."""
        return (self.folder / "log").read_text()

    def start(self) -> "SandboxServer":
        """Start it and wait until it listens."""
        with (self.folder / "log").open("ab") as log:
            before = log.tell()
            self._process = subprocess.Popen(
                [RESOLVER, "sandbox", "serve", "--port", str(self.port), *self.options],
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        listening = re.compile(r"listening on (https?://[^ ,]*:(\d+)), as (\S+)")
        process = self.process
        until(lambda: listening.search(self.log, before) or process.poll() is not None)
        found = listening.search(self.log, before)
        assert found, f"it does not listen: {self.log}"
        self.url, self.port, self.name = found[1], int(found[2]), found[3]
        return self

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, wait for the end, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(120)

    def close(self) -> None:
        """End it, unless it has ended already."""
        if self._process is not None and self._process.poll() is None:
            self.end()

    def access(self, **more: Any) -> RemoteAccess:
        """Return a client's access to it."""
        return RemoteAccess(**{"url": self.url, "token": SANDBOX_TOKEN, **more})

    def machine(self, **fields: Any) -> RemoteMachine:
        """Return a sandbox of the server, with these fields of SandboxSpec."""
        return RemoteMachine(SandboxSpec(**{"image": "", "run": "test", **fields}), self.access())

    def check_log(self) -> None:
        """Check that the log has no secret and no error."""
        assert SANDBOX_TOKEN not in self.log
        for word in ("Traceback", "Exception", "ERROR", "CRITICAL"):
            assert word not in self.log, self.log


@pytest.fixture(scope="session")
def local_sandbox_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    """A server whose sandboxes are folders and processes of this machine."""
    options = ("--runtime", "local", "--max-sandboxes", "8")
    server = SandboxServer(tmp_path_factory.mktemp("local-sandboxes"), *options)
    server.start()
    yield server
    server.close()
    server.check_log()


@pytest.fixture(scope="session")
def docker_sandbox_server(
    engine: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SandboxServer]:
    """A server whose sandboxes are containers."""
    options = ("--runtime", "docker", "--max-sandboxes", "8")
    server = SandboxServer(tmp_path_factory.mktemp("docker-sandboxes"), *options)
    server.start()
    yield server
    server.close()
    server.check_log()
