"""OpenAI's Responses API, plain and streamed: a list of items instead of one message."""

from typing import Any

from tests.parts.providers.answer import Answer, Request, Usage, arguments_text, events


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


def stream(answer: Answer, request: Request) -> bytes:
    """Each item opened, its words or arguments as one delta, closed; then the whole response."""
    body = whole(answer, request)
    opening = {**body, "status": "in_progress", "output": [], "usage": None}
    out: list[dict[str, Any]] = [{"type": "response.created", "response": opening}]
    for index, item in enumerate(body["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        out.append(
            {
                "type": "response.output_item.added",
                "output_index": index,
                "item": {**item, "status": "in_progress"}
                | ({"arguments": ""} if item["type"] == "function_call" else {}),
            }
        )
        match item["type"]:
            case "message":
                text = item["content"][0]["text"]
                delta = {**at, "content_index": 0, "delta": text}
                out.append({"type": "response.output_text.delta", **delta})
            case "function_call":
                given = item["arguments"]
                out.append({"type": "response.function_call_arguments.delta", **at, "delta": given})
                out.append(
                    {"type": "response.function_call_arguments.done", **at, "arguments": given}
                )
            case _:
                text = item["summary"][0]["text"]
                delta = {**at, "summary_index": 0, "delta": text}
                out.append({"type": "response.reasoning_summary_text.delta", **delta})
        out.append({"type": "response.output_item.done", "output_index": index, "item": item})
    end = "response.incomplete" if body["status"] == "incomplete" else "response.completed"
    out.append({"type": end, "response": body})
    return events([{**event, "sequence_number": n} for n, event in enumerate(out)], named=True)
