"""A port in front of a plain HTTP server that tells clients at once that it does not speak TLS.

A real server answers a TLS handshake with an error in plain text, which is what clients of image
registries wait for before they try without TLS. The WSGI server of the tests would wait for more.
"""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

TLS_HANDSHAKE = b"\x16"
"""First byte of a TLS connection. Source: https://www.rfc-editor.org/rfc/rfc8446#section-5.1"""
REFUSAL = b"HTTP/1.0 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@contextmanager
def plain_http_port(target: int) -> Iterator[int]:
    """Yield a port that forwards connections to the port `target`, and refuses TLS."""
    ports: list[int] = []
    started, stopping = threading.Event(), asyncio.Event()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.read(65_536)
        if first.startswith(TLS_HANDSHAKE):
            writer.write(REFUSAL)
            writer.close()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        far_writer.write(first)
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    async def listen() -> None:
        server = await asyncio.start_server(forward, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        started.set()
        await stopping.wait()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(listen()), daemon=True)
    thread.start()
    started.wait()
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join()
        loop.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # one side has gone; closing the connection ends the other
    finally:
        with contextlib.suppress(OSError):
            writer.close()
