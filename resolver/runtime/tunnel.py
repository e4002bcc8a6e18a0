"""One egress tunnel on the host: its state, its flow control and the steps that move its bytes.

Flow control works by credit, as in HTTP/2 (RFC 9113 section 5.2): each side may send up to a window
of bytes ahead, and the receiver grants more as it consumes them. Memory per tunnel is therefore
limited however slow one side is. tunnels.py holds all tunnels and the threads.
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
    """Values shared by all tunnels of a wire.

    notify: sends a frame; raises SandboxError if the wire is gone.
    """

    lock: threading.Lock
    ledger: EgressLog
    notify: Callable[[wire.TunnelFrame], None]
    now: Clock


class Tunnel:
    """One connection of the sandbox. The wire's reader calls `note`, the carrier thread the rest.

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
        self.granted = wire.TUNNEL_WINDOW  # bytes that the sandbox may still send
        self.window = wire.TUNNEL_WINDOW  # bytes that may still be sent to the sandbox
        self.upload = bytearray()
        self.ended_inside = self.shut = self.ended_outside = False
        self.closed = self.closed_there = False
        self.through = 0  # bytes written to the host, for which no credit was sent yet
        self.sent = self.received = 0

    def event(self, reason: str) -> Egress:
        """Return the event for the ended connection.

        reason: why it ended or was refused; "" if regular.
        """
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
        """Apply a frame from the sandbox; raises WireError if it isn't valid now.

        Needs the lock.
        """
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
        """Return the selector events for which the tunnel waits, 0 for none."""
        with self._common.lock:
            reads = self.window > 0 and not self.ended_outside
            writes = bool(self.upload) and (self.judged or self.ended_inside)
        return selectors.EVENT_READ * reads | selectors.EVENT_WRITE * writes

    def push(self) -> str:
        """Send bytes from the sandbox to the host.

        Nothing is sent until the first bytes were checked (first_bytes.py). Returns why sending is
        forbidden, or "". Raises OSError.
        """
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
        """Grant the sandbox as many bytes as were sent on, once they are worth a frame."""
        if self.through >= _CREDIT_FROM:
            count, self.through = self.through, 0
            with self._common.lock:
                self.granted += count
            self._common.notify(wire.TunnelFrame("tunnel_credit", self.number, count=count))

    def pull(self) -> str:
        """Send bytes from the host to the sandbox.

        Returns why sending is forbidden, or "". Raises OSError.
        """
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
