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
from dataclasses import dataclass
from functools import cache
from typing import Literal

from markdown_it import MarkdownIt
from markupsafe import Markup
from pydantic_core import PydanticSerializationError

from resolver.config.templates import render
from resolver.events.log import Event, dump_line
from resolver.trace.plain import duration, money, one_line, plural, truncate_text
from resolver.trace.steps import build_view
from resolver.trace.view import (
    Entry,
    Mood,
    TraceBlock,
    TraceHeader,
    TraceNote,
    TraceStep,
    detail_label,
)

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
    page = TracePage(
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
        entries=tuple(_entry(entry, "step") for entry in view.entries),
    )
    return render("trace/page.html.j2", page)


@dataclass(frozen=True)
class DiffLine:
    """One line of a diff. sort: its CSS class; "" for none."""

    text: str
    sort: str


@dataclass(frozen=True)
class HtmlBlock:
    """A text in a fixed-width font.

    last: the last line, shown while the text is folded.
    diff: the lines of a diff; empty for any other text.
    open: True if a folded text is unfolded from the start.
    asked: True for an action, False for an output.
    """

    label: str
    last: str
    text: str
    diff: tuple[DiffLine, ...]
    folded: bool
    open: bool
    asked: bool


@dataclass(frozen=True)
class HtmlNote:
    """A note. number: always 0, which tells it from a step."""

    sort: str
    label: str
    text: str
    blocks: tuple[HtmlBlock, ...]
    number: Literal[0] = 0


@dataclass(frozen=True)
class HtmlStep:
    """A step. anchor: its id in the page. meta: time and cost. The rest is as in `TraceStep`."""

    number: int
    anchor: str
    nested: "tuple[HtmlEntry, ...]"
    nested_label: str
    verb: str
    subject: str
    badge: str
    mood: Mood
    meta: str
    thought: str
    words: str
    blocks: tuple[HtmlBlock, ...]
    images: tuple[str, ...]


HtmlEntry = HtmlStep | HtmlNote


@dataclass(frozen=True)
class TracePage:
    """The values that the template of the page reads.

    policy: the Content-Security-Policy.
    refresh: seconds after which the browser reloads the page; 0 for never.
    notices: sentences about the page itself.
    asked, said: the request and the agent's final message as HTML.
    """

    policy: str
    refresh: int
    notices: Sequence[str]
    header: TraceHeader
    asked: Markup
    said: Markup
    tokens_in: str
    tokens_cached: str
    tokens_out: str
    time: str
    entries: tuple[HtmlEntry, ...]


def _entry(entry: Entry, parent_anchor: str) -> HtmlEntry:
    """Return one entry as the template shows it.

    parent_anchor: anchor of the parent, with which this entry's anchor begins.
    """
    if isinstance(entry, TraceNote):
        blocks = (
            (_block(TraceBlock(entry.detail), detail_label(entry), is_folded=True),)
            if entry.detail
            else ()
        )
        return HtmlNote(entry.sort, entry.sort.capitalize(), entry.text, blocks)
    has_failed = entry.mood == "bad"
    action = (_block(entry.action, "Action", is_action=True),) if entry.action else ()
    anchor = f"{parent_anchor}-{entry.number}"
    return HtmlStep(
        number=entry.number,
        anchor=anchor,
        nested=tuple(_entry(nested_entry, anchor) for nested_entry in entry.nested),
        nested_label=f"What it did ({plural(entry.nested_steps, 'step')})",
        verb=entry.verb,
        subject=entry.subject,
        badge=entry.badge,
        mood=entry.mood,
        meta=_meta(entry),
        thought=truncate_text(entry.thought, MAX_TEXT_LENGTH),
        words=truncate_text(entry.words, MAX_TEXT_LENGTH),
        blocks=action
        + tuple(_block(block, "Output", has_failed=has_failed) for block in entry.outputs),
        images=entry.images,
    )


def _meta(step: TraceStep) -> str:
    facts = [duration(step.seconds)] if step.seconds is not None else []
    facts += [money(step.cost)] if step.cost is not None else []
    return " · ".join(facts)


def _block(
    block: TraceBlock,
    label: str,
    is_folded: bool = False,
    is_action: bool = False,
    has_failed: bool = False,
) -> HtmlBlock:
    """Return a block of text as the template shows it."""
    text = truncate_text(block.text, MAX_TEXT_LENGTH)
    lines = block.text.count("\n") + 1
    is_diff = block.language == "diff" and lines <= _MAX_COLOURED_LINES
    is_long = lines > MAX_UNFOLDED_LINES or len(text) > 8_000
    last_line = text[-2_000:].rstrip().rpartition("\n")[2]
    return HtmlBlock(
        label=f"{label}, {plural(lines, 'line')}",
        last="" if is_action or is_folded else one_line(last_line),
        text=text,
        diff=tuple(_diff_line(line) for line in text.split("\n")) if is_diff else (),
        folded=is_folded or (is_long and not is_diff),
        # Readers mostly come for the reason of a failure.
        open=has_failed and lines <= MAX_OPEN_LINES,
        asked=is_action,
    )


_LINE_SORTS = (
    ("+++", "file"),
    ("---", "file"),
    ("@@", "hunk"),
    ("diff ", "file"),
    ("+", "add"),
    ("-", "del"),
)


def _diff_line(text: str) -> DiffLine:
    sort = next((sort for start, sort in _LINE_SORTS if text.startswith(start)), "")
    return DiffLine(text, sort)


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
