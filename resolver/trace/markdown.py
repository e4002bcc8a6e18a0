"""Renders traces as GitHub markdown: trace.md, and a folded block for a comment.

trace.md contains all texts in full; the block has a limited size. The templates in prompts/trace/
read the view of the trace; what they show is inert (`untrusted_text.py`), unless a filter has made
it markdown.
"""

import html
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate, takewhile
from typing import Any

from jinja2 import Environment, Template
from markupsafe import Markup

from resolver.config.templates import environment_options
from resolver.events.log import Event
from resolver.models.run import RunState
from resolver.models.truncate import truncate_middle
from resolver.trace.outline import MAX_DIFF_LENGTH, FileDiff, split_diff, split_phases
from resolver.trace.plain import duration, plural
from resolver.trace.steps import build_view
from resolver.trace.untrusted_text import (
    fenced,
    html_line,
    inline_code,
    plain_prose,
    quote_markdown,
    utf16_length,
)
from resolver.trace.view import Entry, TraceBlock, TraceNote, TraceStep

MAX_UNFOLDED_LINES = 15
"""Outputs with more lines than this are folded."""

COMMENT_TEXT_LIMITS = (19_000, 8_000, 3_000, 1_000, 300, 0)
"""Maximum characters of one text in a comment: the first with which all texts fit is used."""

_COMMENT_CATEGORIES = {"stage", "warning", "error", "state", "retry", "check"}
_MAX_PLAN_ITEMS = 12


def render_markdown(
    events: Iterable[Event], diff: str | None = None, notices: Sequence[str] = ()
) -> str:
    """Return trace.md with all texts in full.

    diff: the change that the run ended with, as `git diff` prints it.
    notices: sentences about the trace itself for its reader, in plain text.
    """
    view = build_view(events)
    return _template("trace.md.j2").render(
        header=view.header,
        notices=notices,
        changes=Markup(render_changed_files(diff, MAX_DIFF_LENGTH)),  # noqa: S704 - escaped there
        phases=split_phases(view.entries),
    )


def render_changed_files(diff: str | None, limit: int) -> str:
    """Return the files of a change as folded diffs, in about `limit` characters at most.

    diff: the change as `git diff` prints it. Files that don't fit are only named.
    """
    files: list[tuple[FileDiff, str | None]] = []
    for file in split_diff(diff or ""):
        text = "\n".join(file.lines)
        fits = len(text) <= limit
        limit -= len(text) if fits else 0
        files.append((file, text if fits else None))
    return _template("changes.md.j2").render(files=files).strip()


class CommentTrace:
    """The trace of a log for a fold of a comment: the plan, and a line for each step.

    The lines of steps unfold to the texts of the step.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        view = build_view(events)
        plan = view.header.plan[:_MAX_PLAN_ITEMS]
        self._opening = _template("plan.md.j2").render(plan=plan)
        self._entries = [
            entry
            for entry in view.entries
            if isinstance(entry, TraceStep) or _belongs_in_comment(entry)
        ]

    def render(self, limit: int) -> str:
        """Return a block of at most `limit` UTF-16 code units, as GitHub counts.

        Long texts are truncated in the middle, so that all steps fit. If that is not enough, steps
        in the middle are left out, and the block says how many. The result is empty if there is not
        even room for that.
        """
        remaining = limit - utf16_length(self._opening)
        for text_limit in COMMENT_TEXT_LIMITS:
            body = _render_within(self._entries, text_limit, remaining)
            if body is not None:
                return self._opening + body
        lines = [_entry_in_comment(entry, 0) for entry in self._entries]
        ends = _both_ends(self._entries, lines, remaining)
        return self._opening + ends if ends else ""


def _belongs_in_comment(note: TraceNote) -> bool:
    """Return True if the note belongs in a comment.

    That the run is running and where the checkout is on the machine do not.
    """
    is_running = note.category == "state" and note.text == RunState.RUNNING.value
    is_checkout = note.category == "stage" and note.text.startswith("checkout")
    return note.category in _COMMENT_CATEGORIES and not (is_running or is_checkout)


def _entry_in_comment(entry: Entry, text_limit: int) -> str:
    return _template("entry.md.j2").render(entry=entry, text_limit=text_limit)


def _render_within(entries: Sequence[Entry], text_limit: int, room: int) -> str | None:
    """Return all entries; None, without rendering the rest, once they exceed `room`."""
    parts: list[str] = []
    for entry in entries:
        parts.append(_entry_in_comment(entry, text_limit))
        room -= utf16_length(parts[-1])
        if room < 0:
            return None
    return "".join(parts)


def _both_ends(entries: Sequence[Entry], parts: Sequence[str], room: int) -> str:
    """Return as many of the first and the last entries as fit, with a line about the others; "" if
    even that does not fit."""
    steps = [isinstance(entry, TraceStep) for entry in entries]

    def gap(start: int, end: int) -> str:
        omitted = plural(sum(steps[start:end]), "step")
        return _template("gap.md.j2").render(steps=omitted, entries=end - start)

    room -= utf16_length(gap(0, len(entries)))
    start = _count_fitting(parts, room // 2)
    end = len(parts) - _count_fitting(parts[:start:-1], room - room // 2)
    return "".join([*parts[:start], gap(start, end), *parts[end:]]) if room >= 0 else ""


def _count_fitting(parts: Sequence[str], room: int) -> int:
    sizes = accumulate(map(utf16_length, parts))
    return len(list(takewhile(lambda size: size <= room, sizes)))


def _truncate(text: str, text_limit: int | None) -> str:
    if text_limit is None:
        return text
    return truncate_middle(text, text_limit) if text_limit else ""


def _is_long(block: TraceBlock) -> bool:
    return block.text.count("\n") >= MAX_UNFOLDED_LINES or len(block.text) > 20_000


_MARKDOWN_FILTERS: dict[str, Callable[..., str]] = {
    "code": inline_code,
    "duration": duration,
    # Mentions and references in code are inert, and the code is to be copied as it is.
    "html_code": lambda text: f"<code>{html.escape(text)}</code>",
    "html_line": html_line,
    "number": lambda count: f"{count:,}",
    "fence": lambda block, limit: fenced(_truncate(block.text, limit), block.language),
    "fenced": fenced,
    "quote": lambda text, limit=None: quote_markdown(_truncate(text, limit)),
    "plural": plural,
}
"""Filters whose results are markdown."""


def _finalize(value: Any) -> Any:
    is_plain = isinstance(value, str) and not isinstance(value, Markup)
    return Markup(plain_prose(value)) if is_plain else value  # noqa: S704 - it is escaped by that


def _as_markdown(function: Callable[..., str]) -> Callable[..., Markup]:
    return lambda *arguments: Markup(function(*arguments))  # noqa: S704 - escaped by the filter


@cache
def _template(name: str) -> Template:
    return _environment().get_template(f"trace/{name}")


@cache
def _environment() -> Environment:
    environment = Environment(**environment_options(), autoescape=True, finalize=_finalize)
    for name, function in _MARKDOWN_FILTERS.items():
        environment.filters[name] = _as_markdown(function)
    environment.filters |= {"truncated": truncate_middle}
    environment.tests |= {"step": lambda entry: isinstance(entry, TraceStep), "long": _is_long}
    return environment
