"""An HTTP proxy on the sandbox's loopback interface: the only way out of the sandbox.

Each connection to it becomes a tunnel on the wire (see wire.TUNNEL_METHODS). The host alone decides
which targets may be reached; the proxy only checks the form of a request.

The sandbox has no network interface but loopback. A program connects to the proxy, which sends
`tunnel_open` with the host and port of the target. If the host has connected, it answers
`tunnel_opened`, and both sides carry data until one of them closes the tunnel; otherwise it answers
`tunnel_close` with an HTTP status and a reason, which the program receives as the response.

One thread with an event loop serves all connections. The server's reading thread calls `take`.
"""

import asyncio
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from .request_head import MAX_HEAD_BYTES, BadRequest, ProxyRequest, read_head
from .wire import (
    INVALID_PARAMS,
    MAX_TUNNELS,
    TUNNEL_CHUNK,
    TUNNEL_WINDOW,
    TunnelFrame,
    WireError,
    tunnel_frame,
    tunnel_notice,
)

PORT: Final = 3128
"""Default port, if it is free, so that runs of one kind have the same environment."""

HEAD_SECONDS: Final = 30.0
"""Seconds that a program may take to send the head of its request."""

DRAIN_SECONDS: Final = 300.0
"""Seconds that a program may take to read a part of the response."""

_BACKLOG: Final = 512
"""Backlog of the listening socket; see listen(2)."""

_LINGER_SECONDS: Final = 1.0
"""Seconds to read on after an error response was sent."""

Send = Callable[[bytes], None]
Fault = Callable[[WireError], None]


def proxy_variables(port: int, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that make programs use the proxy.

    inherited: the environment that the programs would have had; its NO_PROXY is extended.
    """
    url = f"http://127.0.0.1:{port}"
    # No "::1": client libraries of some years ago fail at start because they can't parse it.
    local_hosts = "localhost,127.0.0.1"
    no_proxy = inherited.get("NO_PROXY", inherited.get("no_proxy", ""))
    result = {}
    for name, value in (
        ("HTTP_PROXY", url), ("HTTPS_PROXY", url), ("ALL_PROXY", url),
        ("NO_PROXY", ",".join(filter(None, [no_proxy, local_hosts]))),
    ):  # fmt: skip
        result[name] = result[name.lower()] = value
    for name in ("CARGO_HTTP_PROXY", "npm_config_proxy", "npm_config_https_proxy"):
        result[name] = url
    # Yarn 2 and later read none of the usual variables.
    return result | {"YARN_HTTP_PROXY": url, "YARN_HTTPS_PROXY": url}


class Proxy:
    """Listens as soon as it is created, and serves after `start`.

    head_seconds: seconds that a program may take to send the head of its request.
    Raises OSError if no port is available.
    """

    def __init__(self, head_seconds: float = HEAD_SECONDS) -> None:
        self._head_seconds = head_seconds
        self._listener = _listen()
        self.port: int = self._listener.getsockname()[1]
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._closing = asyncio.Event()
        self._tunnels: dict[int, _Tunnel] = {}
        self._last_number = 0
        self._free_slots = asyncio.Semaphore(MAX_TUNNELS)
        self._serving: set[asyncio.Task[None]] = set()

    def start(self, send: Send, fault: Fault) -> None:
        """Serve in a new thread.

        send: writes a frame to the wire.
        fault: called with the error for a frame that breaks the contract.
        """
        self._send = send
        self._fault = fault
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving, and close the port and every connection. Call it once, after `start`."""
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    def take(self, method: str, params: object) -> None:
        """Handle a tunnel notification from the host. Raises WireError (INVALID_PARAMS)."""
        frame = tunnel_frame(method, params)
        self._loop.call_soon_threadsafe(self._dispatch, frame)

    def _run(self) -> None:
        with self._listener, self._runner:
            self._runner.run(self._accept_until_closed())

    async def _accept_until_closed(self) -> None:
        accepting = asyncio.create_task(self._accept())
        closing = asyncio.create_task(self._closing.wait())
        await asyncio.wait((accepting, closing), return_when=asyncio.FIRST_COMPLETED)

    async def _accept(self) -> None:
        """Accept connections forever, at most MAX_TUNNELS at a time."""
        while True:
            # Above MAX_TUNNELS, connections stay in the backlog of the kernel.
            await self._free_slots.acquire()
            try:
                connection, _ = await self._loop.sock_accept(self._listener)
            except OSError:  # no descriptors left, or closed before it was accepted
                self._free_slots.release()
                await asyncio.sleep(0.1)
                continue
            task = self._loop.create_task(self._serve(connection))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def _serve(self, connection: socket.socket) -> None:
        """Serve one connection: read the request, open its tunnel, and carry the data."""
        tunnel = None
        reader, writer = await _streams(self._loop, connection)
        try:
            request = read_head(await _read_request_head(reader, self._head_seconds))
            tunnel = self._open(request)
            await tunnel.wait_for_answer()
            if not tunnel.opened:
                raise BadRequest(tunnel.status, tunnel.reason)
            await _exchange(request, tunnel, reader, writer)
        except BadRequest as error:
            with suppress(OSError):
                await _refuse(error, reader, writer)
        except (OSError, EOFError):  # includes TimeoutError
            pass  # the program or the other end has closed the connection
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            if tunnel is None:
                self._free_slots.release()
            else:
                tunnel.close()
                self._forget(tunnel)
            writer.close()

    def _open(self, request: ProxyRequest) -> "_Tunnel":
        self._last_number += 1
        tunnel = self._tunnels[self._last_number] = _Tunnel(self._last_number, self._send)
        frame = TunnelFrame("tunnel_open", self._last_number, host=request.host, port=request.port)
        self._send(tunnel_notice(frame))
        return tunnel

    def _dispatch(self, frame: TunnelFrame) -> None:
        """Pass a frame to its tunnel. A frame that breaks the contract is reported."""
        tunnel = self._tunnels.get(frame.tunnel)
        try:
            if tunnel is None or frame.method == "tunnel_open":
                raise WireError(INVALID_PARAMS, f"there is no tunnel {frame.tunnel}")
            tunnel.take(frame)
        except WireError as error:
            self._fault(error)
        else:
            self._forget(tunnel)

    def _forget(self, tunnel: "_Tunnel") -> None:
        """Free the tunnel's number once both sides have closed it.

        Until then frames of the host may be on their way, which must not be taken for faults.
        """
        if tunnel.is_gone and tunnel.number in self._tunnels:
            del self._tunnels[tunnel.number]
            self._free_slots.release()


class _Tunnel:
    """The sandbox's end of one tunnel. It belongs to the thread of the event loop."""

    def __init__(self, number: int, send: Send) -> None:
        self.number = number
        self.opened = False
        self.status, self.reason = 502, "the tunnel was closed"
        self._send = send
        self._inbox: deque[bytes] = deque()
        self._window = TUNNEL_WINDOW  # bytes that may still be sent
        self._granted = TUNNEL_WINDOW  # bytes that may still arrive
        self._ended = False
        self._closed = self._closed_by_host = False
        self._changed = asyncio.Event()

    @property
    def is_gone(self) -> bool:
        """True if both sides have closed it."""
        return self._closed and self._closed_by_host

    @property
    def is_torn(self) -> bool:
        """True if it was closed before the other side had sent all of its data."""
        return self.opened and not self._ended and self._closed_by_host

    def take(self, frame: TunnelFrame) -> None:
        """Process a notification of the host.

        Raises WireError if it is not allowed in this state.
        """
        if self._closed_by_host:
            raise WireError(INVALID_PARAMS, f"tunnel {self.number} is closed")
        match frame.method:
            case "tunnel_opened" if not self.opened:
                self.opened = True
            case "tunnel_data" if self.opened and not self._ended:
                self._granted -= len(frame.data)
                if self._granted < 0:
                    raise WireError(INVALID_PARAMS, f"tunnel {self.number}: over its window")
                if not self._closed:
                    self._inbox.append(frame.data)
            case "tunnel_end" if self.opened and not self._ended:
                self._ended = True
            case "tunnel_credit" if self.opened:
                self._window += frame.count
            case "tunnel_close":
                self._closed_by_host = True
                self.status, self.reason = frame.status, frame.reason
            case _:
                raise WireError(INVALID_PARAMS, f"{frame.method} is out of turn")
        self._changed.set()

    async def wait_for_answer(self) -> None:
        """Wait until the host has opened or refused the tunnel."""
        while not (self.opened or self._closed_by_host):
            await self._change()

    async def wait_until_closed(self) -> None:
        """Wait until the host has closed the tunnel."""
        while not self._closed_by_host:
            await self._change()

    async def write(self, data: bytes) -> None:
        """Send data within the window that the host grants.

        Raises EOFError if the tunnel is closed.
        """
        remaining = memoryview(data)
        while remaining:
            while self._window <= 0 and not self._closed_by_host:
                await self._change()
            if self._closed_by_host:
                raise EOFError
            chunk = bytes(remaining[: min(self._window, TUNNEL_CHUNK)])
            self._window -= len(chunk)
            remaining = remaining[len(chunk) :]
            self._notify(TunnelFrame("tunnel_data", self.number, data=chunk))

    async def read(self) -> bytes:
        """Return the next data; b"" at the end."""
        while not self._inbox:
            if self._ended or self._closed or self._closed_by_host:
                return b""
            await self._change()
        return self._inbox.popleft()

    def credit(self, count: int) -> None:
        """Tell the host that `count` bytes were consumed, so that it may send as many more.

        The caller does so once the program has read them: a program that does not read stops its
        own tunnel and no other one.
        """
        self._granted += count
        if not self._closed_by_host:
            self._notify(TunnelFrame("tunnel_credit", self.number, count=count))

    def end(self) -> None:
        """Tell the host that no more data follows."""
        if not self._closed_by_host:
            self._notify(TunnelFrame("tunnel_end", self.number))

    def close(self) -> None:
        """Close both directions."""
        if not self._closed:
            self._closed = True
            self._inbox.clear()
            self._changed.set()
            self._notify(TunnelFrame("tunnel_close", self.number))

    def _notify(self, frame: TunnelFrame) -> None:
        self._send(tunnel_notice(frame))

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


async def _streams(
    loop: asyncio.AbstractEventLoop, connection: socket.socket
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def _read_request_head(reader: asyncio.StreamReader, seconds: float) -> bytes:
    try:
        return await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), seconds)
    except TimeoutError:
        raise BadRequest(408, "the request did not come in time") from None
    except asyncio.LimitOverrunError:
        raise BadRequest(431, f"the request's head is over {MAX_HEAD_BYTES} bytes") from None


async def _exchange(
    request: ProxyRequest,
    tunnel: _Tunnel,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Carry the data of both directions until the end.

    Raises OSError or EOFError if one of them was interrupted.
    """
    if request.tunnel:
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    sending = asyncio.ensure_future(_send_request(request, tunnel, reader))

    def close_if_torn(done: "asyncio.Task[None]") -> None:
        if not done.cancelled() and done.exception():
            tunnel.close()

    sending.add_done_callback(close_if_torn)
    watching_close = asyncio.ensure_future(_follow_closing(tunnel, writer))
    try:
        await _send_response(tunnel, writer)
        if request.tunnel:
            await asyncio.wait({sending, watching_close}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        sending.cancel()
        watching_close.cancel()
        await asyncio.gather(sending, watching_close, return_exceptions=True)


async def _follow_closing(tunnel: _Tunnel, writer: asyncio.StreamWriter) -> None:
    await tunnel.wait_until_closed()
    if tunnel.is_torn:
        _reset(writer)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Abort the connection, so that no program mistakes a part of a response for all of it.

    SO_LINGER with a time of zero makes close(2) discard unsent data and reset the connection; see
    socket(7).
    """
    linger = struct.pack("ii", 1, 0)
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def _send_request(
    request: ProxyRequest, tunnel: _Tunnel, reader: asyncio.StreamReader
) -> None:
    """Send the request to the host: the head, then the body, or all data of a CONNECT tunnel.

    Only CONNECT passes on the end of the data. After a plain request the target closes the
    connection, because the forwarded request says `Connection: close`.
    """
    if request.head:
        await tunnel.write(request.head)
    bytes_left = request.body
    while bytes_left is None or bytes_left > 0:
        data = await reader.read(
            TUNNEL_CHUNK if bytes_left is None else min(bytes_left, TUNNEL_CHUNK)
        )
        if not data:
            break
        bytes_left = None if bytes_left is None else bytes_left - len(data)
        await tunnel.write(data)
    if request.tunnel:
        tunnel.end()


async def _send_response(tunnel: _Tunnel, writer: asyncio.StreamWriter) -> None:
    """Send the data of the host to the program until the end."""
    while data := await tunnel.read():
        writer.write(data)
        await asyncio.wait_for(writer.drain(), DRAIN_SECONDS)
        tunnel.credit(len(data))
    if tunnel.is_torn:
        _reset(writer)
        raise EOFError
    writer.write_eof()


async def _refuse(
    error: BadRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Send a response with the reason, also in the first line, which many programs show."""
    reason = "".join(character if " " <= character <= "~" else "?" for character in error.reason)
    is_known_status = error.status in HTTPStatus._value2member_map_
    line = f"{HTTPStatus(error.status).phrase}: {reason}" if is_known_status else reason
    body = f"{reason}\n".encode()
    writer.write(
        f"HTTP/1.1 {error.status} {line}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )
    await writer.drain()
    writer.write_eof()
    # Closing a socket with unread data resets the connection, and the program might lose the
    # response.
    with suppress(TimeoutError):
        await asyncio.wait_for(_discard(reader), _LINGER_SECONDS)


async def _discard(reader: asyncio.StreamReader) -> None:
    while await reader.read(TUNNEL_CHUNK):
        pass


def _listen() -> socket.socket:
    """Return a listening socket on loopback: on PORT, or on any port if that is taken."""
    for port in (PORT, 0):
        listener = socket.socket()
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen(_BACKLOG)
            listener.setblocking(False)
            return listener
        except OSError:
            listener.close()
            if port == 0:
                raise
    raise AssertionError("the last port either listens or raises")
