"""Renders a trace as one self-contained HTML page: no script, no requests, all text escaped.

The layout is in prompts/trace/page.html.j2 and page.css.j2. This module truncates and folds texts,
and splits diffs into coloured lines. Untrusted markdown becomes paragraphs, headings, lists, quotes
and code; links, images and HTML tags are not rendered. `render_json` gives programs the events as
they are in the log.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup
from pydantic_core import PydanticSerializationError

from resolver.config.templates import render
from resolver.events.log import Event, dump_line
from resolver.trace.plain import duration, money, one_line, plural, truncate_text
from resolver.trace.steps import build_view
from resolver.trace.view import Entry, TraceBlock, TraceNote, TraceStep, detail_label

_MARKDOWN_RULES = [
    "emphasis", "backticks", "escape", "newline", "list", "fence", "code", "heading", "blockquote",
    "hr",
]  # fmt: skip


@cache
def _parser() -> MarkdownIt:
    # The preset "zero" renders paragraphs only; every rule that is not enabled leaves plain text.
    return MarkdownIt("zero", {"html": False, "breaks": True}).enable(_MARKDOWN_RULES)


def markdown_to_html(text: str) -> Markup:
    """Return `text` as HTML.

    It contains only tags of the rules above, none of which has a URL or an event handler.
    """
    rendered: str = _parser().render(text)
    return Markup(rendered)  # noqa: S704 - HTML is off, so tags in the text are escaped


MAX_UNFOLDED_LINES = 14
"""Outputs with more lines than this are folded."""

MAX_OPEN_LINES = 60
"""Outputs of failed steps are unfolded from the start if they have at most this many lines."""

MAX_TEXT_LENGTH = 200_000
"""Maximum number of characters shown of one text; the event log has the rest.

It keeps browsers fast.
"""

_MAX_COLOURED_LINES = 3_000
"""Maximum number of lines of a diff that is coloured; a longer one is shown plain."""


def content_policy() -> str:
    """Return the Content-Security-Policy of the page: its own style and inline images only.

    See https://developer.mozilla.org/en-US/docs/Web/HTTP/Reference/Headers/Content-Security-Policy
    """
    style = render("trace/page.css.j2")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def render_html(events: Iterable[Event], refresh: int = 0, notices: Sequence[str] = ()) -> str:
    """Return trace.html.

    The page runs no script and makes no request, whatever the log contains.

    refresh: seconds after which the browser reloads the page; 0 for never.
    notices: sentences about the page itself for its reader, in plain text.
    """
    view = build_view(events)
    tokens = view.header.tokens
    return render(
        "trace/page.html.j2",
        policy=content_policy(),
        refresh=refresh,
        notices=notices,
        header=view.header,
        asked=markdown_to_html(truncate_text(view.header.request, MAX_TEXT_LENGTH)),
        said=markdown_to_html(truncate_text(view.header.closing, MAX_TEXT_LENGTH)),
        tokens_in=f"{tokens.input:,}",
        tokens_cached=f"{tokens.cached:,}",
        tokens_out=f"{tokens.output:,}",
        time=duration(view.header.seconds),
        entries=[_entry(entry, "step") for entry in view.entries],
    )


def _entry(entry: Entry, parent_anchor: str) -> dict[str, Any]:
    """Return the variables of the template for one entry.

    parent_anchor: anchor of the parent, with which this entry's anchor begins.
    """
    if isinstance(entry, TraceNote):
        blocks = (
            [_block_values(TraceBlock(entry.detail), detail_label(entry), is_folded=True)]
            if entry.detail
            else []
        )
        label = entry.sort.capitalize()
        return {**asdict(entry), "number": 0, "label": label, "blocks": blocks}
    action_blocks = [_block_values(entry.action, "Action", is_action=True)] if entry.action else []
    return {
        "number": entry.number,
        "anchor": f"{parent_anchor}-{entry.number}",
        "nested": [
            _entry(nested_entry, f"{parent_anchor}-{entry.number}") for nested_entry in entry.nested
        ],
        "nested_label": f"What it did ({plural(entry.nested_steps, 'step')})",
        "verb": entry.verb,
        "subject": entry.subject,
        "badge": entry.badge,
        "mood": entry.mood,
        "meta": _meta(entry),
        "thought": truncate_text(entry.thought, MAX_TEXT_LENGTH),
        "words": truncate_text(entry.words, MAX_TEXT_LENGTH),
        "blocks": action_blocks
        + [
            _block_values(block, "Output", has_failed=entry.mood == "bad")
            for block in entry.outputs
        ],
        "images": entry.images,
    }


def _meta(step: TraceStep) -> str:
    facts = [duration(step.seconds)] if step.seconds is not None else []
    facts += [money(step.cost)] if step.cost is not None else []
    return " · ".join(facts)


def _block_values(
    block: TraceBlock,
    label: str,
    is_folded: bool = False,
    is_action: bool = False,
    has_failed: bool = False,
) -> dict[str, Any]:
    """Return the variables of the template for a block of text."""
    text = truncate_text(block.text, MAX_TEXT_LENGTH)
    lines = block.text.count("\n") + 1
    is_diff = block.language == "diff" and lines <= _MAX_COLOURED_LINES
    is_long = lines > MAX_UNFOLDED_LINES or len(text) > 8_000
    last_line = text[-2_000:].rstrip().rpartition("\n")[2]
    return {
        "label": f"{label}, {plural(lines, 'line')}",
        "last": "" if is_action or is_folded else one_line(last_line),
        "text": text,
        "diff": [_diff_line(line) for line in text.split("\n")] if is_diff else [],
        "folded": is_folded or (is_long and not is_diff),
        # Readers mostly come for the reason of a failure.
        "open": has_failed and lines <= MAX_OPEN_LINES,
        "asked": is_action,
    }


_LINE_SORTS = (
    ("+++", "file"),
    ("---", "file"),
    ("@@", "hunk"),
    ("diff ", "file"),
    ("+", "add"),
    ("-", "del"),
)


def _diff_line(text: str) -> dict[str, str]:
    sort = next((sort for start, sort in _LINE_SORTS if text.startswith(start)), "")
    return {"text": text, "sort": sort}


# Characters that a terminal or GitHub's runner might interpret. They can only occur in a JSON
# string, where an escape sequence means the same, so nothing is lost.
_CONTROL_CHARACTERS = re.compile(
    r"[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|(?<=##)\["
)


def render_json(events: Iterable[Event]) -> str:
    """Return a JSON array with one event per line."""
    lines = [_CONTROL_CHARACTERS.sub(_escape, _line(event)) for event in events]
    return "[" + ",".join(f"\n{line}" for line in lines) + "\n]\n"


def _line(event: Event) -> str:
    try:
        return dump_line(event)
    except PydanticSerializationError:
        # A lone surrogate, or nesting deeper than pydantic can serialize: the json module accepts
        # both.
        return json.dumps(event.model_dump(exclude_none=True), default=str)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
