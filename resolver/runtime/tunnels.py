"""The host's end of the egress tunnels: makes and carries the connections of the sandbox's proxy.

The sandbox has no network. A proxy in it turns each connection into a tunnel, whose frames travel
over the wire as JSON-RPC notifications (sandbox/wire.py): `tunnel_open`, `tunnel_data`,
`tunnel_credit`, `tunnel_end`, `tunnel_close`. The host decides about the connection and makes it.

Threads: the wire's reader calls `take`, which never waits; one carrier thread moves all bytes; each
dial has a short-lived thread. Everything that the sandbox can make grow has a limit.
"""

import contextlib
import queue
import selectors
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

from resolver.errors import SandboxError
from resolver.runtime.egress import EgressLog, EgressPolicy, EgressRefusal
from resolver.runtime.tunnel import Clock, Tunnel, TunnelContext
from resolver.sandbox import wire

IDLE_SECONDS: Final = 300.0
"""Seconds without traffic after which a tunnel is closed."""

_MOST: Final = 2 * wire.MAX_TUNNELS
"""Limit of the tunnels known here. The sandbox counts a tunnel as gone when both ends have sent
`tunnel_close`, the host only when its carrier has processed that. So as many tunnels as were open
may still wait for the carrier when the sandbox opens new ones."""

_SWEEP_SECONDS: Final = 5.0
_JOIN_SECONDS: Final = 5.0


class HostTunnels:
    """All tunnels of one wire.

    send: sends one frame over the wire; raises SandboxError if the wire is gone.
    now: returns monotonic time in seconds.
    idle: seconds without traffic after which a tunnel is closed.
    """

    def __init__(
        self,
        policy: EgressPolicy,
        ledger: EgressLog,
        send: Callable[[bytes], None],
        now: Clock = time.monotonic,
        idle: float = IDLE_SECONDS,
    ) -> None:
        self._policy = policy
        self._ledger = ledger
        self._send = send
        self._now = now
        self._idle = idle
        self._pause = min(_SWEEP_SECONDS, idle / 4)
        self._lock = threading.Lock()
        self._common = TunnelContext(self._lock, ledger, self._notify, now)
        self._tunnels: dict[int, Tunnel] = {}
        self._last = 0
        self._work: queue.SimpleQueue[tuple[Tunnel, socket.socket | EgressRefusal | None]]
        self._work = queue.SimpleQueue()
        self._queued: set[int] = set()
        self._stopped = self._ended = False
        self._selector = selectors.DefaultSelector()
        # The carrier waits in `select`. A byte written to this pair wakes it when there is new
        # work.
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        self._carrier = threading.Thread(target=self._carry, name="tunnels", daemon=True)
        self._carrier.start()

    def take(self, method: str, params: object) -> None:
        """Process a notification from the sandbox. Raises WireError if it breaks the protocol."""
        frame = wire.tunnel_frame(method, params)
        if method == "tunnel_open":
            self._open(frame)
            return
        with self._lock:
            tunnel = self._tunnels.get(frame.tunnel)
            if tunnel is None or tunnel.closed_there:
                raise wire.WireError(wire.INVALID_PARAMS, "it names a tunnel that is not there")
            tunnel.note(frame)
            self._queue(tunnel)

    def stop(self) -> None:
        """End all tunnels without waiting for it."""
        self._stopped = True
        self._wake()

    def join(self) -> None:
        """Wait until all tunnels have ended and are in the egress log."""
        self._carrier.join(_JOIN_SECONDS)

    def _open(self, frame: wire.TunnelFrame) -> None:
        with self._lock:
            if frame.tunnel <= self._last:
                raise wire.WireError(wire.INVALID_PARAMS, "it opens a tunnel twice")
            if len(self._tunnels) >= _MOST:
                raise wire.WireError(wire.INVALID_PARAMS, "it opens too many tunnels")
            self._last = frame.tunnel
            tunnel = Tunnel(frame.tunnel, frame.host, frame.port, self._common)
            self._tunnels[frame.tunnel] = tunnel
        try:
            self._ledger.begin()
        except EgressRefusal as refusal:
            self._work.put((tunnel, refusal))
            self._wake()
            return
        name = f"dial-{frame.tunnel}"
        threading.Thread(target=self._dial, args=(tunnel,), name=name, daemon=True).start()

    def _dial(self, tunnel: Tunnel) -> None:
        try:
            made: socket.socket | EgressRefusal = self._policy.dial(tunnel.host, tunnel.port)
        except EgressRefusal as refusal:
            made = refusal
        with self._lock:
            if not self._ended:
                self._work.put((tunnel, made))
            elif isinstance(made, socket.socket):
                made.close()
        self._wake()

    def _queue(self, tunnel: Tunnel) -> None:
        """Ask the carrier to look at the tunnel; requests before it does are merged.

        Needs the lock.
        """
        if tunnel.number not in self._queued:
            self._queued.add(tunnel.number)
            self._work.put((tunnel, None))
            self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it is awake already; closed: it has ended
            self._wake_writer.send(b"x")

    # The methods below run in the carrier's thread only.

    def _carry(self) -> None:
        swept = self._now()
        try:
            while not self._stopped:
                waiting = self._pause if self._tunnels else None
                for key, events in self._selector.select(waiting):
                    if key.data is None:
                        self._take_work()
                    else:
                        self._move(key.data, bool(events & selectors.EVENT_READ))
                if self._now() - swept > self._pause:
                    swept = self._now()
                    self._sweep(swept)
        except SandboxError:
            pass  # the wire is gone; its reader reports that
        finally:
            self._end_all()

    def _take_work(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_reader.recv(4096)
        while True:
            try:
                tunnel, made = self._work.get_nowait()
            except queue.Empty:
                return
            with self._lock:
                if made is None:
                    self._queued.discard(tunnel.number)
            if made is not None:
                self._dialled(tunnel, made)
            self._move(tunnel, readable=False)

    def _dialled(self, tunnel: Tunnel, made: "socket.socket | EgressRefusal") -> None:
        tunnel.dialling = False
        if isinstance(made, EgressRefusal):
            tunnel.allowed = made.allowed
            self._close(tunnel, made.reason, made.status, made.hint)
            return
        tunnel.allowed = True
        tunnel.socket = made
        tunnel.active = self._now()
        made.setblocking(False)
        self._selector.register(made, selectors.EVENT_READ, tunnel)
        if not tunnel.closed_there:
            self._notify(wire.TunnelFrame("tunnel_opened", tunnel.number))

    def _move(self, tunnel: Tunnel, readable: bool) -> None:
        """Advance a tunnel: move a piece of data in each direction, then close it if it is done."""
        if tunnel.dialling or tunnel.closed:
            self._forget(tunnel)
            return
        if tunnel.closed_there:
            self._close(tunnel)
            return
        try:
            problem = tunnel.push() or (tunnel.pull() if readable else "")
        except OSError as error:
            problem = f"the connection broke: {error}"
        if problem:
            self._close(tunnel, problem, 502)
        elif tunnel.shut and tunnel.ended_outside:
            self._close(tunnel)
        else:
            self._watch(tunnel)

    def _watch(self, tunnel: Tunnel) -> None:
        """Register the events for which the tunnel waits with the selector."""
        assert tunnel.socket is not None, "it was dialled"
        wanted = tunnel.interest()
        known = tunnel.socket in self._selector.get_map()
        if not wanted and known:
            self._selector.unregister(tunnel.socket)
        elif wanted and known:
            self._selector.modify(tunnel.socket, wanted, tunnel)
        elif wanted:
            self._selector.register(tunnel.socket, wanted, tunnel)

    def _close(self, tunnel: Tunnel, reason: str = "", status: int = 200, hint: str = "") -> None:
        self._end(tunnel, reason)
        words = (reason + hint)[: wire.MAX_REASON]
        self._notify(wire.TunnelFrame("tunnel_close", tunnel.number, status=status, reason=words))
        self._forget(tunnel)

    def _end(self, tunnel: Tunnel, reason: str) -> None:
        """Close the connection and add it to the egress log."""
        if tunnel.socket is not None:
            if tunnel.socket in self._selector.get_map():
                self._selector.unregister(tunnel.socket)
            tunnel.socket.close()
            tunnel.socket = None
        with self._lock:
            tunnel.closed = True
            tunnel.upload.clear()
        self._ledger.note(tunnel.event(reason))

    def _forget(self, tunnel: Tunnel) -> None:
        """Forget a tunnel that both sides have closed."""
        with self._lock:
            if tunnel.closed and tunnel.closed_there:
                self._tunnels.pop(tunnel.number, None)

    def _sweep(self, now: float) -> None:
        with self._lock:
            known = list(self._tunnels.values())
        for tunnel in known:
            if not tunnel.dialling and not tunnel.closed and now - tunnel.active > self._idle:
                self._close(tunnel, f"nothing was carried for {self._idle:g} seconds", 504)

    def _end_all(self) -> None:
        with self._lock:
            self._ended = True
            known = [tunnel for tunnel in self._tunnels.values() if not tunnel.closed]
        with contextlib.suppress(queue.Empty):
            while True:
                tunnel, made = self._work.get_nowait()
                if isinstance(made, socket.socket):
                    tunnel.allowed, tunnel.socket = True, made
        for tunnel in known:
            self._end(tunnel, "the sandbox was closed")
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()

    def _notify(self, frame: wire.TunnelFrame) -> None:
        self._send(wire.tunnel_notice(frame))
