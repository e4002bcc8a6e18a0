"""OpenAI's chat completions, plain and streamed."""

import json
from typing import Any

from tests.parts.providers.answer import Answer, Request, Usage, arguments_text


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def _message(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_text(call)},
            }
            for call in answer.calls
        ]
    return message


def whole(answer: Answer, request: Request) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": _message(answer),
        "finish_reason": answer.finish_reason,
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request.body.get("model", "scripted"),
        "choices": [choice],
        "usage": _usage(answer.usage or Usage()),
    }


def stream(answer: Answer, request: Request) -> bytes:
    """Server-sent events: the text word by word, then the calls, the reason, the usage."""
    head = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": request.body.get("model", "scripted"),
    }
    message = _message(answer)
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": part}
        for part in (answer.text or "").splitlines(keepends=True)
    ]
    deltas += [
        {"role": "assistant", "tool_calls": [{**call, "index": index}]}
        for index, call in enumerate(message.get("tool_calls", []))
    ]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    end = {"index": 0, "delta": {}, "finish_reason": answer.finish_reason}
    chunks.append({"choices": [end]})
    chunks.append({"choices": [], "usage": _usage(answer.usage or Usage())})
    lines = [b"data: " + json.dumps({**head, **chunk}).encode() + b"\n\n" for chunk in chunks]
    return b"".join(lines) + b"data: [DONE]\n\n"
