"""The proxy inside the sandbox: what it asks the host for, and what it makes of hostile programs.

The proxy is real and on loopback; the host's end is scripted, frame by frame.
"""

import queue
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.sandbox import wire
from resolver.sandbox.proxy import Proxy, proxy_variables
from resolver.sandbox.request_head import MAX_HEAD_BYTES, BadRequest, read_head
from tests.parts.waiting import becomes_true
from tests.sandbox.conftest import BASH
from tests.sandbox.connection import Connection

Answer = Callable[["Host", wire.TunnelFrame], None]


class Host:
    """The other end of the wire: every frame is given to `answer` and kept."""

    def __init__(self, answer: Answer, head_seconds: float = 5) -> None:
        self.proxy = Proxy(head_seconds)
        self.frames: list[wire.TunnelFrame] = []
        self.faults: list[wire.WireError] = []
        self._answer = answer
        self._inbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        self.proxy.start(self._inbox.put, self.faults.append)

    def say(self, method: str, tunnel: int, **params: object) -> None:
        self.proxy.take(method, {"tunnel": tunnel, **params})

    def data(self, tunnel: int, data: bytes) -> None:
        frame = wire.TunnelFrame("tunnel_data", tunnel, data=data)
        message = wire.decode(wire.tunnel_notice(frame))
        self.proxy.take(message["method"], message["params"])

    def refuse(self, tunnel: int, status: int, reason: str) -> None:
        self.say("tunnel_close", tunnel, status=status, reason=reason)

    def of(self, method: str) -> list[wire.TunnelFrame]:
        return [frame for frame in self.frames if frame.method == method]

    def _serve(self) -> None:
        while (line := self._inbox.get()) is not None:
            message = wire.decode(line)
            frame = wire.tunnel_frame(message["method"], message["params"])
            self.frames.append(frame)
            self._answer(self, frame)

    def end(self) -> None:
        self._inbox.put(None)
        self._thread.join()
        self.proxy.close()


def echo(host: Host, frame: wire.TunnelFrame) -> None:
    """A host that opens every tunnel and echoes its data."""
    match frame.method:
        case "tunnel_open":
            host.say("tunnel_opened", frame.tunnel)
        case "tunnel_data":
            host.say("tunnel_credit", frame.tunnel, count=len(frame.data))
            host.data(frame.tunnel, frame.data)
        case "tunnel_end":
            host.say("tunnel_end", frame.tunnel)
        case "tunnel_close":
            host.refuse(frame.tunnel, 200, "")


@pytest.fixture
def hosts() -> Iterator[Callable[..., Host]]:
    made: list[Host] = []

    def make(answer: Answer, **more: float) -> Host:
        made.append(Host(answer, **more))
        return made[-1]

    yield make
    for host in made:
        host.end()


def connect(host: Host) -> socket.socket:
    return socket.create_connection(("127.0.0.1", host.proxy.port), 10)


def all_of(connection: socket.socket) -> bytes:
    data = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(65536):
            data += part
    return data


def ask(host: Host, request: bytes) -> bytes:
    with connect(host) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return all_of(connection)


def eventually(true: Callable[[], object]) -> bool:
    return becomes_true(true, 60, pause=0.01)


def test_a_connect_is_carried_both_ways(hosts: Callable[..., Host]) -> None:
    host = hosts(echo)
    answer = ask(host, b"CONNECT pypi.org:443 HTTP/1.1\r\nHost: pypi.org:443\r\n\r\n" + b"\x16abc")
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n\x16abc"
    assert (host.frames[0].host, host.frames[0].port) == ("pypi.org", 443)
    assert eventually(lambda: host.frames[-1].method == "tunnel_close")
    assert host.faults == []


def test_a_plain_request_goes_to_its_target_whatever_its_host_header_says(
    hosts: Callable[..., Host],
) -> None:
    host = hosts(echo)
    request = (
        b"GET http://a.example:8080/x?y=1 HTTP/1.1\r\nHost: evil.example\r\nhOsT: more.example\r\n"
        b"Proxy-Authorization: Basic c2VjcmV0\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n"
        b"X-Kept: 1\r\n\r\n"
    )
    with connect(host) as connection:
        connection.sendall(request)
        assert eventually(lambda: host.of("tunnel_data"))
    assert (host.frames[0].host, host.frames[0].port) == ("a.example", 8080)
    assert host.of("tunnel_data")[0].data == (
        b"GET /x?y=1 HTTP/1.1\r\nHost: a.example:8080\r\nConnection: close\r\nX-Kept: 1\r\n\r\n"
    )


def test_bytes_after_a_plain_requests_body_are_dropped(hosts: Callable[..., Host]) -> None:
    host = hosts(echo)
    with connect(host) as connection:
        connection.sendall(
            b"POST http://a.example/ HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"
            b"GET /second HTTP/1.1\r\nHost: evil.example\r\n\r\n"
        )
        assert eventually(lambda: len(host.of("tunnel_data")) == 2)
        # What would follow has been read by the time that another connection is served.
        assert ask(host, b"CONNECT a.example:443 HTTP/1.1\r\n\r\nhi").endswith(b"hi")
    sent = b"".join(frame.data for frame in host.of("tunnel_data") if frame.tunnel == 1)
    assert sent.endswith(b"\r\n\r\nbody")


def test_a_refusal_states_the_reason_in_status_line_and_body(hosts: Callable[..., Host]) -> None:
    def refuse(host: Host, frame: wire.TunnelFrame) -> None:
        if frame.method == "tunnel_open":
            host.refuse(frame.tunnel, 403, "not on the\r\nSet-Cookie: x list")

    host = hosts(refuse)
    answer = ask(host, b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n")
    head, body = answer.split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 Forbidden: not on the??Set-Cookie: x list\r\n")
    assert body == b"not on the??Set-Cookie: x list\n"


WRONG = {
    "no proxy request": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "https in a plain request": b"GET https://a.example/ HTTP/1.1\r\n\r\n",
    "another scheme": b"GET file:///etc/passwd HTTP/1.1\r\n\r\n",
    "user information": b"GET http://allowed.example@evil.example/ HTTP/1.1\r\n\r\n",
    "user information in CONNECT": b"CONNECT a@evil.example:443 HTTP/1.1\r\n\r\n",
    "no port": b"CONNECT evil.example HTTP/1.1\r\n\r\n",
    "port zero": b"CONNECT evil.example:0 HTTP/1.1\r\n\r\n",
    "a large port": b"CONNECT evil.example:65536 HTTP/1.1\r\n\r\n",
    "a path": b"CONNECT evil.example:443/x HTTP/1.1\r\n\r\n",
    "a fragment": b"GET http://a.example/#x HTTP/1.1\r\n\r\n",
    "a backslash": b"GET http://a.example\\@evil.example/ HTTP/1.1\r\n\r\n",
    "lower-case letters": b"connect evil.example:443 HTTP/1.1\r\n\r\n",
    "no version": b"GET http://a.example/\r\n\r\n",
    "another version": b"GET http://a.example/ HTTP/2.0\r\n\r\n",
    "two blanks": b"GET  http://a.example/ HTTP/1.1\r\n\r\n",
    "a lone line feed": b"GET http://a.example/ HTTP/1.1\nX: 1\r\n\r\n",
    "a lone carriage return": b"GET http://a.example/ HTTP/1.1\r\nA: 1\rB: 2\r\n\r\n",
    "a line feed in a header": b"GET http://a.example/ HTTP/1.1\r\nA: 1\nHost: evil\r\n\r\n",
    "a zero byte": b"GET http://a.example/\0 HTTP/1.1\r\n\r\n",
    "a folded header": b"GET http://a.example/ HTTP/1.1\r\nA: 1\r\n b: 2\r\n\r\n",
    "a blank before the colon": b"GET http://a.example/ HTTP/1.1\r\nHost : evil\r\n\r\n",
    "two lengths": b"POST http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\n"
    b"Content-Length: 2\r\n\r\n",
    "length and chunks": b"POST http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n",
    "an odd coding": b"POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
    "a signed length": b"POST http://a.example/ HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
    "noise": b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("request_", WRONG.values(), ids=WRONG.keys())
def test_a_request_that_can_be_read_in_two_ways_is_refused(request_: bytes) -> None:
    with pytest.raises(BadRequest):
        read_head(request_)


def test_a_refused_request_is_answered_without_asking_the_host(hosts: Callable[..., Host]) -> None:
    host = hosts(echo)
    answer = ask(host, WRONG["user information"])
    assert answer.startswith(b"HTTP/1.1 400 Bad Request: ")
    assert host.frames == []


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_head_is_a_request_or_refused(noise: bytes) -> None:
    for head in (noise + b"\r\n\r\n", b"GET http://" + noise + b" HTTP/1.1\r\n\r\n",
                 b"CONNECT " + noise + b" HTTP/1.1\r\n\r\n",
                 b"GET http://a.example/ HTTP/1.1\r\n" + noise + b"\r\n\r\n"):  # fmt: skip
        with suppress(BadRequest):
            request = read_head(head)
            assert 0 < request.port < 65536 and request.host
            assert not set(request.host) & set("@/?#\\ \r\n\0")
            lines = request.head.split(b"\r\n")
            assert sum(line.lower().startswith(b"host:") for line in lines) == (not request.tunnel)
            assert all(b"\n" not in line and b"\r" not in line for line in lines)


def test_an_endless_head_is_cut_off(hosts: Callable[..., Host]) -> None:
    host = hosts(echo)
    request = b"GET http://a.example/ HTTP/1.1\r\nX: " + b"x" * (2 * MAX_HEAD_BYTES)
    assert ask(host, request).startswith(b"HTTP/1.1 431 ")
    many = b"GET http://a.example/ HTTP/1.1\r\n" + b"X: 1\r\n" * 300 + b"\r\n"
    assert ask(host, many).startswith(b"HTTP/1.1 431 ")
    assert host.frames == []


def test_a_slow_program_gets_an_error_and_is_disconnected(hosts: Callable[..., Host]) -> None:
    host = hosts(echo, head_seconds=0.5)
    with connect(host) as slow:
        while not select.select([slow], [], [], 0.1)[0]:
            slow.sendall(b"G")
        assert all_of(slow).startswith(b"HTTP/1.1 408 ")
    assert ask(host, b"CONNECT a.example:443 HTTP/1.1\r\n\r\nhi").endswith(b"hi")


@pytest.mark.attack
def test_connections_beyond_the_maximum_wait(hosts: Callable[..., Host]) -> None:
    """A program holds many connections to the proxy: those beyond the limit wait."""
    most = 0
    now = 0

    def count(host: Host, frame: wire.TunnelFrame) -> None:
        nonlocal most, now
        now += (frame.method == "tunnel_open") - (frame.method == "tunnel_close")
        most = max(most, now)
        echo(host, frame)

    host = hosts(count)
    opened = [connect(host) for _ in range(200)]
    for connection in opened:
        connection.sendall(b"CONNECT a.example:443 HTTP/1.1\r\n\r\nhi")
    assert eventually(lambda: len(host.of("tunnel_data")) == wire.MAX_TUNNELS)
    for connection in opened:
        connection.shutdown(socket.SHUT_WR)
    assert {all_of(connection)[-2:] for connection in opened} == {b"hi"}
    for connection in opened:
        connection.close()
    assert most == wire.MAX_TUNNELS
    assert eventually(lambda: now == 0) and host.faults == []


def test_a_program_that_does_not_read_holds_back_only_one_window(
    hosts: Callable[..., Host],
) -> None:
    sent = 0
    window = wire.TUNNEL_WINDOW
    chunk = b"x" * wire.TUNNEL_CHUNK

    def pour(host: Host, frame: wire.TunnelFrame) -> None:
        nonlocal sent, window
        if frame.tunnel > 1:
            echo(host, frame)
            return
        if frame.method == "tunnel_open":
            host.say("tunnel_opened", frame.tunnel)
        window += frame.count if frame.method == "tunnel_credit" else 0
        while window >= len(chunk) and sent < 64 * window:
            host.data(1, chunk)
            sent += len(chunk)
            window -= len(chunk)

    host = hosts(pour)
    with connect(host) as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.sendall(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        held = -1
        while held != sent or not sent:
            held = sent
            assert ask(host, b"CONNECT b.example:443 HTTP/1.1\r\n\r\nhi").endswith(b"hi")
        # The kernel's own buffers on loopback take some megabytes at most.
        assert sent < 16 * 1024 * 1024
    assert host.faults == []


def sent(host: Host) -> int:
    """Number of bytes that came to the host."""
    return sum(len(frame.data) for frame in host.of("tunnel_data"))


def test_an_upload_waits_for_credit(hosts: Callable[..., Host]) -> None:
    def silent(host: Host, frame: wire.TunnelFrame) -> None:
        if frame.method == "tunnel_open":
            host.say("tunnel_opened", frame.tunnel)

    host = hosts(silent)
    with connect(host) as writer:
        writer.sendall(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        writer.sendall(b"x" * (2 * wire.TUNNEL_WINDOW))
        assert eventually(lambda: sent(host) == wire.TUNNEL_WINDOW)
        host.say("tunnel_credit", 1, count=1000)
        assert eventually(lambda: len(host.of("tunnel_data")[-1].data) == 1000)
        assert sent(host) == wire.TUNNEL_WINDOW + 1000


def test_a_tunnel_cut_off_by_the_host_resets_the_connection(
    hosts: Callable[..., Host],
) -> None:
    def cut(host: Host, frame: wire.TunnelFrame) -> None:
        if frame.method == "tunnel_open":
            host.say("tunnel_opened", frame.tunnel)
            host.data(frame.tunnel, b"half")
            host.refuse(frame.tunnel, 502, "the run has used its bytes")

    host = hosts(cut)
    with connect(host) as connection:
        connection.sendall(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            while connection.recv(1000):
                pass
    assert eventually(lambda: host.of("tunnel_close"))


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tunnel_opened", {"tunnel": 7}),
        ("tunnel_open", {"tunnel": 1, "host": "x", "port": 1}),
        ("tunnel_data", {"tunnel": 7, "data": "eA=="}),
        ("tunnel_close", {"tunnel": 7, "status": 200, "reason": ""}),
    ],
)
def test_a_frame_for_no_tunnel_is_a_fault(
    hosts: Callable[..., Host], method: str, params: dict[str, object]
) -> None:
    host = hosts(echo)
    host.proxy.take(method, params)
    assert eventually(lambda: [fault.code for fault in host.faults] == [wire.INVALID_PARAMS])
    assert ask(host, b"CONNECT a.example:443 HTTP/1.1\r\n\r\nhi").endswith(b"hi")


def test_proxy_variables_name_the_proxy_without_a_credential() -> None:
    found = proxy_variables(4000, {"no_proxy": "db.internal"})
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        assert found[name] == found[name.lower()] == "http://127.0.0.1:4000"
    assert found["NO_PROXY"] == found["no_proxy"] == "db.internal,localhost,127.0.0.1"
    assert not any("@" in value for value in found.values())


@pytest.fixture
def let_out(copied: Path, root: Path, tmp_path: Path) -> Iterator[Connection]:
    """A complete action server, as a process, with its proxy."""
    connection = Connection(copied / "__main__.py", root, tmp_path / "s", BASH, "--proxy")
    yield connection
    connection.kill()


def refusals_until(server: Connection, ping: int) -> list[int]:
    """The codes of the errors that come before the answer to `ping`."""
    codes = []
    while (answer := server.receive()).get("id") != ping:
        codes += [answer["error"]["code"]] if "error" in answer else []
    return codes


def test_a_server_without_a_proxy_has_no_tunnels(server: Connection) -> None:
    server.raw(wire.tunnel_notice(wire.TunnelFrame("tunnel_opened", 1)))
    assert refusals_until(server, server.send("ping")) == [wire.METHOD_NOT_FOUND]
    assert "_PROXY" not in server.shell("export -p")["output"]


def test_programs_of_a_server_with_a_proxy_find_it(let_out: Connection) -> None:
    variables = let_out.shell("echo $http_proxy $HTTPS_PROXY")["output"].split()
    code = "import os; print(os.environ['https_proxy'])"
    assert variables == [let_out.call("run_cell", code=code, timeout=30)["output"].strip()] * 2
    port = int(variables[0].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        frame = let_out.receive()
        assert frame["method"] == "tunnel_open" and frame["params"]["host"] == "a.example"
        close = wire.TunnelFrame("tunnel_close", 1, status=403, reason="no")
        let_out.raw(wire.tunnel_notice(close))
        assert connection.recv(1000).startswith(b"HTTP/1.1 403 Forbidden: no\r\n")
