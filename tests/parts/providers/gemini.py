"""Gemini's generateContent; calls have no ids there."""

import json
from typing import Any

from tests.parts.providers.answer import Answer, Request, Usage, arguments_text

_REASONS = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}


def _parts(answer: Answer) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if answer.reasoning:
        parts.append({"text": answer.reasoning, "thought": True})
    if answer.text:
        parts.append({"text": answer.text})
    for index, call in enumerate(answer.calls):
        function = {"name": call.name, "args": json.loads(arguments_text(call))}
        signed = {"thoughtSignature": answer.signature} if answer.signature and not index else {}
        parts.append({"functionCall": function, **signed})
    return parts


def whole(answer: Answer, request: Request) -> dict[str, Any]:
    """One candidate with the usage."""
    usage = answer.usage or Usage()
    reason = _REASONS.get(answer.finish_reason, "STOP")
    content = {"role": "model", "parts": _parts(answer)}
    return {
        "candidates": [{"index": 0, "content": content, "finishReason": reason}],
        "usageMetadata": {
            "promptTokenCount": usage.prompt,
            "candidatesTokenCount": usage.completion,
            "totalTokenCount": usage.prompt + usage.completion,
            "cachedContentTokenCount": usage.cached,
        },
        "modelVersion": request.path.rpartition("/")[2].partition(":")[0],
        "responseId": "gen_1",
    }
