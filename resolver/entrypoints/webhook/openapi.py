"""The parts of the server's OpenAPI document that FastAPI can't derive from the code.

The server publishes the document at /openapi.json, and `make docs` writes it to
docs/reference/openapi.json.

Source: https://spec.openapis.org/oas/v3.1.0
"""

from collections.abc import Collection
from typing import Any, Literal

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse

from resolver.entrypoints.http_server import HEAD_SECONDS
from resolver.models.base import FrozenModel

INTERFACE_VERSION = "1"
"""Version of the HTTP interface. The document does not name the release: anybody can read it."""

Responses = dict[int | str, dict[str, Any]]
"""Answers of an operation by status, as FastAPI takes them."""


class AcceptedDelivery(FrozenModel):
    """The answer to a delivery. message: `stored`, `pong`, or `ignored:` and the reason."""

    message: str


class ErrorAnswer(FrozenModel):
    """The answer to a request that is refused. detail: what was wrong."""

    detail: str


class HealthAnswer(FrozenModel):
    """The answer of a process that serves requests."""

    status: Literal["ok"]


class ReadyAnswer(FrozenModel):
    """The answer of a server that can take deliveries."""

    status: Literal["ok"]
    disk_free_bytes: int
    queue_length: int
    queue_age_seconds: float


class UnreadyAnswer(FrozenModel):
    """The answer of a server that can't take deliveries now. status: what it waits for."""

    status: str


SIGNATURE = "signature"
PAGE_KEY = "page_key"

_SECURITY_SCHEMES = {
    SIGNATURE: {
        "type": "apiKey",
        "in": "header",
        "name": "X-Hub-Signature-256",
        "description": "`sha256=` and the hexadecimal HMAC-SHA256 of the body with the webhook's "
        "secret, see https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries",
    },
    PAGE_KEY: {
        "type": "apiKey",
        "in": "query",
        "name": "key",
        "description": "The key of one page. It is part of the links that Resolver writes.",
    },
}

_DESCRIPTION = f"""\
Receives webhook deliveries from GitHub, answers probes, and shows pages of runs.

A server that has too many open connections answers every request with 503 and plain text. A
connection that sends no complete request head within {HEAD_SECONDS:.0f} seconds is closed.
"""


def error_responses(**meanings: str) -> Responses:
    """Return the description of refusals. meanings: by status, such as `s404`."""
    return {
        int(status.removeprefix("s")): {"model": ErrorAnswer, "description": meaning}
        for status, meaning in meanings.items()
    }


def page_response(headers: Collection[str]) -> Responses:
    """Return the description of an HTML page. headers: those that it is always sent with."""
    return {
        200: {
            "description": "The page.",
            "content": {"text/html": {"schema": {"type": "string"}}},
            "headers": {name: {"required": True, "schema": {"type": "string"}} for name in headers},
        }
    }


def requires(scheme: str) -> dict[str, Any]:
    """Return the declaration of an operation that needs the credentials of a security scheme."""
    return {"security": [{scheme: []}]}


def delivery_operation(event: str, delivery: str) -> dict[str, Any]:
    """Return the declaration of the webhook's operation, which reads its request itself.

    event, delivery: patterns of the values of the headers.
    """
    headers = {
        "X-GitHub-Event": (event, "Name of the event."),
        "X-GitHub-Delivery": (delivery, "Id of the delivery; a redelivery has the same."),
    }
    return requires(SIGNATURE) | {
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": True,
                "description": description,
                "schema": {"type": "string", "pattern": f"^{pattern}$"},
            }
            for name, (pattern, description) in headers.items()
        ],
        "requestBody": {
            "required": True,
            "description": "The payload of the event, up to 25 MB.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
    }


def publish_openapi_document(app: FastAPI) -> None:
    """Add `GET /openapi.json` to `app`. The document includes routes that are added later."""

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> JSONResponse:
        """This interface as an OpenAPI document."""
        app.openapi_schema = app.openapi_schema or create_openapi_document(app)
        return JSONResponse(app.openapi_schema)


def create_openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of the routes of `app`."""
    document = get_openapi(
        title="Resolver",
        version=INTERFACE_VERSION,
        description=_DESCRIPTION,
        routes=app.routes,
    )
    for path in document["paths"].values():
        for operation in path.values():
            _remove_validation_error(operation)
    schemas = document["components"]["schemas"]
    if "HTTPValidationError" not in str(document["paths"]):
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
    document["components"]["securitySchemes"] = _SECURITY_SCHEMES
    return document


_ANY_TEXT = {"type", "title", "default", "description"}
"""Keywords of the schema of a parameter that takes any text."""


def _remove_validation_error(operation: dict[str, Any]) -> None:
    """Remove the answer 422, which FastAPI adds to every operation with parameters, from those
    whose parameters are any text: these never fail validation."""
    parameters = operation.get("parameters", [])
    if all(set(parameter["schema"]) <= _ANY_TEXT for parameter in parameters) and all(
        parameter["schema"]["type"] == "string" for parameter in parameters
    ):
        operation["responses"].pop("422", None)
