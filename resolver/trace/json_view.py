"""Renders the events as one JSON array, each as it is in the log."""

import json
import re
from collections.abc import Iterable

from pydantic_core import PydanticSerializationError

from resolver.events.log import Event, dump_line

# Characters that a terminal or GitHub's runner might interpret. They can only occur in a JSON
# string, where an escape sequence means the same, so nothing is lost.
_ACTIVE = re.compile(
    r"[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|(?<=##)\["
)


def render_json(events: Iterable[Event]) -> str:
    """Return a JSON array with one event per line."""
    lines = [_ACTIVE.sub(_escape, _line(event)) for event in events]
    return "[" + ",".join(f"\n{line}" for line in lines) + "\n]\n"


def _line(event: Event) -> str:
    try:
        return dump_line(event)
    except PydanticSerializationError:
        # A lone surrogate, or nesting deeper than pydantic can serialize: the json module accepts
        # both.
        return json.dumps(event.model_dump(exclude_none=True), default=str)


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
