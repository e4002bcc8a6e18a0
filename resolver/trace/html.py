"""Renders a trace as one self-contained HTML page: no requests, all text escaped.

The layout is in prompts/trace/page.html.j2, page.css.j2 and page.js.j2. This module truncates and
folds texts, and splits diffs into coloured lines. Everything on the page can be read without its
script, which adds the search, the filter and the keys. `render_json` gives programs the events as
they are in the log.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, Literal

from markupsafe import Markup, escape
from pydantic_core import PydanticSerializationError

from resolver.config.templates import render, source_hash
from resolver.events.log import Event, dump_line
from resolver.models.run import PullRequest
from resolver.models.truncate import truncate_middle
from resolver.security.invisible_text import INVISIBLE
from resolver.trace.outline import split_diff, split_phases
from resolver.trace.plain import duration, one_line, plural
from resolver.trace.steps import build_view
from resolver.trace.untrusted_text import render_prose
from resolver.trace.view import (
    Entry,
    TraceBlock,
    TraceNote,
    TraceStep,
    TraceView,
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


def content_policy(is_live: bool = False) -> str:
    """Return the Content-Security-Policy of the page: its own style and script, inline images.

    is_live: True for the page of a run in progress, which asks its own server for new steps and may
        have a form that sends commands to it.

    See https://developer.mozilla.org/en-US/docs/Web/HTTP/Reference/Headers/Content-Security-Policy
    """
    live_script = f" {source_hash('trace/live.js.j2')}" if is_live else ""
    connections = "connect-src 'self'; " if is_live else ""
    form_action = "'self'" if is_live else "'none'"
    return (
        f"default-src 'none'; style-src {source_hash('trace/page.css.j2')}; "
        f"script-src {source_hash('trace/page.js.j2')}{live_script}; img-src data:; "
        f"{connections}base-uri 'none'; form-action {form_action}"
    )


@dataclass(frozen=True)
class LiveStream:
    """Where the page of a run in progress continues. after: id of the last event that it shows, -1
    for none."""

    after: int


@dataclass(frozen=True)
class RunControls:
    """The form that sends commands to the run. action: its path. token: proves that the form comes
    from this page. request: identifies the request, so that it is stored once. login: of the
    reader."""

    action: str
    token: str
    request: str
    login: str


def render_html(
    events: Iterable[Event],
    refresh: int = 0,
    notices: Sequence[str] = (),
    diff: str | None = None,
    live: LiveStream | None = None,
    controls: RunControls | None = None,
    list_url: str | None = None,
    pull_request: PullRequest | None = None,
) -> str:
    """Return trace.html.

    The page makes no request and runs no script but its own, whatever the log contains.

    refresh: seconds after which a browser without JavaScript reloads the page; 0 for never.
    notices: sentences about the page itself for its reader, in plain text.
    diff: the change that the run ended with, as `git diff` prints it.
    live: for the page of a run in progress, which then asks its server for new steps.
    list_url: address of the page that lists all runs; None for no link to it.
    pull_request: that of the run, shown first.
    """
    view = build_view(events)
    writer = _EntryWriter()
    return render(
        "trace/page.html.j2",
        writer.steps(view.entries),
        policy=content_policy(live is not None),
        refresh=refresh,
        live=live,
        controls=controls,
        list_url=list_url,
        pull_request=pull_request,
        changes=writer.changed_files(diff),
        **_values(writer, view, notices, live is not None),
    )


def _values(
    writer: "_EntryWriter", view: TraceView, notices: Sequence[str], is_live: bool
) -> dict[str, Any]:
    """Return what the templates of the page and of its updates both read."""
    return {
        "header": view.header,
        "plan": view.header.plan if is_live else (),
        "notices": notices,
        "prose": writer.prose,
        "duration": duration,
    }


def render_update(earlier: TraceView, view: TraceView, notices: Sequence[str] = ()) -> str:
    """Return what has changed in the page of a run in progress: HTML with its status, and with
    those steps and notes that are new or differ.

    earlier: what the page shows; its entries are in the same order.
    """
    writer = _EntryWriter()
    shown = dict(writer.anchors(earlier.entries))
    shown_failures = writer.failing(earlier.entries)
    links = dict(pairwise(shown_failures))
    new_links = dict(pairwise(writer.failing(view.entries)))

    def is_new(anchor: str, entry: Entry) -> bool:
        return shown.get(anchor) != entry or links.get(anchor) != new_links.get(anchor)

    steps = writer.steps(view.entries, is_new)
    return render("trace/live.html.j2", steps, **_values(writer, view, notices, is_live=True))


@dataclass(frozen=True)
class DiffLine:
    """One line of a diff as HTML."""

    text: Markup
    css_class: str | None


@dataclass(frozen=True)
class HtmlBlock:
    """A text in a fixed-width font, as HTML.

    last: the last line, shown while the text is folded.
    diff: the lines of a diff; empty for any other text.
    open: True if a folded text is unfolded from the start.
    is_action: True for an action, False for an output.
    """

    label: str
    last: str | None
    text: Markup
    diff: tuple[DiffLine, ...]
    folded: bool
    open: bool
    is_action: bool


@dataclass(frozen=True)
class HtmlEntry:
    """A step or a note with its id in the page, and what is shown below its title.

    number: that of a step; None for a note.
    group: what the filter of the page finds a step by: `edit`, `command` or `other`.
    """

    anchor: str
    entry: Entry
    number: int | None
    blocks: tuple[HtmlBlock, ...]
    group: Literal["edit", "command", "other"] = "other"
    nested: "tuple[HtmlEntry, ...]" = ()


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
class TraceSteps:
    """The phases with their entries.

    failures: anchors of the steps that failed, and of errors. next_failures: the one after each.
    """

    phases: tuple[HtmlPhase, ...]
    failures: Sequence[str]
    next_failures: dict[str, str]


class _EntryWriter:
    """Prepares the texts of one page."""

    @staticmethod
    def prose(text: str) -> Markup:
        return render_prose(truncate_middle(text, MAX_TEXT_LENGTH))

    @staticmethod
    def anchors(entries: Iterable[Entry]) -> Iterator[tuple[str, Entry]]:
        """Yield each entry with its anchor."""
        seen: set[str] = set()
        for entry in entries:
            anchor = _anchor(entry, "step")
            # A damaged log may have the same id twice.
            if anchor in seen:
                anchor += f"-{len(seen)}"
            seen.add(anchor)
            yield anchor, entry

    def failing(self, entries: Iterable[Entry]) -> list[str]:
        """Return the anchors of what failed outside of delegates."""
        return [anchor for anchor, entry in self.anchors(entries) if _has_failed(entry)]

    def steps(
        self,
        entries: Sequence[Entry],
        is_wanted: Callable[[str, Entry], bool] = lambda *_: True,
    ) -> TraceSteps:
        """Return the phases with those entries that are wanted; without phases that have none."""
        anchors = (anchor for anchor, _ in self.anchors(entries))
        phases = []
        for number, phase in enumerate(split_phases(entries), 1):
            named = list(zip(islice(anchors, len(phase.entries)), phase.entries, strict=True))
            wanted = [
                self.entry(*anchor_and_entry)
                for anchor_and_entry in named
                if is_wanted(*anchor_and_entry)
            ]
            if wanted:
                facts = _phase_facts(phase.entries)
                phases.append(HtmlPhase(f"phase-{number}", phase.name, facts, tuple(wanted)))
        failures = self.failing(entries)
        return TraceSteps(tuple(phases), failures, dict(pairwise(failures)))

    def entry(self, anchor: str, entry: Entry) -> HtmlEntry:
        """Return one entry as the template shows it. The anchors of what is nested in it begin with
        its own."""
        if isinstance(entry, TraceNote):
            detail = (TraceBlock(entry.detail),) if entry.detail else ()
            label = detail_label(entry)
            blocks = tuple(self._block(block, label, is_folded=True) for block in detail)
            return HtmlEntry(anchor, entry, None, blocks)
        failed = entry.mood == "bad"
        action = (self._block(entry.action, "Action", is_action=True),) if entry.action else ()
        outputs = (self._block(block, "Output", has_failed=failed) for block in entry.outputs)
        nested = tuple(self.entry(_anchor(inner, anchor), inner) for inner in entry.nested)
        return HtmlEntry(anchor, entry, entry.number, (*action, *outputs), _group(entry), nested)

    def _block(
        self,
        block: TraceBlock,
        label: str,
        is_folded: bool = False,
        is_action: bool = False,
        has_failed: bool = False,
    ) -> HtmlBlock:
        """Return a block of text as the template shows it."""
        text = truncate_middle(block.text, MAX_TEXT_LENGTH)
        lines = block.text.count("\n") + 1
        is_diff = block.language == "diff" and lines <= _MAX_COLOURED_LINES
        is_long = lines > MAX_UNFOLDED_LINES or len(text) > 8_000
        last_line = text[-2_000:].rstrip().rpartition("\n")[2]
        return HtmlBlock(
            label=f"{label}, {plural(lines, 'line')}",
            last=None if is_action or is_folded else one_line(last_line),
            text=escape(text),
            diff=_diff_lines(text) if is_diff else (),
            folded=is_folded or (is_long and not is_diff),
            # Readers mostly come for the reason of a failure.
            open=has_failed and lines <= MAX_OPEN_LINES,
            is_action=is_action,
        )

    def changed_files(self, diff: str | None) -> tuple[HtmlFileDiff, ...]:
        """Return the files of a change. The diff of a long one is folded."""
        files = []
        for file in split_diff(diff or ""):
            text = "\n".join(file.lines)
            shown = _diff_lines(text) if file.has_hunks else ()
            block = HtmlBlock("", None, escape(text), shown, False, False, False)
            is_open = len(file.lines) <= _MAX_OPEN_DIFF_LINES
            files.append(HtmlFileDiff(file.path, file.size, is_open, block))
        return tuple(files)


def _anchor(entry: Entry, parent_anchor: str) -> str:
    """Return the id of an entry in the page. parent_anchor: what it begins with."""
    if isinstance(entry, TraceNote):
        return f"{parent_anchor}-event-{entry.event_id}".removeprefix("step-")
    return f"{parent_anchor}-{entry.number}"


def _phase_facts(entries: Sequence[Entry]) -> str:
    steps = [entry for entry in entries if isinstance(entry, TraceStep)]
    failed = sum(map(_has_failed, entries))
    facts = [plural(len(steps), "step") if steps else plural(len(entries), "entry", "entries")]
    facts += [f"{failed} failed"] if failed else []
    return ", ".join(facts)


def _has_failed(entry: Entry) -> bool:
    return entry.mood == "bad" if isinstance(entry, TraceStep) else entry.category == "error"


def _group(step: TraceStep) -> Literal["edit", "command", "other"]:
    if step.kind in {"file_edit", "file_write"}:
        return "edit"
    return "command" if step.kind in {"cmd_run", "ipython_run_cell"} else "other"


_LINE_CLASSES = (
    ("+++", "file"),
    ("---", "file"),
    ("@@", "hunk"),
    ("diff ", "file"),
    ("+", "add"),
    ("-", "del"),
)


def _diff_lines(text: str) -> tuple[DiffLine, ...]:
    return tuple(
        DiffLine(
            escape(line), next((c for start, c in _LINE_CLASSES if line.startswith(start)), None)
        )
        for line in text.split("\n")
    )


# Characters that a terminal or GitHub's runner might interpret. They can only occur in a JSON
# string, where an escape sequence means the same, so nothing is lost.
_CONTROL_CHARACTERS = re.compile(rf"[{INVISIBLE}]|(?<=##)\[")


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
    units = match[0].encode("utf-16-be", "surrogatepass").hex("-", 2).split("-")
    return "".join(f"\\u{unit}" for unit in units)
