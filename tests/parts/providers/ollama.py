"""Ollama's /api/chat: one JSON object; calls have no ids there."""

import json
from typing import Any

from tests.parts.providers.answer import Answer, Request, Usage, arguments_text


def whole(answer: Answer, request: Request) -> dict[str, Any]:
    """The answer with its counts. Nothing of it is ever said to be cached."""
    usage = answer.usage or Usage()
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or ""}
    if answer.reasoning:
        message["thinking"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            {"function": {"name": c.name, "arguments": json.loads(arguments_text(c))}}
            for c in answer.calls
        ]
    return {
        "model": request.body.get("model", "scripted"),
        "created_at": "2026-01-01T00:00:00Z",
        "message": message,
        "done": True,
        "done_reason": "length" if answer.finish_reason == "length" else "stop",
        "prompt_eval_count": usage.prompt,
        "eval_count": usage.completion,
    }
