"""Inputs that a parser failed for, by target. `make fuzz` prints what it finds in this form."""

FOUND: dict[str, tuple[bytes, ...]] = {
    "escaped_text": (b"GH-3#1",),
    "gemini_answer": (
        b'{"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": "I"}]}, '
        b'"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 1' + b"0" * 400 + b"}}",
    ),
    "log_line": (b'{"id":0,"kind":"stage_completed","stage":"sandbox","seconds":NaN}',),
    "mcp_listing": (b'{"tools": [{"name": "n", "inputSchema": {"type": [["object"]]}}]}',),
    "mention": (
        b"`@agent` x&#xE000;99&#xE001;",
        b"`@agent` x&#xE000;" + b"9" * 5_000 + b"&#xE001;",
    ),
    "project_file": (b"pyproject.toml\x00[project]\nname = " + b"9" * 5_000,),
    "unified_diff": (b"@@ -" + b"9" * 5_000 + b" +1 @@\n+x",),
}
