"""OpenAI's Responses API, a list of items instead of one message."""

from typing import Any

from tests.parts.providers.answer import Answer, Request, Usage, arguments_text


def _items(answer: Answer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.reasoning:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        signed = {"encrypted_content": answer.signature} if answer.signature else {}
        items.append({"type": "reasoning", "id": "rs_1", "summary": summary, **signed})
    if answer.text is not None:
        words = {"type": "output_text", "text": answer.text, "annotations": []}
        items.append(
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": [words],
            }
        )
    for call in answer.calls:
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{call.id}",
                "call_id": call.id,
                "name": call.name,
                "arguments": arguments_text(call),
                "status": "completed",
            }
        )
    return items


def whole(answer: Answer, request: Request) -> dict[str, Any]:
    """A response object."""
    usage = answer.usage or Usage()
    cut = answer.finish_reason == "length"
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": request.body.get("model", "scripted"),
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "output": _items(answer),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": usage.prompt,
            "input_tokens_details": {"cached_tokens": usage.cached},
            "output_tokens": usage.completion,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.prompt + usage.completion,
        },
    }
