"""Turns the result of an MCP tool into an observation: limited in size, cleaned, for any input."""

import json
import re
from collections.abc import Callable
from typing import Any, Final

from resolver.config.templates import render
from resolver.events.observations import McpResult
from resolver.mcp.tool_listing import Clean, truncate_with_ellipsis
from resolver.models.base import JsonObject

MAX_TEXT_CHARACTERS: Final = 30_000
"""Limit of the text in the observation, in characters. The whole text is kept in a sandbox file."""

MAX_FILE_CHARACTERS: Final = 5_000_000
"""Limit of that file, in characters."""

MAX_STRUCTURED_CHARACTERS: Final = 20_000
"""Limit of a result's structured data as JSON, in characters."""

MAX_IMAGES: Final = 4
MAX_IMAGE_CHARACTERS: Final = 3_000_000
"""Limit of an image's base64 text, in characters."""

_IMAGE_TYPES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")

Keep = Callable[[str], str | None]
"""Stores a long text in the sandbox. Returns its path there, or None if that fails."""


def observation_of_result(result: JsonObject, clean: Clean, keep: Keep) -> McpResult:
    """Return the observation for a tool's result.

    clean: removes invisible characters and secrets from a text.
    keep: stores a text that is too long.
    """
    images: list[str] = []
    content = result.get("content")
    texts = [_show(item, images, clean) for item in (content if isinstance(content, list) else ())]
    structured = result.get("structuredContent")
    structured = structured if isinstance(structured, dict) else None
    if structured is not None and not any(text.strip() for text in texts):
        texts.append(clean(_json(structured, indent=1)))
    if not isinstance(content, list) and structured is None:
        shown = truncate_with_ellipsis(clean(_json(result)), 1000)
        texts.append(f"[the response is not a tool result: {shown}]")
    text = "\n".join(texts)
    shortened, path = _shorten_text(text, keep)
    fits = structured is not None and len(_json(structured)) <= MAX_STRUCTURED_CHARACTERS
    return McpResult(
        content=shortened,
        error=result.get("isError") is True,
        structured=structured if fits else None,
        images=tuple(images),
        output_file=path,
    )


def _show(item: Any, images: list[str], clean: Clean) -> str:
    """Return the item's text, or what stands for it; an image is added to `images`."""
    item = item if isinstance(item, dict) else {"type": type(item).__name__}
    match item:
        case {"type": "text", "text": str(text)}:
            return clean(text)
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            return _image(data, kind.lower(), images)
        case {"type": "resource", "resource": {"text": str(text), **rest}}:
            return f"[resource {_short(rest.get('uri'), clean)}]\n{clean(text)}"
        case {"type": "resource", "resource": {"blob": str(data), **rest}}:
            uri = _short(rest.get("uri"), clean)
            return f"[resource {uri}: {len(data) * 3 // 4:,} bytes, not shown]"
        case {"type": "resource_link"}:
            name, uri = _short(item.get("name"), clean), _short(item.get("uri"), clean)
            return f"[link to a resource: {name} {uri}]"
        case _:
            return f"[{_short(item.get('type'), clean)}: can't be shown]"


def _image(data: str, kind: str, images: list[str]) -> str:
    """Add the image and return its placeholder, or return the reason why it isn't shown."""
    if kind not in _IMAGE_TYPES:
        return "[an image that is not shown: only PNG, JPEG, GIF and WebP can be]"
    if len(images) == MAX_IMAGES:
        return f"[an image that is not shown: a result may have {MAX_IMAGES} at most]"
    if len(data) > MAX_IMAGE_CHARACTERS or not _BASE64.fullmatch(data):
        return "[an image that is not shown: it is too large, or not an image]"
    images.append(f"data:{kind};base64,{''.join(data.split())}")
    return "[an image]"


def _shorten_text(text: str, keep: Keep) -> tuple[str, str | None]:
    if len(text) <= MAX_TEXT_CHARACTERS:
        return text, None
    stored = text[:MAX_FILE_CHARACTERS]
    path = keep(stored)
    half = MAX_TEXT_CHARACTERS // 2
    note = render(
        "agent/mcp_cut.md.j2",
        missing=len(text) - 2 * half,
        path=path,
        cut=len(text) - len(stored),
    ).strip()
    return f"{text[:half]}\n{note}\n{text[-half:]}", path


def _short(value: object, clean: Clean) -> str:
    return (
        truncate_with_ellipsis(" ".join(clean(value).split()), 200)
        if isinstance(value, str)
        else "?"
    )


def _json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
