"""Renders traces as GitHub markdown: trace.md, and a folded block for a comment.

trace.md contains all texts in full; the block has a limited size.

`untrusted_text.py` makes text from outside inert. Texts and layout are in prompts/trace/.
"""

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from resolver.config.templates import render
from resolver.events.log import Event
from resolver.models.run import RunState
from resolver.trace.outline import MAX_DIFF_LENGTH, split_diff, split_phases
from resolver.trace.plain import duration, money, plural, truncate_text
from resolver.trace.steps import build_view
from resolver.trace.untrusted_text import (
    fenced,
    html_line,
    inline_code,
    plain_prose,
    quote_markdown,
    utf16_length,
)
from resolver.trace.view import Entry, TraceBlock, TraceHeader, TraceNote, TraceStep, detail_label

MAX_UNFOLDED_LINES = 15
"""Outputs with more lines than this are folded."""

_COMMENT_CATEGORIES = {"stage", "warning", "error", "state", "retry", "check"}
_GAP_LENGTH = 120
"""UTF-16 code units that are reserved for the line that says how much was left out."""

_LABELS = {
    "stage": "Stage",
    "warning": "⚠️ Warning",
    "error": "❌ Error",
    "retry": "Retry",
    "check": "Check",
    "state": "State",
    "network": "Network",
    "memory": "Memory",
    "message": "Message",
    "event": "Event",
}
_MARKS = {"good": "✅ ", "bad": "❌ ", "plain": ""}


def render_markdown(events: Iterable[Event], diff: str = "", notices: Sequence[str] = ()) -> str:
    """Return trace.md with all texts in full.

    diff: the change that the run ended with, as `git diff` prints it.
    notices: sentences about the trace itself for its reader, in plain text.
    """
    view = build_view(events)
    phases = [
        MarkdownPhase(phase.name, "".join(_entry(entry, None) for entry in phase.entries))
        for phase in split_phases(view.entries)
    ]
    return render(
        "trace/trace.md.j2",
        _header(view.header),
        notices=[plain_prose(notice) for notice in notices],
        changes=render_changed_files(diff, MAX_DIFF_LENGTH),
        phases=phases,
    )


def render_changed_files(diff: str, limit: int) -> str:
    """Return the files of a change as folded diffs, in about `limit` characters at most.

    diff: the change as `git diff` prints it. Files that don't fit are only named.
    """
    rows = []
    for file in split_diff(diff):
        text = "\n".join(file.lines)
        fits = len(text) <= limit
        limit -= len(text) if fits else 0
        title = f"<code>{html.escape(file.path)}</code> {html_line(file.size)}"
        rows.append(MarkdownChange(title, fenced(text, "diff") if fits else ""))
    return render("trace/changes.md.j2", changes=rows).strip()


def render_comment_trace(events: Iterable[Event], limit: int) -> str:
    """Return the steps of a log for a comment; see `CommentTrace.render`."""
    return CommentTrace(events).render(limit)


class CommentTrace:
    """The trace of a log for a fold of a comment: the plan, and a line for each step.

    The lines of steps unfold to the texts of the step.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        view = build_view(events)
        frame = render("trace/comment.md.j2", plan=_newest_plan(view.entries), slot=_ENTRIES_SLOT)
        self._opening, _, self._closing = frame.rpartition(_ENTRIES_SLOT)
        self._entries = [
            _shorten_entry(entry)
            for entry in view.entries
            if isinstance(entry, TraceStep) or _belongs_in_comment(entry)
        ]
        self._lines: dict[int, str] = {}

    def render(self, limit: int) -> str:
        """Return a block of at most `limit` UTF-16 code units, as GitHub counts.

        Long texts are truncated in the middle, so that all steps fit and the room is used. If that
        is not enough, steps in the middle are left out, and the block says how many. The result is
        empty if `limit` is too small even for the frame.
        """
        remaining = limit - utf16_length(self._opening) - utf16_length(self._closing)
        if remaining < _GAP_LENGTH:
            return ""
        lines = _render_all(self._entries, self._line, remaining)
        if lines is None:
            body = _render_both_ends(self._entries, self._line, remaining)
            return self._opening + body + self._closing
        body, smallest, largest = lines, 0, len(_TEXT_LIMITS)
        while smallest < largest:
            middle = (smallest + largest) // 2
            write = partial(_entry, text_limit=_TEXT_LIMITS[middle])
            whole = _render_all(self._entries, write, remaining)
            if whole is None:
                largest = middle
            else:
                body, smallest = whole, middle + 1
        return self._opening + body + self._closing

    def _line(self, entry: Entry) -> str:
        """Return the entry without its texts, rendered once."""
        line = self._lines.get(id(entry))
        if line is None:
            line = self._lines[id(entry)] = _entry(entry, 0)
        return line


_ENTRIES_SLOT = "<!-- entries -->"

_TEXT_LIMITS = tuple(round(80 * 1.2**step) for step in range(31))
"""Maximum characters of one text, 80 to 19,000: the largest is used with which all texts fit."""


_MAX_PLAN_ITEMS = 12


def _newest_plan(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the items of the plan as the agent last wrote it, as prose."""
    plans = [
        entry.action.text
        for entry in entries
        if isinstance(entry, TraceStep) and entry.kind == "plan_update" and entry.action
    ]
    items = plans[-1].split("\n")[:_MAX_PLAN_ITEMS] if plans else []
    return tuple(plain_prose(truncate_text(item, 150).replace("\n", " ")) for item in items)


def _belongs_in_comment(note: TraceNote) -> bool:
    """Return True if the note belongs in a comment.

    That the run is running and where the checkout is on the machine do not.
    """
    is_running = note.category == "state" and note.text == RunState.RUNNING.value
    is_checkout = note.category == "stage" and note.text.startswith("checkout")
    return note.category in _COMMENT_CATEGORIES and not (is_running or is_checkout)


def _shorten_entry(entry: Entry) -> Entry:
    """Return the entry as it appears in a comment.

    Of a loaded skill, that is its name and the reason but not its text. The comment itself says
    what the agent said at the end.
    """
    if isinstance(entry, TraceStep) and entry.kind == "finish":
        return replace(entry, prose="")
    if isinstance(entry, TraceStep) and entry.verb == "Load":
        return replace(entry, outputs=())
    return entry


def _render_all(
    entries: Sequence[Entry], render_entry: Callable[[Entry], str], remaining: int
) -> str | None:
    """Return all entries; None if they exceed `remaining`."""
    parts = []
    for entry in entries:
        part = render_entry(entry)
        remaining -= utf16_length(part)
        if remaining < 0:
            return None
        parts.append(part)
    return "".join(parts)


def _render_both_ends(
    entries: Sequence[Entry], render_entry: Callable[[Entry], str], remaining: int
) -> str:
    """Return the first and last entries that fit into `remaining`, and a line about the others."""
    remaining -= _GAP_LENGTH
    first_entries, unused = _render_fitting(entries, render_entry, remaining // 2)
    others = entries[len(first_entries) :]
    last_entries, _ = _render_fitting(
        others[::-1], render_entry, remaining - remaining // 2 + unused
    )
    omitted = others[: len(others) - len(last_entries)]
    steps = sum(isinstance(entry, TraceStep) for entry in omitted)
    gap = render("trace/gap.md.j2", steps=plural(steps, "step"), entries=len(omitted))
    return "".join([*first_entries, gap, *reversed(last_entries)])


def _render_fitting(
    entries: Sequence[Entry], render_entry: Callable[[Entry], str], remaining: int
) -> tuple[list[str], int]:
    """Return as many entries as fit into `remaining`, and the room left."""
    parts: list[str] = []
    for entry in entries:
        part = render_entry(entry)
        if utf16_length(part) > remaining:
            break
        remaining -= utf16_length(part)
        parts.append(part)
    return parts, remaining


def _entry(entry: Entry, text_limit: int | None) -> str:
    """Return one entry as markdown.

    text_limit: maximum characters of each text; None for no limit.
    """
    if isinstance(entry, TraceNote):
        detail = (
            [_block(TraceBlock(entry.detail), detail_label(entry), None)]
            if entry.detail and text_limit is None
            else []
        )
        return render(
            "trace/note.md.j2",
            label=_LABELS[entry.category],
            text=plain_prose(entry.text),
            blocks=detail,
        )
    blocks_with_labels = [(entry.action, "Action")] if entry.action else []
    blocks_with_labels += [(block, "Output") for block in entry.outputs]
    nested_entries = [
        nested_entry
        for nested_entry in entry.nested
        if text_limit is None or isinstance(nested_entry, TraceStep)
    ]
    step = MarkdownStep(
        whole=text_limit is None,
        number=entry.number,
        verb=plain_prose(entry.verb),
        subject=inline_code(entry.subject),
        facts=" · ".join(_facts(entry)),
        summary=_summary_line(entry) if text_limit else "",
        thought=quote_markdown(_truncate(entry.thought, text_limit)),
        prose=quote_markdown(_truncate(entry.prose, text_limit)),
        blocks=tuple(
            _block(block, label, text_limit)
            for block, label in blocks_with_labels
            if text_limit != 0
        ),
        images=len(entry.images),
        nested=tuple(_entry(nested_entry, text_limit) for nested_entry in nested_entries)
        if text_limit != 0
        else (),
        nested_label=f"What it did ({plural(entry.nested_steps, 'step')})",
    )
    return render("trace/step.md.j2", step)


def _summary_line(step: TraceStep) -> str:
    """Return the line of a step in a comment as HTML."""
    # Mentions and references in code are inert, and the code is to be copied as it is.
    code = f" <code>{html.escape(step.subject)}</code>" if step.subject else ""
    return " · ".join(
        (f"{step.number}. {html_line(step.verb)}{code}", *map(html_line, _facts(step)))
    )


def _facts(step: TraceStep) -> list[str]:
    facts = [f"{_MARKS[step.mood]}{plain_prose(step.badge)}"] if step.badge else []
    facts += [duration(step.seconds)] if step.seconds is not None else []
    facts += [money(step.cost)] if step.cost else []
    return facts


@dataclass(frozen=True)
class MarkdownBlock:
    """A text in a code block (`fence`), folded if it is long."""

    label: str
    fence: str
    folded: bool


@dataclass(frozen=True)
class MarkdownStep:
    """One step as the template shows it.

    whole: True in trace.md, False in a comment.
    facts: result, time and cost on one line.
    summary: title and facts as one line of HTML, from which the texts of the step unfold; empty if
        they stand below a heading.
    images: number of pictures.
    nested: the delegate's entries, rendered.
    """

    whole: bool
    number: int
    verb: str
    subject: str
    facts: str
    summary: str
    thought: str
    prose: str
    blocks: tuple[MarkdownBlock, ...]
    images: int
    nested: tuple[str, ...]
    nested_label: str


@dataclass(frozen=True)
class MarkdownPhase:
    """A phase of the run. entries: its steps and notes, rendered."""

    name: str
    entries: str


@dataclass(frozen=True)
class MarkdownChange:
    """A changed file. title: path and size as HTML. fence: its diff; empty if there is no room."""

    title: str
    fence: str


@dataclass(frozen=True)
class MarkdownHeader:
    """The header of trace.md. `TraceHeader` describes the fields."""

    title: str
    issue: str
    request: str
    requested_by: str
    state: str
    reason: str
    verdict: str
    evidence: tuple[str, ...]
    closing: str
    left_out: tuple[str, ...]
    model: str
    agent: str
    runtime: str
    base: str
    version: str
    started: str
    cost: str
    parts: tuple[str, ...]
    tokens_in: str
    tokens_cached: str
    tokens_out: str
    iterations: str
    time: str


def _block(block: TraceBlock, label: str, text_limit: int | None) -> MarkdownBlock:
    text = _truncate(block.text, text_limit)
    lines = block.text.count("\n") + 1
    return MarkdownBlock(
        label=f"{label}, {plural(lines, 'line')}",
        fence=fenced(text, block.language),
        folded=text_limit is None
        and (text.count("\n") >= MAX_UNFOLDED_LINES or len(text) > 20_000),
    )


def _truncate(text: str, text_limit: int | None) -> str:
    if text_limit is None:
        return text
    return truncate_text(text, text_limit) if text_limit else ""


def _header(header: TraceHeader) -> MarkdownHeader:
    """Return the header as markdown."""
    tokens = header.tokens
    return MarkdownHeader(
        title=plain_prose(header.title),
        issue=inline_code(header.repository + (f"#{header.number}" if header.number else "")),
        request=quote_markdown(header.request),
        requested_by=inline_code(header.requested_by),
        state=f"{_MARKS[header.mood]}{header.state.replace('_', ' ')}",
        reason=plain_prose(header.reason),
        verdict=plain_prose(header.verdict),
        evidence=tuple(plain_prose(text) for text in header.evidence),
        closing=quote_markdown(header.closing),
        left_out=tuple(plain_prose(text) for text in header.left_out),
        model=inline_code(header.model),
        agent=inline_code(header.agent),
        runtime=inline_code(header.runtime),
        base=inline_code(header.base),
        version=inline_code(header.version),
        started=header.started,
        cost=header.price,
        parts=tuple(plain_prose(text) for text in header.parts),
        tokens_in=f"{tokens.input:,}",
        tokens_cached=f"{tokens.cached:,}",
        tokens_out=f"{tokens.output:,}",
        iterations=plural(header.iterations, "iteration"),
        time=duration(header.seconds),
    )
