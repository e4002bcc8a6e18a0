"""Anthropic's messages, plain and streamed, with thinking blocks and their signatures."""

import json
from typing import Any

from tests.parts.providers.answer import Answer, Request, Usage, arguments_text, events

_REASONS = {"tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}


def _blocks(answer: Answer) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answer.reasoning:
        thinking = {"thinking": answer.reasoning, "signature": answer.signature}
        blocks.append({"type": "thinking", **thinking})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    for call in answer.calls:
        given = json.loads(arguments_text(call))
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": given})
    return blocks


def _usage(answer: Answer) -> dict[str, Any]:
    usage = answer.usage or Usage()
    return {
        "input_tokens": usage.prompt - usage.cached,
        "output_tokens": usage.completion,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": 0,
    }


def whole(answer: Answer, request: Request) -> dict[str, Any]:
    """A message."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", "scripted"),
        "content": _blocks(answer),
        "stop_reason": _REASONS.get(answer.finish_reason, "end_turn"),
        "usage": _usage(answer),
    }


def stream(answer: Answer, request: Request) -> bytes:
    """The same in pieces: each block opened, filled in two deltas, closed."""
    message = whole(answer, request)
    opening = {**message, "content": [], "stop_reason": None}
    out: list[dict[str, Any]] = [{"type": "message_start", "message": opening}]
    for index, block in enumerate(message["content"]):
        empty, deltas = _pieces(block)
        out.append({"type": "content_block_start", "index": index, "content_block": empty})
        out += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        out.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    out.append({"type": "message_delta", "delta": end, "usage": message["usage"]})
    return events([*out, {"type": "message_stop"}], named=True)


def _pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "thinking":
            empty = {**block, "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": part} for part in _halves(block["thinking"])
            ]
            return empty, [*deltas, {"type": "signature_delta", "signature": block["signature"]}]
        case "tool_use":
            text = json.dumps(block["input"])
            parts = [{"type": "input_json_delta", "partial_json": p} for p in _halves(text)]
            return {**block, "input": {}}, parts
        case _:
            parts = [{"type": "text_delta", "text": part} for part in _halves(block["text"])]
            return {**block, "text": ""}, parts


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]
