"""What the scripted endpoint is asked and answers, before any provider's protocol words it."""

import dataclasses
import json
from typing import Any


@dataclasses.dataclass(frozen=True)
class Usage:
    """Token counts of an answer; `prompt` includes `cached`."""

    prompt: int = 100
    completion: int = 10
    cached: int = 0


@dataclasses.dataclass(frozen=True)
class ToolCall:
    """A call in an answer. `arguments` given as text is sent as it is, valid JSON or not."""

    name: str
    arguments: dict[str, Any] | str
    id: str = ""


@dataclasses.dataclass(frozen=True)
class Answer:
    """The endpoint's answer to one request. Created by the functions below."""

    text: str | None = None
    calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    reasoning: str = ""
    signature: str = ""  # that the provider puts under its reasoning
    usage: Usage | None = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None  # sent instead of a completion
    content_type: str = "application/json"
    delay: float = 0.0  # seconds before the first byte
    drip: float = 0.0  # seconds between two bytes of the body
    cut_after: int | None = None  # close the connection after so many bytes of the body


@dataclasses.dataclass(frozen=True)
class Request:
    """A request to the endpoint. Header names are in lower case."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


def arguments_text(call: ToolCall) -> str:
    """The arguments of a call as JSON text, or as the test wrote them."""
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def events(data: list[dict[str, Any]], *, named: bool = False) -> bytes:
    """Server-sent events; `named` gives each the name that its `type` says."""
    return b"".join(
        (f"event: {event['type']}\n".encode() if named else b"")
        + b"data: "
        + json.dumps(event).encode()
        + b"\n\n"
        for event in data
    )
