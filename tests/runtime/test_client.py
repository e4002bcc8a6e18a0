"""Tests of the host's end of the wire against misbehaving servers on a real socket."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import SandboxError, SandboxLost
from resolver.runtime.channel import DockerChannel, SocketChannel
from resolver.runtime.client import MAX_FIELD, WireClient
from resolver.sandbox import wire

Server = Callable[[socket.socket], None]
HELLO = {
    "protocol": 1, "pid": 7, "root": "/workspace", "python": "3.11", "user": "root",
    "browser": "", "proxy": 0,
}  # fmt: skip


LONG = "x" * (MAX_FIELD + 1)


class Serving:
    """A client connected to a server function that runs in a thread."""

    def __init__(self, server: Server) -> None:
        ours, self.theirs = socket.socketpair()
        self.client = WireClient(SocketChannel(ours))
        self.thread = threading.Thread(target=self._serve, args=(server,))

    def _serve(self, server: Server) -> None:
        with self.theirs:
            try:
                server(self.theirs)
            except OSError:
                return

    def __enter__(self) -> WireClient:
        self.thread.start()
        return self.client

    def __exit__(self, *exc: object) -> None:
        self.client.close()
        self.theirs.close()
        self.thread.join(60)
        assert not self.thread.is_alive()


def requests(connection: socket.socket) -> Iterator[dict[str, object]]:
    with connection.makefile("rb") as lines:
        for line in lines:
            yield wire.decode(line)


def reply(connection: socket.socket, id: object, **fields: object) -> None:
    connection.sendall(wire.encode({"jsonrpc": "2.0", "id": id, **fields}))


def hello(client: WireClient, seconds: float = 5) -> wire.Handshake:
    return client.call("hello", {}, wire.Handshake, seconds)


def answering(*replies: bytes, stay: bool = True) -> Server:
    """A server that reads one request and sends these bytes."""

    def serve(connection: socket.socket) -> None:
        next(requests(connection))
        for data in replies:
            connection.sendall(data)
        if stay:
            connection.recv(1)

    return serve


def test_answers_are_matched_by_id_in_any_order() -> None:
    def serve(connection: socket.socket) -> None:
        received = requests(connection)
        first, second = next(received), next(received)
        for request in (second, first):
            reply(
                connection, request["id"], result={"output": str(request["method"]), "images": []}
            )

    results: dict[str, str] = {}
    with Serving(serve) as client:

        def ask(method: str) -> None:
            results[method] = client.call(method, {}, wire.ViewResult, 5)["output"]

        threads = [threading.Thread(target=ask, args=(m,)) for m in ("view", "ping")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == {"view": "view", "ping": "ping"}


def test_an_error_answer_is_raised_with_its_code_and_the_wire_stays_open() -> None:
    def serve(connection: socket.socket) -> None:
        for number, request in enumerate(requests(connection)):
            if number == 0:
                failure = {"code": wire.ACTION_FAILED, "message": "no such file"}
                reply(connection, request["id"], error=failure)
            else:
                reply(connection, request["id"], result=HELLO)

    with Serving(serve) as client:
        with pytest.raises(wire.WireError, match="no such file") as failed:
            hello(client)
        assert failed.value.code == wire.ACTION_FAILED
        assert hello(client) == HELLO


@pytest.mark.parametrize(
    "sent",
    [
        b"garbage\n",
        b"\n",
        b"\xff\xfe\x00\n",
        b"[]\n",
        b"[" * 100_000 + b"\n",
        wire.encode({"jsonrpc": "2.0", "id": 99, "result": HELLO}),
        wire.encode({"jsonrpc": "2.0", "id": "1", "result": HELLO}),
        wire.encode({"jsonrpc": "2.0", "id": True, "result": HELLO}),
        wire.encode({"jsonrpc": "2.0", "id": [1], "result": HELLO}),
        wire.encode({"jsonrpc": "2.0", "method": "notify", "params": {}}),
        wire.encode({"jsonrpc": "2.0", "id": 1}),
        wire.encode({"jsonrpc": "2.0", "id": 1, "result": HELLO, "error": {}}),
        wire.encode({"jsonrpc": "2.0", "id": 1, "result": None}),
        wire.encode({"jsonrpc": "2.0", "id": 1, "result": {**HELLO, "pid": "7"}}),
        wire.encode({"jsonrpc": "2.0", "id": 1, "result": {**HELLO, "protocol": True}}),
        wire.encode({"jsonrpc": "2.0", "id": 1, "result": {"protocol": 1}}),
        wire.encode({"jsonrpc": "2.0", "id": 1, "result": {**HELLO, "root": LONG}}),
        wire.encode({"jsonrpc": "2.0", "id": 1, "error": "text"}),
        wire.encode({"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "y"}}),
    ],
    ids=range(19),
)  # fmt: skip
def test_a_server_that_breaks_the_contract_ends_the_sandbox(sent: bytes) -> None:
    with Serving(answering(sent)) as client:
        with pytest.raises(SandboxError, match="the sandbox was lost") as first:
            hello(client)
        with pytest.raises(SandboxError) as second:
            hello(client)
        assert second.value.what == first.value.what
        assert first.value.next_step


def test_a_server_that_has_ended_or_hangs_can_be_replaced() -> None:
    """A hostile one would behave in the same way again."""
    with Serving(answering(stay=False)) as client, pytest.raises(SandboxLost):
        hello(client)
    with Serving(answering(b"no JSON\n")) as client, pytest.raises(SandboxError) as broken:
        hello(client)
    assert not isinstance(broken.value, SandboxLost)
    with Serving(answering()) as client, pytest.raises(SandboxLost, match="did not answer"):
        hello(client, seconds=0.01)


def test_a_second_answer_to_the_same_request_ends_the_sandbox() -> None:
    answer = wire.encode({"jsonrpc": "2.0", "id": 1, "result": HELLO})
    with Serving(answering(answer, answer)) as client:
        hello(client)
        with pytest.raises(SandboxError, match="an unexpected"):
            hello(client)


def test_an_endless_frame_is_cut_off() -> None:
    def serve(connection: socket.socket) -> None:
        while True:
            connection.sendall(b"x" * 1_000_000)

    with Serving(serve) as client, pytest.raises(SandboxError, match="frame over"):
        hello(client, 60)


def test_closing_wakes_a_caller_that_waits() -> None:
    serving = Serving(answering())
    with serving as client:
        threading.Timer(0.2, client.close).start()
        with pytest.raises(SandboxError, match="closed"):
            hello(client, 60)


@given(noise=st.binary(min_size=1, max_size=300))
def test_garbage_never_hangs_or_raises_another_error(noise: bytes) -> None:
    with Serving(answering(noise, stay=False)) as client, pytest.raises(SandboxError):
        hello(client, 5)


def frames(*parts: tuple[int, bytes]) -> bytes:
    return b"".join(struct.pack(">BxxxL", kind, len(data)) + data for kind, data in parts)


def received(channel: DockerChannel) -> bytes:
    data = b""
    while part := channel.receive():
        data += part
    return data


@given(
    parts=st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=50)), max_size=8),
    cut=st.integers(1, 40),
)
def test_stdout_and_stderr_are_distinguished_however_the_stream_is_cut(
    parts: list[tuple[int, bytes]], cut: int
) -> None:
    near, far = socket.socketpair()
    channel = DockerChannel(near)
    stream = frames(*parts)
    with far:
        for start in range(0, len(stream), cut):
            far.sendall(stream[start : start + cut])
    assert received(channel) == b"".join(data for kind, data in parts if kind == 1)
    errors = b"".join(data for kind, data in parts if kind == 2)
    assert channel.exit_details() == errors.decode(errors="replace").strip()
    channel.close()


def test_a_flood_of_stderr_is_kept_only_in_part() -> None:
    near, far = socket.socketpair()
    channel = DockerChannel(near)
    with far:
        far.sendall(frames(*[(2, b"e" * 1000)] * 50, (2, b"the end")))
    assert received(channel) == b""
    assert len(channel.exit_details()) <= 4000
    assert channel.exit_details().endswith("the end")
    channel.close()


def test_writing_to_a_server_that_went_away_is_a_clear_error() -> None:
    near, far = socket.socketpair()
    channel = SocketChannel(near)
    far.close()
    with pytest.raises(SandboxError, match="written to"):
        channel.send(b"x")
    channel.close()
