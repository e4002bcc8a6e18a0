"""Renders a trace as one self-contained HTML page: no script, no requests, all text escaped.

The layout is in prompts/trace/page.html.j2 and page.css.j2. This module truncates and folds texts,
and splits diffs into coloured lines.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from resolver.config.templates import render
from resolver.events.log import Event
from resolver.trace.markdown_html import markdown_to_html
from resolver.trace.plain import duration, money, one_line, plural, truncate_text
from resolver.trace.steps import build_view
from resolver.trace.view import Entry, TraceBlock, TraceNote, TraceStep

FOLD = 14
"""Outputs with more lines than this are folded."""

OPEN = 60
"""Outputs of failed steps are unfolded from the start if they have at most this many lines."""

LONGEST = 200_000
"""Maximum number of characters shown of one text; the event log has the rest.

It keeps browsers fast.
"""

_COLOURED = 3_000
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
        asked=markdown_to_html(truncate_text(view.header.request, LONGEST)),
        said=markdown_to_html(truncate_text(view.header.closing, LONGEST)),
        tokens_in=f"{tokens.input:,}",
        tokens_cached=f"{tokens.cached:,}",
        tokens_out=f"{tokens.output:,}",
        time=duration(view.header.seconds),
        entries=[_entry(entry, "step") for entry in view.entries],
    )


def _entry(entry: Entry, above: str) -> dict[str, Any]:
    """Return the variables of the template for one entry.

    above: anchor of the parent, with which this entry's anchor begins.
    """
    if isinstance(entry, TraceNote):
        blocks = [_shown(TraceBlock(entry.detail), "Text", folded=True)] if entry.detail else []
        label = entry.sort.capitalize()
        return {**asdict(entry), "number": 0, "label": label, "blocks": blocks}
    asked = [_shown(entry.action, "Action", asked=True)] if entry.action else []
    return {
        "number": entry.number,
        "anchor": f"{above}-{entry.number}",
        "nested": [_entry(each, f"{above}-{entry.number}") for each in entry.nested],
        "nested_label": f"What it did, {plural(entry.nested_steps, 'step')}",
        "verb": entry.verb,
        "subject": entry.subject,
        "badge": entry.badge,
        "mood": entry.mood,
        "meta": _meta(entry),
        "thought": truncate_text(entry.thought, LONGEST),
        "words": truncate_text(entry.words, LONGEST),
        "blocks": asked
        + [_shown(block, "Output", failed=entry.mood == "bad") for block in entry.outputs],
        "images": entry.images,
    }


def _meta(step: TraceStep) -> str:
    facts = [duration(step.seconds)] if step.seconds is not None else []
    facts += [money(step.cost)] if step.cost is not None else []
    return " · ".join(facts)


def _shown(
    block: TraceBlock, label: str, folded: bool = False, asked: bool = False, failed: bool = False
) -> dict[str, Any]:
    """Return the variables of the template for a block of text."""
    text = truncate_text(block.text, LONGEST)
    lines = block.text.count("\n") + 1
    is_diff = block.language == "diff" and lines <= _COLOURED
    long = lines > FOLD or len(text) > 8_000
    last_line = text[-2_000:].rstrip().rpartition("\n")[2]
    return {
        "label": f"{label}, {plural(lines, 'line')}",
        "last": "" if asked or folded else one_line(last_line),
        "text": text,
        "diff": [_line(line) for line in text.split("\n")] if is_diff else [],
        "folded": folded or (long and not is_diff),
        # Readers mostly come for the reason of a failure.
        "open": failed and lines <= OPEN,
        "asked": asked,
    }


_SORTS = (
    ("+++", "file"),
    ("---", "file"),
    ("@@", "hunk"),
    ("diff ", "file"),
    ("+", "add"),
    ("-", "del"),
)


def _line(text: str) -> dict[str, str]:
    sort = next((sort for start, sort in _SORTS if text.startswith(start)), "")
    return {"text": text, "sort": sort}
