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

_MAX_TUNNELS: Final = 2 * wire.MAX_TUNNELS
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
        self._sweep_pause = min(_SWEEP_SECONDS, idle / 4)
        self._lock = threading.Lock()
        self._common = TunnelContext(self._lock, ledger, self._notify, now)
        self._tunnels: dict[int, Tunnel] = {}
        self._last_number = 0
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
            if tunnel is None or tunnel.closed_by_sandbox:
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
            if frame.tunnel <= self._last_number:
                raise wire.WireError(wire.INVALID_PARAMS, "it opens a tunnel twice")
            if len(self._tunnels) >= _MAX_TUNNELS:
                raise wire.WireError(wire.INVALID_PARAMS, "it opens too many tunnels")
            self._last_number = frame.tunnel
            tunnel = Tunnel(frame.tunnel, frame.host, frame.port, self._common)
            self._tunnels[frame.tunnel] = tunnel
        try:
            self._ledger.begin()
        except EgressRefusal as refusal:
            self._work.put((tunnel, refusal))
            self._wake()
            return
        name = f"dial-{frame.tunnel}"
        threading.Thread(target=self._connect, args=(tunnel,), name=name, daemon=True).start()

    def _connect(self, tunnel: Tunnel) -> None:
        try:
            result: socket.socket | EgressRefusal = self._policy.dial(tunnel.host, tunnel.port)
        except EgressRefusal as refusal:
            result = refusal
        with self._lock:
            if not self._ended:
                self._work.put((tunnel, result))
            elif isinstance(result, socket.socket):
                result.close()
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
        last_sweep = self._now()
        try:
            while not self._stopped:
                timeout = self._sweep_pause if self._tunnels else None
                for key, events in self._selector.select(timeout):
                    if key.data is None:
                        self._take_work()
                    else:
                        self._move(key.data, bool(events & selectors.EVENT_READ))
                if self._now() - last_sweep > self._sweep_pause:
                    last_sweep = self._now()
                    self._sweep(last_sweep)
        except SandboxError:
            pass  # the wire is gone; its reader reports that
        finally:
            self._end_all()

    def _take_work(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_reader.recv(4096)
        while True:
            try:
                tunnel, result = self._work.get_nowait()
            except queue.Empty:
                return
            with self._lock:
                if result is None:
                    self._queued.discard(tunnel.number)
            if result is not None:
                self._finish_connecting(tunnel, result)
            self._move(tunnel, readable=False)

    def _finish_connecting(self, tunnel: Tunnel, result: "socket.socket | EgressRefusal") -> None:
        tunnel.connecting = False
        if isinstance(result, EgressRefusal):
            tunnel.allowed = result.allowed
            self._close(tunnel, result.reason, result.status, result.hint)
            return
        tunnel.allowed = True
        tunnel.socket = result
        tunnel.last_active = self._now()
        result.setblocking(False)
        self._selector.register(result, selectors.EVENT_READ, tunnel)
        if not tunnel.closed_by_sandbox:
            self._notify(wire.TunnelFrame("tunnel_opened", tunnel.number))

    def _move(self, tunnel: Tunnel, readable: bool) -> None:
        """Advance a tunnel: move a piece of data in each direction, then close it if it is done."""
        if tunnel.connecting or tunnel.closed:
            self._forget(tunnel)
            return
        if tunnel.closed_by_sandbox:
            self._close(tunnel)
            return
        try:
            problem = tunnel.push() or (tunnel.pull() if readable else None)
        except OSError as error:
            problem = f"the connection broke: {error}"
        if problem:
            self._close(tunnel, problem, 502)
        elif tunnel.is_shut and tunnel.ended_by_host:
            self._close(tunnel)
        else:
            self._watch(tunnel)

    def _watch(self, tunnel: Tunnel) -> None:
        """Register the events for which the tunnel waits with the selector."""
        assert tunnel.socket is not None, "it was dialled"
        events = tunnel.interest()
        is_registered = tunnel.socket in self._selector.get_map()
        if not events and is_registered:
            self._selector.unregister(tunnel.socket)
        elif events and is_registered:
            self._selector.modify(tunnel.socket, events, tunnel)
        elif events:
            self._selector.register(tunnel.socket, events, tunnel)

    def _close(self, tunnel: Tunnel, reason: str = "", status: int = 200, hint: str = "") -> None:
        self._end(tunnel, reason)
        full_reason = (reason + hint)[: wire.MAX_REASON]
        self._notify(
            wire.TunnelFrame("tunnel_close", tunnel.number, status=status, reason=full_reason)
        )
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
            if tunnel.closed and tunnel.closed_by_sandbox:
                self._tunnels.pop(tunnel.number, None)

    def _sweep(self, now: float) -> None:
        with self._lock:
            tunnels = list(self._tunnels.values())
        for tunnel in tunnels:
            if (
                not tunnel.connecting
                and not tunnel.closed
                and now - tunnel.last_active > self._idle
            ):
                self._close(tunnel, f"nothing was carried for {self._idle:g} seconds", 504)

    def _end_all(self) -> None:
        with self._lock:
            self._ended = True
            open_tunnels = [tunnel for tunnel in self._tunnels.values() if not tunnel.closed]
        with contextlib.suppress(queue.Empty):
            while True:
                tunnel, result = self._work.get_nowait()
                if isinstance(result, socket.socket):
                    tunnel.allowed, tunnel.socket = True, result
        for tunnel in open_tunnels:
            self._end(tunnel, "the sandbox was closed")
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()

    def _notify(self, frame: wire.TunnelFrame) -> None:
        self._send(wire.tunnel_notice(frame))
