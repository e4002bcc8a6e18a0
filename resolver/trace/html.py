"""Renders a trace as one self-contained HTML page: no requests, all text escaped.

The layout is in prompts/trace/page.html.j2, page.css.j2 and page.js.j2. This module truncates and
folds texts, and splits diffs into coloured lines. Everything on the page can be read without its
script, which adds the search, the filter and the keys. `render_json` gives programs the events as
they are in the log.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from markupsafe import Markup, escape
from pydantic_core import PydanticSerializationError

from resolver.config.templates import render
from resolver.events.log import Event, dump_line
from resolver.trace.ansi import StyledText, split_styles
from resolver.trace.changes import split_diff
from resolver.trace.highlight import CodeHighlighter
from resolver.trace.html_markdown import MarkdownRenderer
from resolver.trace.outline import Chart, draw_charts, split_phases
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

_MAX_OPEN_DIFF_LINES = 120
"""Maximum number of lines of a file's diff that is unfolded in the result."""


def content_policy() -> str:
    """Return the Content-Security-Policy of the page: its own style and script, inline images.

    See https://developer.mozilla.org/en-US/docs/Web/HTTP/Reference/Headers/Content-Security-Policy
    """
    return (
        f"default-src 'none'; style-src '{_digest('trace/page.css.j2')}'; "
        f"script-src '{_digest('trace/page.js.j2')}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(template: str) -> str:
    digest = hashlib.sha256(render(template).encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def render_html(
    events: Iterable[Event], refresh: int = 0, notices: Sequence[str] = (), diff: str = ""
) -> str:
    """Return trace.html.

    The page makes no request and runs no script but its own, whatever the log contains.

    refresh: seconds after which the browser reloads the page; 0 for never.
    notices: sentences about the page itself for its reader, in plain text.
    diff: the change that the run ended with, as `git diff` prints it.
    """
    view = build_view(events)
    tokens = view.header.tokens
    code = CodeHighlighter()
    changes = _changed_files(diff, code)
    writer = _EntryWriter(code)
    page = TracePage(
        policy=content_policy(),
        refresh=refresh,
        notices=notices,
        header=view.header,
        asked=writer.prose(view.header.request),
        said=writer.prose(view.header.closing),
        tokens_in=f"{tokens.input:,}",
        tokens_cached=f"{tokens.cached:,}",
        tokens_out=f"{tokens.output:,}",
        time=duration(view.header.seconds),
        changes=changes,
        charts=draw_charts(view.entries, view.header.seconds),
        phases=tuple(
            writer.phase(number, phase.name, phase.entries)
            for number, phase in enumerate(split_phases(view.entries), 1)
        ),
        failures=writer.failures,
        next_failures=dict(pairwise(writer.failures)),
    )
    return render("trace/page.html.j2", page)


@dataclass(frozen=True)
class DiffLine:
    """One line of a diff as HTML. sort: its CSS class; "" for none."""

    text: Markup
    sort: str


@dataclass(frozen=True)
class HtmlBlock:
    """A text in a fixed-width font, as HTML.

    last: the last line, shown while the text is folded.
    diff: the lines of a diff; empty for any other text.
    open: True if a folded text is unfolded from the start.
    asked: True for an action, False for an output.
    """

    label: str
    last: str
    text: Markup
    diff: tuple[DiffLine, ...]
    folded: bool
    open: bool
    asked: bool


@dataclass(frozen=True)
class HtmlNote:
    """A note. number: always 0, which tells it from a step."""

    anchor: str
    sort: str
    label: str
    text: str
    blocks: tuple[HtmlBlock, ...]
    number: Literal[0] = 0


@dataclass(frozen=True)
class HtmlStep:
    """A step. anchor: its id in the page. meta: time and cost. The rest is as in `TraceStep`.

    group: what the filter of the page finds it by: `edit`, `command` or `other`.
    """

    number: int
    anchor: str
    nested: "tuple[HtmlEntry, ...]"
    nested_label: str
    verb: str
    subject: str
    badge: str
    mood: Mood
    meta: str
    thought: Markup
    words: Markup
    blocks: tuple[HtmlBlock, ...]
    images: tuple[str, ...]
    group: Literal["edit", "command", "other"]


HtmlEntry = HtmlStep | HtmlNote


@dataclass(frozen=True)
class HtmlPhase:
    """A phase with its entries. facts: numbers of steps and failures, time and cost."""

    anchor: str
    name: str
    facts: str
    entries: tuple[HtmlEntry, ...]


@dataclass(frozen=True)
class HtmlFileDiff:
    """The diff of one file of the change. open: True if it is unfolded from the start."""

    path: str
    lines: str
    open: bool
    block: HtmlBlock


@dataclass(frozen=True)
class TracePage:
    """The values that the template of the page reads.

    policy: the Content-Security-Policy.
    refresh: seconds after which the browser reloads the page; 0 for never.
    notices: sentences about the page itself.
    asked, said: the request and the agent's final message as HTML.
    changes: the change that the run ended with.
    failures: anchors of the steps that failed, and of errors. next_failures: the one after each.
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
    changes: tuple[HtmlFileDiff, ...]
    charts: tuple[Chart, ...]
    phases: tuple[HtmlPhase, ...]
    failures: Sequence[str]
    next_failures: dict[str, str]


class _EntryWriter:
    """Prepares the entries of one page. failures: anchors of what failed outside of delegates."""

    def __init__(self, code: CodeHighlighter) -> None:
        self._code = code
        self._markdown = MarkdownRenderer(code)
        self.failures: list[str] = []
        self._note_anchors: set[str] = set()

    def prose(self, text: str) -> Markup:
        return self._markdown.render(truncate_text(text, MAX_TEXT_LENGTH))

    def phase(self, number: int, name: str, entries: Sequence[Entry]) -> HtmlPhase:
        before = len(self.failures)
        written = []
        for entry in entries:
            written.append(self.entry(entry, "step"))
            if _has_failed(entry):
                self.failures.append(written[-1].anchor)
        steps = [entry for entry in entries if isinstance(entry, TraceStep)]
        failed = len(self.failures) - before
        facts = [plural(len(steps), "step") if steps else plural(len(entries), "entry", "entries")]
        facts += [f"{failed} failed"] if failed else []
        return HtmlPhase(f"phase-{number}", name, ", ".join(facts), tuple(written))

    def entry(self, entry: Entry, parent_anchor: str) -> HtmlEntry:
        """Return one entry as the template shows it.

        parent_anchor: anchor of the parent, with which this entry's anchor begins.
        """
        if isinstance(entry, TraceNote):
            blocks = (
                (self._block(TraceBlock(entry.detail), detail_label(entry), is_folded=True),)
                if entry.detail
                else ()
            )
            anchor = f"{parent_anchor}-event-{entry.event_id}".removeprefix("step-")
            # A damaged log may have the same id twice.
            if anchor in self._note_anchors:
                anchor += f"-{len(self._note_anchors)}"
            self._note_anchors.add(anchor)
            return HtmlNote(anchor, entry.sort, entry.sort.capitalize(), entry.text, blocks)
        has_failed = entry.mood == "bad"
        action = (self._block(entry.action, "Action", is_action=True),) if entry.action else ()
        anchor = f"{parent_anchor}-{entry.number}"
        return HtmlStep(
            number=entry.number,
            anchor=anchor,
            nested=tuple(self.entry(nested_entry, anchor) for nested_entry in entry.nested),
            nested_label=f"What it did ({plural(entry.nested_steps, 'step')})",
            verb=entry.verb,
            subject=entry.subject,
            badge=entry.badge,
            mood=entry.mood,
            meta=_meta(entry),
            thought=self.prose(entry.thought),
            words=self.prose(entry.words),
            blocks=action
            + tuple(self._block(block, "Output", has_failed=has_failed) for block in entry.outputs),
            images=entry.images,
            group=_group(entry),
        )

    def _block(
        self,
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
            text=self._text(block, text),
            diff=_diff_lines(text, self._code) if is_diff else (),
            folded=is_folded or (is_long and not is_diff),
            # Readers mostly come for the reason of a failure.
            open=has_failed and lines <= MAX_OPEN_LINES,
            asked=is_action,
        )

    def _text(self, block: TraceBlock, text: str) -> Markup:
        """Return the text with the colours of the terminal or of its language."""
        if block.raw and len(block.raw) <= MAX_TEXT_LENGTH and (parts := split_styles(block.raw)):
            return _styled(parts)
        return self._code.highlight(text, "" if block.language == "diff" else block.language)


def _has_failed(entry: Entry) -> bool:
    return entry.mood == "bad" if isinstance(entry, TraceStep) else entry.sort == "error"


def _group(step: TraceStep) -> Literal["edit", "command", "other"]:
    if step.kind in {"file_edit", "file_write"}:
        return "edit"
    return "command" if step.kind in {"cmd_run", "ipython_run_cell"} else "other"


def _meta(step: TraceStep) -> str:
    facts = [duration(step.seconds)] if step.seconds is not None else []
    facts += [money(step.cost)] if step.cost else []
    return " · ".join(facts)


def _styled(parts: Sequence[StyledText]) -> Markup:
    """Return terminal output with its colours. The names of styles are from a fixed list."""
    parts_html = (_span(part) for part in parts)
    return Markup("".join(parts_html).rstrip("\n"))  # noqa: S704 - each part is escaped


def _span(part: StyledText) -> Markup:
    if not part.styles:
        return escape(part.text)
    names = " ".join(f"t-{style}" for style in part.styles)
    return Markup('<span class="{}">{}</span>').format(names, part.text)


_LINE_SORTS = (
    ("+++", "file"),
    ("---", "file"),
    ("@@", "hunk"),
    ("diff ", "file"),
    ("+", "add"),
    ("-", "del"),
)


def _diff_lines(text: str, code: CodeHighlighter, path: str = "") -> tuple[DiffLine, ...]:
    """Return the lines of a diff, with the code of each highlighted for its file's language.

    path: of the file, if the diff does not begin with it.
    """
    lines = []
    for line in text.split("\n"):
        sort = next((sort for start, sort in _LINE_SORTS if line.startswith(start)), "")
        if sort == "file" and line[:4] in {"+++ ", "--- "}:
            path = line[4:].strip() if line[4:].strip() != "/dev/null" else path
        is_code = sort in {"add", "del"} or (not sort and line.startswith(" "))
        html = escape(line[:1]) + code.highlight(line[1:], path) if is_code else escape(line)
        lines.append(DiffLine(html, sort))
    return tuple(lines)


def _changed_files(diff: str, code: CodeHighlighter) -> tuple[HtmlFileDiff, ...]:
    """Return the files of a change. The diff of a long one is folded."""
    files = []
    for file in split_diff(diff):
        text = "\n".join(file.lines)
        shown = _diff_lines(text, code, file.path) if file.has_hunks else ()
        block = HtmlBlock("", "", escape(text), shown, False, False, False)
        is_open = len(file.lines) <= _MAX_OPEN_DIFF_LINES
        files.append(HtmlFileDiff(file.path, file.size, is_open, block))
    return tuple(files)


# Characters that a terminal or GitHub's runner might interpret. They can only occur in a JSON
# string, where an escape sequence means the same, so nothing is lost.
_CONTROL_CHARACTERS = re.compile(
    r"[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|(?<=##)\["
)


def render_json(events: Iterable[Event]) -> str:
    """Return a JSON array with one event per line."""
    return "[" + ",".join(f"\n{json_line(event)}" for event in events) + "\n]\n"


def json_line(event: Event) -> str:
    """Return the event as one line of JSON that controls neither a terminal nor GitHub's runner."""
    return _CONTROL_CHARACTERS.sub(_escape, _line(event))


def _line(event: Event) -> str:
    try:
        return dump_line(event)
    except PydanticSerializationError:
        # A lone surrogate, or nesting deeper than pydantic can serialize: the json module accepts
        # both.
        return json.dumps(event.model_dump(exclude_none=True), default=str)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
