"""Bedrock's converse.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
"""

import json
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
