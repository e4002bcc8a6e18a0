"""One egress tunnel on the host: its state, its flow control and the steps that move its bytes.

Flow control works by credit, as in HTTP/2 (RFC 9113 section 5.2): each side may send up to a window
of bytes ahead, and the receiver grants more as it consumes them. Memory per tunnel is therefore
limited however slow one side is. tunnels.py holds all tunnels and the threads.

The first bytes of a tunnel have to name the host that it was allowed for. Many sites share an
address: a TLS ClientHello or a Host header that names another of them would reach a host that is
not on the allow-list. The encrypted part is not inspected.
Sources: RFC 8446 (sections 4.1.2 and 5.1), RFC 6066 (section 3), RFC 9112 (section 3.2).
"""

import re
import selectors
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from resolver.events.lifecycle import Egress
from resolver.runtime.egress import MAX_NAME_CHARACTERS, EgressLog
from resolver.sandbox import wire

MAX_HEAD_BYTES: Final = 64 * 1024
"""Largest size of a ClientHello or of a request's head, in bytes."""

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME = 22, 1, 0
_REQUEST: Final = re.compile(rb"[A-Z]{1,32} \S+ HTTP/1\.[01]\r?\n")
_MAYBE_REQUEST: Final = re.compile(rb"[A-Z]{1,32}(?: |\Z)")
_HOST: Final = re.compile(rb"\r?\nhost[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)


def check_first_bytes(data: bytes, host: str, port: int) -> str | None:
    """Return "" if the bytes fit the host, the reason if not, None if more bytes are needed.

    A protocol that is neither TLS nor HTTP/1 is accepted.
    """
    if not data:
        return None
    if data[0] == _HANDSHAKE:
        return _judge_hello(data, host)
    if _MAYBE_REQUEST.match(data):
        return _judge_request(data, host, port)
    return ""


def _judge_request(data: bytes, host: str, port: int) -> str | None:
    line, has_line, _ = data.partition(b"\n")
    if has_line and not _REQUEST.fullmatch(line + b"\n"):
        return ""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None if len(data) < MAX_HEAD_BYTES else "the head of its HTTP request has no end"
    valid_names = {
        host.lower(),
        f"{host.lower()}:{port}",
        f"[{host.lower()}]",
        f"[{host.lower()}]:{port}",
    }
    for name in _HOST.findall(data[: end + 2]):
        host_name = name.decode("latin-1").strip().lower()
        if host_name not in valid_names:
            return f"its HTTP request names another host, {host_name[:100]!r}"
    return ""


def _judge_hello(data: bytes, host: str) -> str | None:
    try:
        hello = _client_hello(data)
        name = None if hello is None else _server_name(hello)
    except (IndexError, ValueError):
        return "its TLS hello can't be read"
    if hello is None:
        return None if len(data) < MAX_HEAD_BYTES else "its TLS hello has no end"
    if name is not None and name.lower() != host.lower():
        return f"its TLS hello names another host, {name[:100]!r}"
    return ""


def _client_hello(data: bytes) -> bytes | None:
    """Return the body of the ClientHello, assembled from its records; None while it is incomplete.

    Raises ValueError if the bytes are no ClientHello.
    """
    message = b""
    while len(data) >= 5:
        if data[0] != _HANDSHAKE:
            raise ValueError
        length = int.from_bytes(data[3:5])
        message += data[5 : 5 + length]
        data = data[5 + length :]
        if message and message[0] != _CLIENT_HELLO:
            raise ValueError
        if len(message) >= 4 and len(message) >= 4 + int.from_bytes(message[1:4]):
            return message[4 : 4 + int.from_bytes(message[1:4])]
    return None


def _server_name(hello: bytes) -> str | None:
    """Return the name in the server_name extension, or None if there is none. Raises ValueError."""
    reader = _ByteReader(hello)
    reader.take(2 + 32)  # legacy_version, random
    for size in (1, 2, 1):  # legacy_session_id, cipher_suites, legacy_compression_methods
        reader.vector(size)
    if not reader.remaining:
        return None
    extensions = _ByteReader(reader.vector(2))
    while extensions.remaining:
        kind = extensions.number(2)
        content = _ByteReader(extensions.vector(2))
        if kind == _SERVER_NAME:
            names = _ByteReader(content.vector(2))
            if names.number(1) != 0:
                raise ValueError
            return names.vector(2).decode("ascii")
    return None


class _ByteReader:
    """Reads pieces from the front of a byte string; raises ValueError if it is too short."""

    def __init__(self, data: bytes) -> None:
        self.remaining = data

    def take(self, count: int) -> bytes:
        if count > len(self.remaining):
            raise ValueError
        taken, self.remaining = self.remaining[:count], self.remaining[count:]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def vector(self, size: int) -> bytes:
        return self.take(self.number(size))


_MIN_CREDIT: Final = wire.TUNNEL_WINDOW // 4

Clock = Callable[[], float]


@dataclass(frozen=True)
class TunnelContext:
    """Values shared by all tunnels of a wire.

    notify: sends a frame; raises SandboxError if the wire is gone.
    """

    lock: threading.Lock
    ledger: EgressLog
    notify: Callable[[wire.TunnelFrame], None]
    now: Clock


class Tunnel:
    """One connection of the sandbox. The wire's reader calls `note`, the carrier thread the rest.

    `upload`, `granted`, `window`, `ended_by_sandbox` and `closed_by_sandbox` are guarded by the
    lock.
    """

    def __init__(self, number: int, host: str, port: int, common: TunnelContext) -> None:
        self._common = common
        self.number = number
        self.host = host
        self.port = port
        self.started = self.last_active = common.now()
        self.socket: socket.socket | None = None
        self.connecting = True
        self.checked = False
        self.allowed = False
        self.granted = wire.TUNNEL_WINDOW  # bytes that the sandbox may still send
        self.window = wire.TUNNEL_WINDOW  # bytes that may still be sent to the sandbox
        self.upload = bytearray()
        self.ended_by_sandbox = self.is_shut = self.ended_by_host = False
        self.closed = self.closed_by_sandbox = False
        self.uncredited = 0  # bytes written to the host, for which no credit was sent yet
        self.sent = self.received = 0

    def event(self, reason: str) -> Egress:
        """Return the event for the ended connection.

        reason: why it ended or was refused; "" if regular.
        """
        host = self.host.encode("ascii", "backslashreplace").decode()[:MAX_NAME_CHARACTERS]
        return Egress(
            host=host,
            port=self.port,
            allowed=self.allowed,
            reason=reason,
            bytes_sent=self.sent,
            bytes_received=self.received,
            seconds=round(self._common.now() - self.started, 3),
        )

    def note(self, frame: wire.TunnelFrame) -> None:
        """Apply a frame from the sandbox; raises WireError if it isn't valid now.

        Needs the lock.
        """
        match frame.method:
            case "tunnel_data" if not self.ended_by_sandbox:
                self.granted -= len(frame.data)
                if self.granted < 0:
                    raise wire.WireError(wire.INVALID_PARAMS, "it sends more than a window")
                if not self.closed:
                    self.upload += frame.data
            case "tunnel_end" if not self.ended_by_sandbox:
                self.ended_by_sandbox = True
            case "tunnel_credit" if self.window + frame.count <= wire.TUNNEL_WINDOW:
                self.window += frame.count
            case "tunnel_close":
                self.closed_by_sandbox = True
            case _:
                raise wire.WireError(wire.INVALID_PARAMS, f"its `{frame.method}` is out of turn")

    def interest(self) -> int:
        """Return the selector events for which the tunnel waits, 0 for none."""
        with self._common.lock:
            reads = self.window > 0 and not self.ended_by_host
            writes = bool(self.upload) and (self.checked or self.ended_by_sandbox)
        return selectors.EVENT_READ * reads | selectors.EVENT_WRITE * writes

    def push(self) -> str | None:
        """Send bytes from the sandbox to the host.

        Nothing is sent until the first bytes were checked (`check_first_bytes`). Returns why
        sending is forbidden, or None. Raises OSError.
        """
        assert self.socket is not None, "it was dialled"
        with self._common.lock:
            data, has_ended = bytes(self.upload[: 2 * wire.TUNNEL_CHUNK]), self.ended_by_sandbox
        if data and not self.checked:
            verdict = check_first_bytes(data, self.host, self.port)
            if verdict is None and not has_ended:
                return None
            self.checked = True
            if verdict:
                return verdict
        if data:
            try:
                count = self.socket.send(data)
            except BlockingIOError:
                return None
            with self._common.lock:
                del self.upload[:count]
                has_ended = has_ended and not self.upload
            self.sent += count
            self.uncredited += count
            self.last_active = self._common.now()
            if not self._common.ledger.count_bytes(count):
                return self._common.ledger.bytes_used_up
            self.give_credit()
        if has_ended and len(self.upload) == 0 and not self.is_shut:
            self.is_shut = True
            self.socket.shutdown(socket.SHUT_WR)
        return None

    def give_credit(self) -> None:
        """Grant the sandbox as many bytes as were sent on, once they are worth a frame."""
        if self.uncredited >= _MIN_CREDIT:
            count, self.uncredited = self.uncredited, 0
            with self._common.lock:
                self.granted += count
            self._common.notify(wire.TunnelFrame("tunnel_credit", self.number, count=count))

    def pull(self) -> str | None:
        """Send bytes from the host to the sandbox.

        Returns why sending is forbidden, or None. Raises OSError.
        """
        assert self.socket is not None, "it was dialled"
        max_bytes = min(self.window, wire.TUNNEL_CHUNK)
        if max_bytes <= 0 or self.ended_by_host:
            return None
        try:
            data = self.socket.recv(max_bytes)
        except BlockingIOError:
            return None
        self.last_active = self._common.now()
        if not data:
            self.ended_by_host = True
            self._common.notify(wire.TunnelFrame("tunnel_end", self.number))
            return None
        self.received += len(data)
        if not self._common.ledger.count_bytes(len(data)):
            return self._common.ledger.bytes_used_up
        with self._common.lock:
            self.window -= len(data)
        self._common.notify(wire.TunnelFrame("tunnel_data", self.number, data=data))
        return None
