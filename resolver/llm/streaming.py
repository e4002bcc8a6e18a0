"""From a reply in pieces to a whole one, as if it had not been streamed."""

from collections.abc import Iterable
from typing import Any

from resolver.llm.library import litellm


def collected(pieces: Iterable[Any]) -> Any:
    """litellm's response object of a streamed reply; None when nothing was said or counted in it,
    as in a web page that was no stream.

    litellm counts tokens by itself where the endpoint gave no counts; those are taken out, since
    they are not what is paid for. Reasoning items it leaves out are put back. Raises what litellm
    raises while it reads.
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
