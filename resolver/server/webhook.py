"""`POST /webhook`: checks the signature, stores the delivery, answers 202; nothing else.

Source: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
"""

import hashlib
import hmac
import json
import logging
import re
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

logger = logging.getLogger("resolver.server")

MAX_BODY = 25 * 1024 * 1024
"""GitHub sends no payload above 25 MB."""

_DELIVERY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_EVENT = re.compile(r"[a-z_]{1,60}")

Accept = Callable[[str, str, dict[str, Any]], str]
"""(delivery id, event name, payload) -> what was done with it, for the answer."""


def signature_is_right(secret: str, body: bytes, signature: str) -> bool:
    """Whether `X-Hub-Signature-256` was made of `body` with `secret`; takes constant time."""
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))


def create_app(secret: str, accept: Accept) -> FastAPI:
    """The web application. `accept` must be durable when it returns, and idempotent."""
    app = FastAPI(title="Resolver", docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/webhook")
    async def webhook(request: Request) -> Response:
        body = await _read(request)
        if body is None:
            return _answer(413, "the body is larger than any delivery of GitHub's")
        if not signature_is_right(secret, body, request.headers.get("x-hub-signature-256", "")):
            return _answer(401, "the signature is missing or wrong")
        event = request.headers.get("x-github-event", "")
        delivery = request.headers.get("x-github-delivery", "")
        if not _EVENT.fullmatch(event) or not _DELIVERY.fullmatch(delivery):
            return _answer(400, "X-GitHub-Event or X-GitHub-Delivery is missing or odd")
        payload = parse_payload(body)
        if payload is None:
            return _answer(400, "the body is not a JSON object")
        return _answer(202, accept(delivery, event, payload))

    return app


def parse_payload(body: bytes) -> dict[str, Any] | None:
    """The payload, or None when the body is not a JSON object, or nested beyond all reason."""
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None


async def _read(request: Request) -> bytes | None:
    """The body, None when it is too large; never holds more than MAX_BODY."""
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MAX_BODY:
        return None
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BODY:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _answer(status: int, message: str) -> JSONResponse:
    return JSONResponse({"message": message}, status_code=status)
