"""One tunnel on the host: what it may send and take, and each step that moves its bytes.

tunnels.py has all of them, and the threads.
"""

import selectors
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from resolver.events.lifecycle import Egress
from resolver.runtime.egress import LONGEST_NAME, EgressLog
from resolver.runtime.first_bytes import check_first_bytes
from resolver.sandbox import wire

_CREDIT_FROM: Final = wire.TUNNEL_WINDOW // 4

Clock = Callable[[], float]


@dataclass(frozen=True)
class TunnelContext:
    """What all tunnels of a wire share. notify: sends a frame, raises SandboxError."""

    lock: threading.Lock
    ledger: EgressLog
    notify: Callable[[wire.TunnelFrame], None]
    now: Clock


class Tunnel:
    """One connection. `note` is for the wire's reader; the rest for the thread that carries.

    `upload`, `granted`, `window`, `ended_inside` and `closed_there` are guarded by the lock.
    """

    def __init__(self, number: int, host: str, port: int, common: TunnelContext) -> None:
        self._common = common
        self.number = number
        self.host = host
        self.port = port
        self.started = self.active = common.now()
        self.socket: socket.socket | None = None
        self.dialling = True
        self.judged = False
        self.allowed = False
        self.granted = wire.TUNNEL_WINDOW  # bytes that may still come from the sandbox
        self.window = wire.TUNNEL_WINDOW  # bytes that may still go to it
        self.upload = bytearray()
        self.ended_inside = self.shut = self.ended_outside = False
        self.closed = self.closed_there = False
        self.through = 0  # bytes of the upload not yet credited
        self.sent = self.received = 0

    def event(self, reason: str) -> Egress:
        """What is told of it when it has ended."""
        host = self.host.encode("ascii", "backslashreplace").decode()[:LONGEST_NAME]
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
        """Take in what the sandbox says. Call it in the lock. Raises WireError for what may not
        be said now."""
        match frame.method:
            case "tunnel_data" if not self.ended_inside:
                self.granted -= len(frame.data)
                if self.granted < 0:
                    raise wire.WireError(wire.INVALID_PARAMS, "it sends more than a window")
                if not self.closed:
                    self.upload += frame.data
            case "tunnel_end" if not self.ended_inside:
                self.ended_inside = True
            case "tunnel_credit" if self.window + frame.count <= wire.TUNNEL_WINDOW:
                self.window += frame.count
            case "tunnel_close":
                self.closed_there = True
            case _:
                raise wire.WireError(wire.INVALID_PARAMS, f"its `{frame.method}` is out of turn")

    def interest(self) -> int:
        """What the selector is to look for: events by which the tunnel can go on."""
        with self._common.lock:
            reads = self.window > 0 and not self.ended_outside
            writes = bool(self.upload) and (self.judged or self.ended_inside)
        return selectors.EVENT_READ * reads | selectors.EVENT_WRITE * writes

    def push(self) -> str:
        """From the sandbox to the host. Returns what forbids it. Raises OSError."""
        assert self.socket is not None, "it was dialled"
        with self._common.lock:
            data, ended = bytes(self.upload[: 2 * wire.TUNNEL_CHUNK]), self.ended_inside
        if data and not self.judged:
            verdict = check_first_bytes(data, self.host, self.port)
            if verdict is None and not ended:
                return ""
            self.judged = True
            if verdict:
                return verdict
        if data:
            try:
                count = self.socket.send(data)
            except BlockingIOError:
                return ""
            with self._common.lock:
                del self.upload[:count]
                ended = ended and not self.upload
            self.sent += count
            self.through += count
            self.active = self._common.now()
            if not self._common.ledger.carry(count):
                return self._common.ledger.spent
            self.give_credit()
        if ended and len(self.upload) == 0 and not self.shut:
            self.shut = True
            self.socket.shutdown(socket.SHUT_WR)
        return ""

    def give_credit(self) -> None:
        """Let the sandbox send as much more as has gone through, in pieces worth a frame."""
        if self.through >= _CREDIT_FROM:
            count, self.through = self.through, 0
            with self._common.lock:
                self.granted += count
            self._common.notify(wire.TunnelFrame("tunnel_credit", self.number, count=count))

    def pull(self) -> str:
        """From the host to the sandbox. Returns what forbids it. Raises OSError."""
        assert self.socket is not None, "it was dialled"
        most = min(self.window, wire.TUNNEL_CHUNK)
        if most <= 0 or self.ended_outside:
            return ""
        try:
            data = self.socket.recv(most)
        except BlockingIOError:
            return ""
        self.active = self._common.now()
        if not data:
            self.ended_outside = True
            self._common.notify(wire.TunnelFrame("tunnel_end", self.number))
            return ""
        self.received += len(data)
        if not self._common.ledger.carry(len(data)):
            return self._common.ledger.spent
        with self._common.lock:
            self.window -= len(data)
        self._common.notify(wire.TunnelFrame("tunnel_data", self.number, data=data))
        return ""
