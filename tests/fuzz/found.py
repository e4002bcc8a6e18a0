"""Inputs that a parser failed for, by target. `make fuzz` prints what it finds in this form."""

FOUND: dict[str, tuple[bytes, ...]] = {
    "escaped_text": (b"GH-3#1",),
    "gemini_answer": (
        b'{"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": "I"}]}, '
        b'"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 1' + b"0" * 400 + b"}}",
    ),
    "mcp_listing": (b'{"tools": [{"name": "n", "inputSchema": {"type": [["object"]]}}]}',),
}
