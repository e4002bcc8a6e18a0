"""Tests of both directions of a stream: repetitions, cuts and delays don't change the bytes."""

import asyncio
import contextlib
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import SandboxError
from resolver.runtime.remote.protocol import RemoteFailure, StreamEnd
from resolver.runtime.service.stream import MAX_HELD_BYTES, Incoming, OffsetError, Outgoing
from tests.parts.waiting import is_inside, until
from tests.remote_service.loops import run


def collect(incoming: Incoming) -> tuple[threading.Thread, list[bytes]]:
    """A thread that takes what comes, until the end or the close."""
    taken: list[bytes] = []

    def take() -> None:
        with contextlib.suppress(SandboxError):
            for data in incoming:
                taken.append(data)

    thread = threading.Thread(target=take)
    thread.start()
    return thread, taken


@given(
    st.binary(max_size=200),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60)), max_size=30),
)
def test_repeated_pieces_from_any_offset_are_accepted_once(
    data: bytes, pieces: list[tuple[int, int]]
) -> None:
    async def send() -> list[bytes]:
        incoming = Incoming(asyncio.get_running_loop())
        thread, taken = collect(incoming)
        for start, length in [*pieces, (0, len(data))]:
            before = incoming.received
            if start > before:
                with pytest.raises(OffsetError):
                    await incoming.accept(start, data[start : start + length])
                assert incoming.received == before
            else:
                await incoming.accept(start, data[start : start + length])
        for _ in range(2):
            incoming.finish(len(data))
        await asyncio.to_thread(thread.join)
        return taken

    assert b"".join(run(send())) == data


def test_a_fast_client_waits_for_a_slow_machine() -> None:
    async def send() -> None:
        incoming = Incoming(asyncio.get_running_loop())
        await incoming.accept(0, bytes(MAX_HELD_BYTES))
        late = asyncio.create_task(incoming.accept(MAX_HELD_BYTES, b"late"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not late.done()
        thread, taken = collect(incoming)
        await late
        incoming.finish(MAX_HELD_BYTES + 4)
        await asyncio.to_thread(thread.join)
        assert sum(map(len, taken)) == MAX_HELD_BYTES + 4

    run(send())


def test_closing_wakes_waiting_callers() -> None:
    async def close() -> None:
        incoming = Incoming(asyncio.get_running_loop())
        await incoming.accept(0, bytes(MAX_HELD_BYTES))
        late = asyncio.create_task(incoming.accept(MAX_HELD_BYTES, b"late"))
        await asyncio.sleep(0)
        incoming.close()
        with pytest.raises(OffsetError):
            await late
        with pytest.raises(SandboxError, match="before its end"):
            list(incoming)

    run(close())


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=20), st.integers(1, 50))
def test_bytes_read_again_after_a_cut_are_the_same(data: bytes, lost: list[int], size: int) -> None:
    async def read() -> bytes:
        outgoing = Outgoing(asyncio.get_running_loop())

        def write() -> None:
            for at in range(0, len(data), size):
                outgoing.write(data[at : at + size])
            outgoing.end(StreamEnd(stderr_tail="over"))

        thread = threading.Thread(target=write)
        thread.start()
        got = b""
        cuts = iter(lost)
        while True:
            outgoing.release(len(got))
            if outgoing.end_at(len(got)):
                break
            part = await outgoing.read(len(got), 5)
            got += part[: next(cuts, len(part))]
        await asyncio.to_thread(thread.join)
        assert outgoing.end_at(len(got)) == StreamEnd(stderr_tail="over")
        return got

    assert run(read()) == data


def test_the_end_of_a_stream_survives_its_way_as_json() -> None:
    sent = StreamEnd(stderr_tail="over").model_dump_json()
    assert sent == '{"stderr_tail":"over","failure":null}'
    assert StreamEnd.model_validate_json(sent) == StreamEnd(stderr_tail="over")


def test_released_and_nonexistent_offsets_are_refused() -> None:
    async def ask() -> None:
        outgoing = Outgoing(asyncio.get_running_loop())
        outgoing.write(b"0123456789")
        outgoing.release(5)
        for offset in (4, 11):
            with pytest.raises(OffsetError):
                outgoing.release(offset)
        assert await outgoing.read(4, 5) == b""
        assert await outgoing.read(7, 5) == b"789"
        assert await outgoing.read(10, 0.01) == b""

    run(ask())


def test_a_fast_machine_waits_for_a_slow_client_until_the_end() -> None:
    async def write() -> None:
        outgoing = Outgoing(asyncio.get_running_loop())
        outgoing.write(bytes(MAX_HELD_BYTES))
        failures: list[SandboxError] = []

        def more() -> None:
            try:
                for _ in range(2):
                    outgoing.write(bytes(MAX_HELD_BYTES))
            except SandboxError as error:
                failures.append(error)

        thread = threading.Thread(target=more)
        thread.start()
        await asyncio.to_thread(until, lambda: is_inside(thread, "wait_for"))
        assert await outgoing.read(MAX_HELD_BYTES, 0.01) == b""
        outgoing.release(MAX_HELD_BYTES)
        assert await outgoing.read(MAX_HELD_BYTES, 5)
        outgoing.end(StreamEnd(failure=RemoteFailure(what="removed")))
        await asyncio.to_thread(thread.join)
        assert len(failures) == 1

    run(write())
