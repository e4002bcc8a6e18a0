"""The host's end of the tunnels, and the host's whole end of the wire against a hostile sandbox.

The sandbox's end is scripted frame by frame behind a real socket; the hosts outside are real.
"""

import base64
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import SandboxError
from resolver.events.lifecycle import Egress
from resolver.runtime.channel import SocketChannel
from resolver.runtime.client import WireClient
from resolver.runtime.egress import EgressLog, EgressPolicy
from resolver.runtime.tunnels import HostTunnels
from resolver.sandbox import wire
from tests.parts.waiting import becomes_true
from tests.runtime.outside import NAME, Outside, let_out, serving_outside


class Inside:
    """The sandbox's end of a wire whose other end is the real client with its tunnels."""

    def __init__(self, policy: EgressPolicy, **more: float) -> None:
        ours, self.socket = socket.socketpair()
        self.ledger = EgressLog(policy.max_bytes)
        self.client = WireClient(
            SocketChannel(ours),
            partial(HostTunnels, policy, self.ledger, **more),  # type: ignore[arg-type]
        )
        self.socket.settimeout(20)
        self._lines = self.socket.makefile("rb")

    def raw(self, data: bytes) -> None:
        self.socket.sendall(data)

    def say(self, method: str, tunnel: int, **fields: object) -> None:
        self.raw(wire.tunnel_notice(wire.TunnelFrame(method, tunnel, **fields)))  # type: ignore[arg-type]

    def next(self) -> wire.TunnelFrame:
        message = wire.decode(self._lines.readline())
        return wire.tunnel_frame(message["method"], message["params"])

    def open(self, number: int, host: str, port: int) -> wire.TunnelFrame:
        """The answer to an open."""
        self.say("tunnel_open", number, host=host, port=port)
        return self.next()

    def until_close(self, tunnel: int, credit: bool = True) -> tuple[bytes, wire.TunnelFrame]:
        """All data of a tunnel and its close."""
        data = b""
        while (frame := self.next()).method != "tunnel_close":
            data += frame.data
            if frame.method == "tunnel_data" and credit:
                self.say("tunnel_credit", tunnel, count=len(frame.data))
            if frame.method == "tunnel_end":
                self.say("tunnel_end", tunnel)
        self.say("tunnel_close", tunnel, status=200)
        return data, frame

    def lost(self) -> str:
        """Return why the client has abandoned the sandbox."""
        with pytest.raises(SandboxError) as lost:
            self.client.call("interrupt", {}, wire.InterruptResult, 10)
        return lost.value.what

    def taken(self, count: int = 1) -> list[Egress]:
        taken: list[Egress] = []

        def are_all() -> bool:
            taken.extend(self.ledger.take())
            return len(taken) >= count

        becomes_true(are_all, 60, pause=0.01)
        return taken

    def close(self) -> None:
        self.client.close()
        self._lines.close()
        self.socket.close()


@contextmanager
def inside(policy: EgressPolicy, **more: float) -> Iterator[Inside]:
    made = Inside(policy, **more)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    with serving_outside() as server:
        yield server


def request(path: str, port: int) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {NAME}:{port}\r\nConnection: close\r\n\r\n".encode()


def test_a_connection_is_carried_and_counted(outside: Outside) -> None:
    with inside(let_out(outside.entry)) as box:
        assert box.open(1, NAME, outside.port).method == "tunnel_opened"
        sent_request = request("/x", outside.port)
        box.say("tunnel_data", 1, data=sent_request)
        data, closed = box.until_close(1)
        assert data.endswith(f"/x {NAME}:{outside.port}\n".encode())
        assert (closed.status, closed.reason) == (200, "")
        [connections] = box.taken()
        assert (connections.host, connections.port, connections.allowed, connections.reason) == (
            NAME,
            outside.port,
            True,
            "",
        )
        assert (connections.bytes_sent, connections.bytes_received) == (
            len(sent_request),
            len(data),
        )
        assert 0 <= connections.seconds < 10 and connections.id == -1


def test_a_refusal_is_reported_to_both_sides() -> None:
    with inside(let_out("example.org")) as box:
        answer = box.open(1, "169.254.169.254", 80)
        assert (answer.method, answer.status) == ("tunnel_close", 403)
        assert answer.reason.endswith("(allowed: example.org)")
        [connections] = box.taken()
        assert (connections.host, connections.allowed) == ("169.254.169.254", False)
        assert (
            "addresses are refused" in connections.reason and "allowed:" not in connections.reason
        )


def test_a_download_waits_for_credit(outside: Outside) -> None:
    with inside(let_out(outside.entry)) as box:
        box.open(1, NAME, outside.port)
        box.say("tunnel_data", 1, data=request("/bytes/1000000", outside.port))
        got = 0
        while got < wire.TUNNEL_WINDOW:
            got += len(box.next().data)
        box.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            box.socket.recv(1)
        assert got == wire.TUNNEL_WINDOW
        box.socket.settimeout(20)
        box.say("tunnel_credit", 1, count=wire.TUNNEL_WINDOW)
        data, _ = box.until_close(1)
        assert wire.TUNNEL_WINDOW + len(data) > 1_000_000


def test_an_upload_is_credited_as_it_is_consumed(outside: Outside) -> None:
    total = 3 * wire.TUNNEL_WINDOW
    with inside(let_out(outside.entry)) as box:
        box.open(1, NAME, outside.port)
        head = f"POST / HTTP/1.1\r\nHost: {NAME}:{outside.port}\r\nContent-Length: {total}\r\n"
        box.say("tunnel_data", 1, data=f"{head}Connection: close\r\n\r\n".encode())
        window = wire.TUNNEL_WINDOW - len(head) - 21
        left = total
        while left:
            size = min(left, window, wire.TUNNEL_CHUNK)
            if size:
                box.say("tunnel_data", 1, data=b"x" * size)
                left -= size
                window -= size
            else:
                window += box.next().count
        data, _ = box.until_close(1)
        assert data.endswith(f"\r\n\r\n{total}\n".encode())


@pytest.mark.attack
def test_the_byte_limit_cuts_off_and_refuses_what_follows(outside: Outside) -> None:
    """A program transfers more than the limit of bytes: its connections are closed."""
    with inside(let_out(outside.entry, max_bytes=100_000)) as box:
        box.open(1, NAME, outside.port)
        box.say("tunnel_data", 1, data=request("/bytes/1000000", outside.port))
        data, closed = box.until_close(1)
        assert len(data) <= 100_000
        assert closed.reason == "the run has used its 100,000 bytes"
        answer = box.open(2, NAME, outside.port)
        assert (answer.method, answer.status) == ("tunnel_close", 429)
        cut, refused = box.taken(2)
        assert cut.allowed and "100,000 bytes" in cut.reason
        assert not refused.allowed and "100,000 bytes" in refused.reason


def test_a_request_for_another_host_of_the_same_address_is_cut_off(outside: Outside) -> None:
    before = len(outside.seen)
    with inside(let_out(outside.entry)) as box:
        box.open(1, NAME, outside.port)
        for part in (b"GET / HTTP/1.1\r\nHo", b"st: evil.example\r\n\r\n"):
            box.say("tunnel_data", 1, data=part)
        _, closed = box.until_close(1)
        assert "names another host, 'evil.example'" in closed.reason
    assert outside.seen[before:] == []


def test_an_idle_tunnel_is_closed(outside: Outside) -> None:
    with inside(let_out(outside.entry), idle=0.2) as box:
        box.open(1, NAME, outside.port)
        closed = box.next()
        assert closed.method == "tunnel_close" and "nothing was carried" in closed.reason


def test_a_client_that_disconnects_while_dialing_frees_its_tunnel(outside: Outside) -> None:
    with inside(let_out(outside.entry)) as box:
        for number in range(1, 3 * wire.MAX_TUNNELS):
            box.say("tunnel_open", number, host=NAME, port=outside.port)
            box.say("tunnel_close", number)
            frame = box.next()
            while frame.method != "tunnel_close":
                frame = box.next()
            assert frame.tunnel == number
        assert len(box.taken(1)) >= 1
        box.say("tunnel_open", 9999, host="no.example", port=80)
        assert box.next().tunnel == 9999


def test_open_connections_are_logged_when_the_sandbox_ends(outside: Outside) -> None:
    with inside(let_out(outside.entry)) as box:
        box.open(1, NAME, outside.port)
        box.client.close()
        [connections] = box.taken()
        assert connections.allowed and connections.reason == "the sandbox was closed"
    assert not [t for t in threading.enumerate() if t.name == "tunnels" and t.is_alive()]


def test_without_a_policy_a_tunnel_frame_is_an_error() -> None:
    near, far = socket.socketpair()
    client = WireClient(SocketChannel(near))
    far.sendall(wire.tunnel_notice(wire.TunnelFrame("tunnel_open", 1, host="x", port=1)))
    with pytest.raises(SandboxError, match="an unexpected"):
        client.call("interrupt", {}, wire.InterruptResult, 10)
    client.close()
    far.close()


def frame(method: str, **params: object) -> bytes:
    return wire.encode({"jsonrpc": "2.0", "method": method, "params": params})


OPEN = frame("tunnel_open", tunnel=1, host=NAME, port=1)
# What a single frame may hold: tests/sandbox/test_wire.py.
HOSTILE = {
    "an unknown tunnel": frame("tunnel_data", tunnel=5, data="eA=="),
    "end of an unknown tunnel": frame("tunnel_end", tunnel=5),
    "close of an unknown tunnel": frame("tunnel_close", tunnel=5, status=200, reason=""),
    "the same number twice": OPEN + OPEN,
    "a smaller number": frame("tunnel_open", tunnel=9, host="x", port=1) + OPEN,
    "a huge number": frame("tunnel_open", tunnel=10**30, host="x", port=1),
    "no parameters": frame("tunnel_open"),
    "a list of parameters": b'{"jsonrpc":"2.0","method":"tunnel_open","params":[1]}\n',
    "the host's own word": frame("tunnel_opened", tunnel=1),
    "opened for an open one": OPEN + frame("tunnel_opened", tunnel=1),
    "no base64": OPEN + frame("tunnel_data", tunnel=1, data="!!!!"),
    "torn base64": OPEN + frame("tunnel_data", tunnel=1, data="eA"),
    "base64 with line ends": OPEN + frame("tunnel_data", tunnel=1, data="eA==\n"),
    "more than a window": OPEN
    + frame("tunnel_data", tunnel=1, data=base64.b64encode(b"x" * 32_768).decode()) * 9,
    "more after the end": OPEN + frame("tunnel_end", tunnel=1)
    + frame("tunnel_data", tunnel=1, data="eA=="),
    "two ends": OPEN + frame("tunnel_end", tunnel=1) * 2,
    "two closes": OPEN + frame("tunnel_close", tunnel=1, status=200, reason="") * 2,
    "credit that nobody owes": OPEN + frame("tunnel_credit", tunnel=1, count=1),
    "an answer that is also a notice":
        b'{"jsonrpc":"2.0","id":1,"method":"tunnel_end","params":{"tunnel":1}}\n',
    "a method that is none": frame("tunnel_destroy", tunnel=1),
    "deep nesting": b'{"jsonrpc":"2.0","method":"tunnel_open","params":' + b"[" * 50_000 + b"\n",
}  # fmt: skip


@pytest.mark.attack
@pytest.mark.parametrize("sent", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_frame_ends_the_sandbox_with_a_clear_error(sent: bytes) -> None:
    """The sandbox sends frames that break the protocol: it is ended with a clear error."""
    release = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        release.wait(60)
        return []

    policy = let_out(f"private:{NAME}:1", "private:slow.test:1")
    with inside(EgressPolicy(policy.allowed, 10**6, resolve)) as box:
        with suppress(OSError):  # the host may hang up in the middle
            box.raw(sent)
        lost = box.lost()
        assert lost.startswith("the sandbox was lost: ") and "did not answer" not in lost
        release.set()


@pytest.mark.attack
def test_the_number_of_threads_is_limited_in_a_flood() -> None:
    """The sandbox floods the host with connections: the number of threads is limited."""
    release = threading.Event()
    most = 0

    def resolve(host: str, port: int) -> list[str]:
        nonlocal most
        most = max(most, threading.active_count())
        release.wait(60)
        return []

    before = threading.active_count()
    policy = EgressPolicy(let_out("private:slow.test:1").allowed, 10**6, resolve)
    with inside(policy) as box:
        with suppress(OSError):
            for number in range(1, 2_000):
                box.say("tunnel_open", number, host="slow.test", port=1)
                box.say("tunnel_close", number)
        assert "too many tunnels" in box.lost()
        release.set()
    assert most - before <= 2 * wire.MAX_TUNNELS + 4


numbers = st.integers(-1, 5) | st.sampled_from([2**31, 10**30, True, None, "1", 1.5])
junk = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
payloads = st.binary(max_size=80).map(lambda b: base64.b64encode(b).decode()) | st.text(max_size=9)
notices = st.builds(
    lambda method, params: wire.encode({"jsonrpc": "2.0", "method": method, "params": params}),
    st.sampled_from(sorted(wire.TUNNEL_METHODS)),
    st.fixed_dictionaries(
        {"tunnel": numbers},
        optional={
            "host": st.sampled_from([NAME, "no.example", "127.0.0.1", ""]) | junk,
            "port": st.sampled_from([1, 80, 443, 70000]) | junk,
            "data": payloads | junk,
            "count": st.integers(-5, 2**20) | junk,
            "status": st.sampled_from([200, 403, 9999]) | junk,
            "reason": junk,
        },
    ),
)
answers = st.builds(
    lambda id, result: json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode() + b"\n",
    numbers,
    junk,
)


@given(sent=st.lists(notices | answers | st.binary(max_size=40), min_size=1, max_size=12))
def test_any_frames_end_in_an_error_or_are_carried_and_never_hang(sent: list[bytes]) -> None:
    with inside(let_out(f"private:{NAME}:1")) as box:
        draining = threading.Thread(target=_drain, args=(box.socket,))
        draining.start()
        with suppress(OSError):
            box.raw(b"".join(sent))
            box.socket.shutdown(socket.SHUT_WR)
        assert box.lost().startswith("the sandbox was lost: ")
        box.client.close()
        draining.join(60)
        assert not draining.is_alive()


def _drain(connection: socket.socket) -> None:
    with suppress(OSError):
        while connection.recv(65536):
            pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File with the key and the certificate of `NAME`."""
    folder = tmp_path_factory.mktemp("certificate")
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "1", "-subj", f"/CN={NAME}", "-addext",
            f"subjectAltName=DNS:{NAME}", "-keyout", "key.pem", "-out", "cert.pem"]  # fmt: skip
    subprocess.run(make, cwd=folder, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return both


@contextmanager
def tls_server(certificate: Path) -> Iterator[int]:
    """A server that says "hello" to one TLS client. Yields its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError), listening.accept()[0] as accepted:
                accepted.settimeout(20)
                with context.wrap_socket(accepted, server_side=True) as connection:
                    connection.sendall(b"hello")

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(30)


def read_tls(box: Inside, certificate: Path, name: str) -> bytes:
    """Speak TLS with the server `name` through tunnel 1 until it sends something."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context(cafile=str(certificate)).wrap_bio(
        incoming, outgoing, server_hostname=name
    )
    while True:
        try:
            return client.read(100)
        except ssl.SSLWantReadError:
            if data := outgoing.read():
                box.say("tunnel_data", 1, data=data)
            frame = box.next()
            if frame.method == "tunnel_close":
                raise ConnectionError(frame.reason) from None
            incoming.write(frame.data)


@pytest.mark.attack
def test_tls_is_carried_untouched_to_the_allowed_host_alone(certificate: Path) -> None:
    """TLS through an allowed connection names another host: it is closed, while TLS to the
    allowed host ends at that host's own certificate."""
    with tls_server(certificate) as port:
        with inside(let_out(f"private:{NAME}:{port}")) as box:
            assert box.open(1, "other.example", port).status == 403
        with inside(let_out(f"private:{NAME}:{port}")) as box:
            assert box.open(1, NAME, port).method == "tunnel_opened"
            assert read_tls(box, certificate, NAME) == b"hello"
    other = {"other.example": ["127.0.0.1"]}
    with (
        tls_server(certificate) as port,
        inside(let_out(f"private:other.example:{port}", known=other)) as box,
    ):
        assert box.open(1, "other.example", port).method == "tunnel_opened"
        with pytest.raises(ConnectionError, match=f"names another host, '{NAME}'"):
            read_tls(box, certificate, NAME)
        [connection] = box.taken()
        assert "names another host" in connection.reason
