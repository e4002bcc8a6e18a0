"""Bedrock's converse, and converse-stream in AWS's binary frames.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
"""

import binascii
import json
import struct
from typing import Any

from tests.parts.providers.answer import Answer, Request, Usage, arguments_text

_REASONS = {"tool_calls": "tool_use", "length": "max_tokens", "content_filter": "content_filtered"}


def _blocks(answer: Answer) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answer.reasoning:
        reasoning = {"text": answer.reasoning, "signature": answer.signature}
        blocks.append({"reasoningContent": {"reasoningText": reasoning}})
    if answer.text:
        blocks.append({"text": answer.text})
    for call in answer.calls:
        given = json.loads(arguments_text(call))
        blocks.append({"toolUse": {"toolUseId": call.id, "name": call.name, "input": given}})
    return blocks


def _usage(answer: Answer) -> dict[str, int]:
    usage = answer.usage or Usage()
    return {
        "inputTokens": usage.prompt - usage.cached,
        "outputTokens": usage.completion,
        "totalTokens": usage.prompt + usage.completion,
        "cacheReadInputTokens": usage.cached,
        "cacheWriteInputTokens": 0,
    }


def whole(answer: Answer, request: Request) -> dict[str, Any]:
    """One message with the usage."""
    return {
        "output": {"message": {"role": "assistant", "content": _blocks(answer)}},
        "stopReason": _REASONS.get(answer.finish_reason, "end_turn"),
        "usage": _usage(answer),
        "metrics": {"latencyMs": 1},
    }


def stream(answer: Answer, request: Request) -> bytes:
    """The same in frames: each block filled in two deltas, closed."""
    out = [_frame("messageStart", {"role": "assistant"})]
    for index, block in enumerate(_blocks(answer)):
        start, deltas = _pieces(block)
        at = {"contentBlockIndex": index}
        if start:
            out.append(_frame("contentBlockStart", {"start": start, **at}))
        out += [_frame("contentBlockDelta", {"delta": delta, **at}) for delta in deltas]
        out.append(_frame("contentBlockStop", at))
    reason = _REASONS.get(answer.finish_reason, "end_turn")
    out.append(_frame("messageStop", {"stopReason": reason}))
    out.append(_frame("metadata", {"usage": _usage(answer), "metrics": {"latencyMs": 1}}))
    return b"".join(out)


def _pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if "toolUse" in block:
        use = block["toolUse"]
        start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
        text = json.dumps(use["input"])
        return start, [{"toolUse": {"input": part}} for part in _halves(text)]
    if "reasoningContent" in block:
        reasoning = block["reasoningContent"]["reasoningText"]
        parts = [{"reasoningContent": {"text": part}} for part in _halves(reasoning["text"])]
        return {}, [*parts, {"reasoningContent": {"signature": reasoning["signature"]}}]
    return {}, [{"text": part} for part in _halves(block["text"])]


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _frame(kind: str, payload: dict[str, Any]) -> bytes:
    """Lengths, their checksum, headers of strings, the payload, the checksum of all."""
    named = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        bytes([len(name)])
        + name.encode()
        + b"\x07"
        + struct.pack(">H", len(value))
        + value.encode()
        for name, value in named.items()
    )
    body = json.dumps(payload).encode()
    lengths = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    start = lengths + struct.pack(">I", binascii.crc32(lengths))
    return (frame := start + headers + body) + struct.pack(">I", binascii.crc32(frame))
