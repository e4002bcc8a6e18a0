"""MCP servers of the tests, and a collector of what is reported about them."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from resolver.mcp.host_process import HostProcess
from resolver.mcp.servers import McpServers
from resolver.mcp.transports import Address, Endpoint
from tests.parts import mcp_server

SCRIPT = Path(mcp_server.__file__)
HOST = {"PATH": os.environ["PATH"], "HOME": "/root", "SECRET_OF_THE_HOST": "host-canary-1c9d"}
END_SECONDS = 0.5


class Scenario:
    """Opens servers, and keeps what they are noted for."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._open = ExitStack()
        self._processes: list[subprocess.Popen[str]] = []

    def process(self, mode: str, *more: str, timeout: float = 5, **variables: str) -> Endpoint:
        command = (str(SCRIPT), mode, *(more or ("stdio",)))
        way = partial(
            HostProcess, sys.executable, command, variables, HOST, end_seconds=END_SECONDS
        )
        return Endpoint("test", way, lambda _: True, timeout)

    def address(
        self, mode: str, *more: str, timeout: float = 5, headers: dict[str, str] | None = None
    ) -> Endpoint:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), mode, "http", *more], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        self._open.callback(process.stdout.close)
        self._open.callback(process.wait)
        self._open.callback(process.kill)
        self._processes.append(process)
        url = f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
        return Endpoint("test", Address(url, headers or {}), lambda _: True, timeout)

    def endpoint(self, transport: str, mode: str, timeout: float = 5) -> Endpoint:
        return (self.process if transport == "stdio" else self.address)(mode, timeout=timeout)

    def open(self, *endpoints: Endpoint, start_seconds: float = 60) -> McpServers:
        servers = McpServers(endpoints, str, lambda _: None, self.notes.append, start_seconds)
        return self._open.enter_context(servers)

    def end_addresses(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def close(self) -> None:
        self._open.close()


@pytest.fixture
def scenario(programs: None) -> Iterator[Scenario]:
    before = set(threading.enumerate())
    made = Scenario()
    yield made
    made.close()
    left = [t for t in threading.enumerate() if t not in before and t.name.startswith("mcp")]
    assert not left, "threads are left behind"
