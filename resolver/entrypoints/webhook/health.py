"""`GET /healthz` and `GET /readyz`: probes of the server for a supervisor or a load balancer."""

import asyncio
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from resolver.entrypoints.webhook.background_threads import BackgroundThreads
from resolver.entrypoints.webhook.request_queue import RequestQueue
from resolver.errors import ResolverError

logger = logging.getLogger("resolver.entrypoints.webhook")

READY_SECONDS = 5.0
"""Timeout of the database and the disk for a probe, in seconds."""

MIN_FREE_BYTES = 200_000_000
"""Free bytes in the data folder below which the server takes no deliveries: a run needs room for
its log and its clone, and a database on the same disk for its own log."""

Check = Callable[[], object]
"""Raises ResolverError if the server can't take deliveries now."""


def check_readiness(
    queue: RequestQueue,
    folder: Path,
    threads: BackgroundThreads,
    min_free_bytes: int = MIN_FREE_BYTES,
) -> None:
    """Check what a delivery needs: the database, and room in the data folder; and that all tasks of
    this process work. Raises ResolverError.

    A long queue does not make the server unready, because it still has to accept further requests.
    """
    if threads.down:
        raise ResolverError(f"these tasks have failed: {', '.join(threads.down)}")
    queue.check()
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise ResolverError(f"the data folder can't be read: {error.strerror}") from error
    if free < min_free_bytes:
        raise ResolverError(
            f"the disk of the data folder has {free:,} bytes left", "free some disk space"
        )


def add_health(app: FastAPI, check: Check) -> None:
    """Add `GET /healthz` and `GET /readyz` to `app`.

    check: only one call is active at a time.
    """
    checking = CapacityLimiter(1)

    @app.get("/healthz")
    async def healthz() -> JSONResponse:
        """200 while the process answers. Restart it if it does not."""
        # Only this process is checked: restarting it would not help if the database is down.
        return JSONResponse({"status": "ok"})

    @app.get("/readyz")
    async def readyz() -> JSONResponse:
        """200 while deliveries can be stored; else 503, with the reason in the server's log."""
        try:
            async with asyncio.timeout(READY_SECONDS):
                await run_sync(check, abandon_on_cancel=True, limiter=checking)
        except TimeoutError:
            return JSONResponse({"status": "the database does not answer"}, status_code=503)
        except ResolverError as error:
            logger.error("not ready: %s", error.what)
            # The reason is in the operator's log: it names folders and addresses.
            return JSONResponse({"status": "deliveries can't be stored"}, status_code=503)
        return JSONResponse({"status": "ok"})
