"""Assembly of a streamed reply into a complete response."""

from collections.abc import Iterable
from typing import Any

from resolver.llm.library import litellm


def collected(pieces: Iterable[Any]) -> Any:
    """Return litellm's response object for the chunks of a streamed reply.

    Returns None if the stream contains neither content nor token counts, like a web page that is
    not a stream at all. Raises what litellm raises while reading.

    If the endpoint reports no token counts, litellm adds its own estimates. These are removed,
    because they are not what is billed. Reasoning items, which litellm drops, are restored.
    """
    taken = list(pieces)
    response = litellm().stream_chunk_builder(taken)
    if response is None:
        return None
    if not any(getattr(piece, "usage", None) for piece in taken):
        response.usage = None
        if not any(_says(choice.message) for choice in response.choices):
            return None
    items = [
        item
        for piece in taken
        for choice in piece.choices
        for item in getattr(choice.delta, "reasoning_items", None) or ()
    ]
    if items and response.choices:
        response.choices[0].message.reasoning_items = items
    return response


def _says(message: Any) -> bool:
    return bool(message.content or message.tool_calls)
