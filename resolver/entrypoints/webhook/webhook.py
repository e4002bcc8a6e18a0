"""`POST /webhook`: checks the signature, passes the delivery on to be stored, and answers.

Source: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
"""

import asyncio
import hashlib
import hmac
import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from tempfile import SpooledTemporaryFile
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect

from resolver.entrypoints.webhook.health import Check, add_health
from resolver.entrypoints.webhook.metrics import DELIVERIES
from resolver.errors import ResolverError
from resolver.github.events.payloads import parse_payload

logger = logging.getLogger("resolver.entrypoints.webhook")

MAX_BODY = 25 * 1024 * 1024
"""Maximum size in bytes of a payload; GitHub sends none above 25 MB."""

ANSWER_SECONDS = 9.0
"""Timeout for reading and for storing a delivery. GitHub waits 10 seconds for an answer."""

MAX_PARALLEL_DELIVERIES = 10
"""Maximum number of deliveries that are parsed and stored at the same time; others wait."""

_IN_MEMORY = 128 * 1024
"""Bytes of an unverified body that are kept in memory; more goes to a temporary file."""

_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
_DELIVERY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_EVENT = re.compile(r"[a-z][a-z0-9_]{0,59}")

_HANG_UP = {"Connection": "close"}
"""Header that ends the connection. Without it the server would read and discard the rest of the
body."""

WEBHOOK_PATH = "/webhook"

HandleDelivery = Callable[[str, str, dict[str, Any]], str]
"""Takes delivery id, event name and payload, and returns what was done, for the answer."""


def create_webhook_app(
    secret: str,
    handle_delivery: HandleDelivery,
    check: Check = lambda: None,
    seconds: float = ANSWER_SECONDS,
) -> FastAPI:
    """Return the web application.

    handle_delivery: stores a delivery; it must be durable when it returns, and idempotent. It is
        called in a thread and raises ResolverError if the delivery can't be stored.
    check: see `add_health`.
    seconds: timeout for reading a body, and again for storing a delivery.
    """

    # Not anyio's threads: the event loop has to turn several times for each of their tasks.
    threads = ThreadPoolExecutor(MAX_PARALLEL_DELIVERIES, "delivery")
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    add_health(app, check)

    @app.post(WEBHOOK_PATH)
    async def webhook(request: Request) -> JSONResponse:
        """Store a delivery of GitHub and answer 202. 401: the signature (`X-Hub-Signature-256`) is
        missing or wrong. 400: no delivery. 413: too large. 503: not stored, send it again."""
        try:
            done = await _receive_delivery(request, secret, handle_delivery, seconds, threads)
        except HTTPException as error:
            DELIVERIES.labels(_RESULTS.get(error.status_code, "malformed")).inc()
            return JSONResponse({"detail": error.detail}, error.status_code, error.headers)
        DELIVERIES.labels(done.partition(":")[0]).inc()
        return JSONResponse({"message": done}, status_code=202)

    return app


_RESULTS = {401: "unsigned", 503: "failed"}
"""Result of a delivery by the status of its answer; `malformed` for every other error."""


async def _receive_delivery(
    request: Request,
    secret: str,
    handle_delivery: HandleDelivery,
    seconds: float,
    threads: ThreadPoolExecutor,
) -> str:
    """Return what was done with a delivery. Raises HTTPException if it is not accepted."""
    body = await _signed_body(request, secret, seconds)
    event = request.headers.get("x-github-event", "")
    delivery = request.headers.get("x-github-delivery", "")
    if not is_identified(delivery, event):
        raise HTTPException(400, "X-GitHub-Event or X-GitHub-Delivery is missing or malformed")

    def take() -> str | None:
        payload = parse_payload(body)
        return None if payload is None else handle_delivery(delivery, event, payload)

    try:
        async with asyncio.timeout(seconds):
            done = await asyncio.get_running_loop().run_in_executor(threads, take)
    except ResolverError as error:
        logger.error("delivery %s could not be stored: %s", delivery, error.what)
        raise HTTPException(503, "the delivery could not be stored; send it again") from None
    except TimeoutError:
        logger.error("delivery %s could not be stored in time", delivery)
        raise HTTPException(503, "the delivery could not be stored in time") from None
    if done is None:
        raise HTTPException(400, "the body is not a JSON object: is the content type JSON?")
    return done


def is_identified(delivery: str, event: str) -> bool:
    """Return True if a delivery's id and its event name have the form of GitHub's."""
    return bool(_EVENT.fullmatch(event) and _DELIVERY.fullmatch(delivery))


async def _signed_body(request: Request, secret: str, seconds: float) -> bytes:
    """Return the body after its signature was verified. Raises HTTPException.

    Until then the body is hashed as it arrives and never held in memory completely, because anybody
    can send one.
    """
    signature = request.headers.get("x-hub-signature-256", "")
    if not _SIGNATURE.fullmatch(signature):
        raise HTTPException(401, "X-Hub-Signature-256 is missing or malformed")
    if int(request.headers.get("content-length", 0)) > MAX_BODY:  # digits, as h11 has checked
        raise _too_large()
    digest = hmac.new(secret.encode(), digestmod=hashlib.sha256)
    with SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
        size = 0
        try:
            async with asyncio.timeout(seconds):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > MAX_BODY:
                        raise _too_large()
                    digest.update(chunk)
                    spool.write(chunk)
        except TimeoutError:
            raise HTTPException(408, "the body came too slowly", _HANG_UP) from None
        except OSError as error:
            logger.error("a request body could not be buffered: %s", error)
            raise HTTPException(
                503, "the server has no space left for the request body", _HANG_UP
            ) from None
        except ClientDisconnect:
            raise HTTPException(400, "the request body is incomplete") from None
        # Compared in constant time, so that the answer's delay does not show how much of a guessed
        # signature is right.
        if not hmac.compare_digest(f"sha256={digest.hexdigest()}", signature):
            raise HTTPException(401, "the signature is wrong")
        spool.seek(0)
        return spool.read()


def _too_large() -> HTTPException:
    return HTTPException(413, "the body is larger than any delivery of GitHub's", _HANG_UP)
