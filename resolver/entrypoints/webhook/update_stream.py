"""The response that sends a viewer the updates of a run as server-sent events.

See https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
from collections.abc import Mapping

import anyio
from fastapi.sse import KEEPALIVE_COMMENT
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from resolver.entrypoints.webhook.live_runs import LiveRuns, TooManyViewersError, Viewer

PING_SECONDS = 15.0
"""Time in seconds without an update after which a comment is sent, so that proxies keep the
connection."""

CUT_SECONDS = 30.0
"""Time in seconds in which a viewer that has not kept up can take the rest; then its connection is
closed."""


class UpdateStream(Response):
    """Sends updates until the viewer is disconnected or its stream ends.

    after, start: see `LiveRuns.watch`. Too many viewers are answered with 503.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        live: LiveRuns,
        run: str,
        after: int,
        start: int,
        headers: Mapping[str, str],
        cut_seconds: float = CUT_SECONDS,
    ) -> None:
        super().__init__(headers={**headers, "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._live, self._run, self._after, self._start = live, run, after, start
        self._cut_seconds = cut_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with self._live.watch(self._run, self._after, self._start) as viewer:
                await self._serve(viewer, receive, send)
        except TooManyViewersError:
            answer = PlainTextResponse("too many viewers", 503, {"Retry-After": "10"})
            await answer(scope, receive, send)

    async def _serve(self, viewer: Viewer, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as group:

            async def disconnected() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            async def cut() -> None:
                await viewer.cut.wait()
                await asyncio.sleep(self._cut_seconds)
                group.cancel_scope.cancel()

            group.start_soon(disconnected)
            group.start_soon(cut)
            await self._send_updates(viewer, send)
            group.cancel_scope.cancel()

    async def _send_updates(self, viewer: Viewer, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        # Tells the browser that the stream is open, and ends the buffering of some proxies.
        await _send_body(send, KEEPALIVE_COMMENT)
        while True:
            try:
                # Cheaper than asyncio.wait_for, which makes a task of each update and viewer.
                async with asyncio.timeout(PING_SECONDS):
                    update = await viewer.take()
            except TimeoutError:
                update = KEEPALIVE_COMMENT
            if update is None:
                await _send_body(send, b"", more=False)
                return
            await _send_body(send, update)


async def _send_body(send: Send, body: bytes, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})
