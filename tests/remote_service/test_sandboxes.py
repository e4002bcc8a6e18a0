"""Tests of the sandboxes of a server without a network: what its clients learn of their end."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from resolver.runtime.base import Machine, SandboxSpec
from resolver.runtime.remote.protocol import SandboxRequest, StreamRequest
from resolver.runtime.service.sandboxes import Sandboxes, ServiceBounds, UnknownError
from tests.remote_service.loops import run

REQUEST = SandboxRequest(image="", run="1", memory="1g", cpus=1, pids=10, disk=1)


class SilentChannel:
    """The wire of an action server that sends nothing until it is closed."""

    def __init__(self) -> None:
        self._closed = threading.Event()

    def send(self, data: bytes) -> None:
        pass

    def receive(self) -> bytes:
        self._closed.wait()
        return b""

    def close(self) -> None:
        self._closed.set()

    def exit_details(self) -> str:
        return ""


class SilentMachine:
    isolation, scratch = "none", "/scratch"

    def connect(self) -> SilentChannel:
        return SilentChannel()


@contextmanager
def open_silent_machine(spec: SandboxSpec) -> Iterator[Machine]:
    yield cast(Machine, SilentMachine())


async def served(*, streams: bool) -> Sandboxes:
    """Sandboxes of which one, named "a", has started, perhaps with an open stream."""
    sandboxes = Sandboxes(ServiceBounds("local"), open_silent_machine, "served.")
    sandbox = sandboxes.start("a", REQUEST)
    await sandbox.starting
    if streams:
        await sandboxes.open_stream(sandbox, "s", StreamRequest(kind="wire"))
    return sandboxes


async def settle(is_done: Callable[[], bool]) -> None:
    """Let other tasks and threads work until it is true, and the tasks a little longer."""
    while not is_done():
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_server_that_stops_waits_until_the_client_of_a_stream_knows_it() -> None:
    async def stop() -> None:
        sandboxes = await served(streams=True)
        with pytest.raises(UnknownError):
            sandboxes.find("an earlier one")
        closing = asyncio.create_task(sandboxes.close())
        await settle(lambda: sandboxes.count == 0)
        with pytest.raises(UnknownError):
            sandboxes.find("another")
        assert not closing.done()
        with pytest.raises(UnknownError) as unknown:
            sandboxes.find("a")
        assert unknown.value.reason.what == "the sandbox server was stopped"
        await closing

    run(stop())


@pytest.mark.parametrize("streams", [False, True])
def test_a_client_that_died_does_not_keep_a_server_from_stopping(
    streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "resolver.runtime.service.sandboxes.INFORM_SECONDS", 0.05 if streams else 600
    )

    async def stop() -> None:
        sandboxes = await served(streams=streams)
        await sandboxes.close()
        assert sandboxes.count == 0

    run(stop())
