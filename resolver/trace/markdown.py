"""Renders traces as GitHub markdown: trace.md, and a folded block for a comment.

trace.md contains all texts in full; the block has a limited size.

Text from outside is put into code fences, inline code, or prose in which all markup, mentions,
references and links are made inert. Texts and layout are in prompts/trace/.
"""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from resolver.config.templates import render
from resolver.events.log import Event
from resolver.models.run import RunState
from resolver.trace.plain import duration, money, plural, truncate_text
from resolver.trace.steps import build_view
from resolver.trace.view import Entry, TraceBlock, TraceHeader, TraceNote, TraceStep

FOLD = 15
"""Outputs with more lines than this are folded."""

_CAPS = (4_000, 1_500, 600, 250, 80, 0)
"""Maximum characters of every text in a comment, tried in turn until all steps fit."""

_FOR_COMMENT = {"stage", "warning", "error", "state", "retry", "check"}
_GAP = 120
"""UTF-16 code units that are reserved for the line that says how much was left out."""

_LONGEST_FENCE = 200
"""Longest fence that is used. GitHub's parser counts its characters up to 255 only."""

_ZERO_WIDTH = "\u200b"
_MARKUP = re.compile(r"[\\`*_\[\]~|$]")
_LINK = re.compile(
    r"@|(?:\bGH(?=-\d))|#(?=\w)|:(?=//)|\bwww(?=\.)",  # mention, references, bare links
    re.IGNORECASE,
)
_LINE_MARK = re.compile(r"^(?:(?=[#+=-])|[0-9]{1,9}(?=[.)]))")
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


def render_markdown(events: Iterable[Event]) -> str:
    """Return trace.md with all texts in full."""
    view = build_view(events)
    entries = [_entry(entry, None) for entry in view.entries]
    return render("trace/trace.md.j2", **_header(view.header), entries=entries)


def render_comment_trace(events: Iterable[Event], limit: int) -> str:
    """Return a folded block for a comment of at most `limit` UTF-16 code units, as GitHub counts.

    Long texts are truncated in the middle so that all steps fit. If that is not enough, steps in
    the middle are left out, and the block says how many. The result is empty if `limit` is too
    small even for the frame.
    """
    view = build_view(events)
    frame = render("trace/comment.md.j2", **_header(view.header))
    before, _, after = frame.rpartition(_SLOT)
    room = limit - utf16_length(before) - utf16_length(after)
    if room < _GAP:
        return ""
    entries = [_brief(e) for e in view.entries if isinstance(e, TraceStep) or _is_news(e)]
    for cap in _CAPS:
        body = _all_within(entries, cap, room)
        if body is not None:
            return before + body + after
    return before + _ends_within(entries, room) + after


_SLOT = "<!-- entries -->"


def _is_news(note: TraceNote) -> bool:
    """Return True if the note belongs in a comment.

    That the run is running and where the checkout is on the machine do not.
    """
    at_work = note.sort == "state" and note.text == RunState.RUNNING.value
    folder = note.sort == "stage" and note.text.startswith("checkout")
    return note.sort in _FOR_COMMENT and not (at_work or folder)


def _brief(entry: Entry) -> Entry:
    """Return the entry as it appears in a comment.

    Of a loaded skill, that is its name and the reason but not its text.
    """
    if isinstance(entry, TraceStep) and entry.verb == "Load":
        return replace(entry, outputs=())
    return entry


def utf16_length(text: str) -> int:
    """Return the length as JavaScript and GitHub count it: characters above U+FFFF count twice."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def fenced(text: str, language: str = "") -> str:
    """Return `text` as one code block that nothing in the text can close.

    The fence is longer than any run of its character in the text; see
    https://github.github.com/gfm/#fenced-code-blocks. If it would be too long, the text becomes an
    indented code block.
    """
    backticks, tildes = _longest_run("`", text), _longest_run("~", text)
    mark, inside = ("`", backticks) if backticks <= max(tildes, 10) else ("~", tildes)
    if inside < _LONGEST_FENCE:
        fence = mark * max(3, inside + 1)
        return f"{fence}{language}\n{text}\n{fence}"
    return "\n".join(f"    {line}" for line in text.split("\n"))


def inline_code(text: str) -> str:
    """Return `text` as one line of inline code; empty for empty text."""
    # GitHub's parser does not recognize a delimiter of more than 80 backticks.
    text = re.sub("`{9,}", "…", " ".join(text.split()))
    if not text:
        return ""
    fence = "`" * (_longest_run("`", text) + 1)
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def prose(text: str) -> str:
    """Return `text` as plain words.

    No markup, tag, mention, reference, link or image in it has an effect.
    """
    text = _MARKUP.sub(r"\\\g<0>", html.escape(text, quote=False))
    # A zero-width space breaks what markdown has no escape for: @mention, #1, GH-1, http:// and
    # www.
    text = _LINK.sub(lambda found: found[0] + _ZERO_WIDTH, text)
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join(_LINE_MARK.sub(r"\g<0>\\", line) for line in lines)


def quoted(text: str) -> str:
    """Return `text` as prose in a block quote that keeps its lines; empty for empty text."""
    if not text:
        return ""
    # Two trailing spaces keep a line break in a file; in a comment GitHub keeps it anyway.
    return "\n".join(f"> {line}  " if line else ">" for line in prose(text).split("\n"))


def _longest_run(mark: str, text: str) -> int:
    return max((len(run) for run in re.findall(f"{re.escape(mark)}+", text)), default=0)


def _all_within(entries: Sequence[Entry], cap: int, room: int) -> str | None:
    """Return all entries with texts of at most `cap` characters; None if they exceed `room`."""
    parts = []
    for entry in entries:
        part = _entry(entry, cap)
        room -= utf16_length(part)
        if room < 0:
            return None
        parts.append(part)
    return "".join(parts)


def _ends_within(entries: Sequence[Entry], room: int) -> str:
    """Return the first and last entries that fit into `room`, and a line about the others."""
    room -= _GAP
    first, left = _as_many_as_fit(entries, room // 2)
    rest = entries[len(first) :]
    last, _ = _as_many_as_fit(rest[::-1], room - room // 2 + left)
    gone = rest[: len(rest) - len(last)]
    steps = sum(isinstance(entry, TraceStep) for entry in gone)
    gap = render("trace/gap.md.j2", steps=plural(steps, "step"), entries=len(gone))
    return "".join([*first, gap, *reversed(last)])


def _as_many_as_fit(entries: Sequence[Entry], room: int) -> tuple[list[str], int]:
    """Return as many entries as fit into `room`, without their texts, and the room that is left."""
    parts: list[str] = []
    for entry in entries:
        part = _entry(entry, 0)
        if utf16_length(part) > room:
            break
        room -= utf16_length(part)
        parts.append(part)
    return parts, room


def _entry(entry: Entry, cap: int | None) -> str:
    """Return one entry as markdown with texts of at most `cap` characters; None for no limit."""
    if isinstance(entry, TraceNote):
        detail = (
            [_block(TraceBlock(entry.detail), "Text", None)] if entry.detail and cap is None else []
        )
        return render(
            "trace/note.md.j2", label=_LABELS[entry.sort], text=prose(entry.text), blocks=detail
        )
    named = [(entry.action, "Action")] if entry.action else []
    named += [(block, "Output") for block in entry.outputs]
    inner = [e for e in entry.nested if cap is None or isinstance(e, TraceStep)]
    return render(
        "trace/step.md.j2",
        whole=cap is None,
        number=entry.number,
        verb=prose(entry.verb),
        subject=inline_code(entry.subject),
        facts=" · ".join(_facts(entry)),
        thought=quoted(_cut(entry.thought, cap)),
        words=quoted(_cut(entry.words, cap)),
        blocks=[_block(block, label, cap) for block, label in named if cap != 0],
        images=len(entry.images),
        nested=[_entry(each, cap) for each in inner] if cap != 0 else [],
        nested_label=f"What it did ({plural(entry.nested_steps, 'step')})",
    )


def _facts(step: TraceStep) -> list[str]:
    facts = [f"{_MARKS[step.mood]}{prose(step.badge)}"] if step.badge else []
    facts += [duration(step.seconds)] if step.seconds is not None else []
    facts += [money(step.cost)] if step.cost is not None else []
    return facts


def _block(block: TraceBlock, label: str, cap: int | None) -> dict[str, Any]:
    text = _cut(block.text, cap)
    lines = block.text.count("\n") + 1
    return {
        "label": f"{label}, {plural(lines, 'line')}",
        "fence": fenced(text, block.language),
        "folded": text.count("\n") >= FOLD or len(text) > 20_000,
    }


def _cut(text: str, cap: int | None) -> str:
    if cap is None:
        return text
    return truncate_text(text, cap) if cap else ""


def _header(header: TraceHeader) -> dict[str, Any]:
    """Return the variables of the templates for the header."""
    tokens = header.tokens
    return {
        "slot": _SLOT,
        "title": prose(header.title),
        "issue": inline_code(header.repository + (f"#{header.number}" if header.number else "")),
        "request": quoted(header.request),
        "asked_by": inline_code(header.asked_by),
        "state": f"{_MARKS[header.mood]}{header.state.replace('_', ' ')}",
        "reason": prose(header.reason),
        "closing": quoted(header.closing),
        "left_out": [prose(text) for text in header.left_out],
        "model": inline_code(header.model),
        "agent": inline_code(header.agent),
        "runtime": inline_code(header.runtime),
        "base": inline_code(header.base),
        "version": inline_code(header.version),
        "started": header.started,
        "cost": header.price,
        "parts": [prose(text) for text in header.parts],
        "tokens_in": f"{tokens.input:,}",
        "tokens_cached": f"{tokens.cached:,}",
        "tokens_out": f"{tokens.output:,}",
        "iterations": plural(header.iterations, "iteration"),
        "time": duration(header.seconds),
    }
