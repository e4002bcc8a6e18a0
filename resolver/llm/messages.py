"""Changes of chat messages that a call needs: a hint at the end, and images left out."""

from collections.abc import Collection
from typing import Any

from resolver.config.templates import render
from resolver.llm.base import ChatMessage


def with_hint(messages: list[ChatMessage], hint: str) -> list[ChatMessage]:
    """Return the messages with a hint to the model at their end.

    It is added to the last message if that is the user's: some endpoints accept only roles that
    alternate.
    """
    if not messages or messages[-1]["role"] != "user":
        return [*messages, {"role": "user", "content": hint}]
    last = messages[-1]
    content = last["content"]
    if isinstance(content, str):
        return [*messages[:-1], {**last, "content": f"{content}\n\n{hint}"}]
    return [*messages[:-1], {**last, "content": [*content, {"type": "text", "text": hint}]}]


def without_images(messages: list[ChatMessage], rejected: Collection[str]) -> list[ChatMessage]:
    """Return the messages with a sentence in place of each image whose URL is rejected."""
    if not rejected:
        return messages
    note = {"type": "text", "text": render("llm/image_rejected.j2").strip()}
    return [
        {**message, "content": [note if url_of(p) in rejected else p for p in message["content"]]}
        if isinstance(message.get("content"), list)
        else message
        for message in messages
    ]


def newest_images(messages: list[ChatMessage]) -> frozenset[str]:
    """Return the URLs of the images in the last message that has any."""
    for message in reversed(messages):
        parts = message.get("content")
        urls = frozenset(filter(None, map(url_of, parts if isinstance(parts, list) else ())))
        if urls:
            return urls
    return frozenset()


def url_of(part: Any) -> str | None:
    """Return the URL of a content part that is an image, None for any other part."""
    return part["image_url"]["url"] if part.get("type") == "image_url" else None
