"""Renders a trace as one self-contained HTML page: no requests, all text escaped.

The layout is in prompts/trace/page.html.j2, page.css.j2 and page.js.j2, which read the view of the
trace; this module names its entries, so that links and updates find them. Everything on the page
can be read without its script, which adds the search, the filter and the keys. `render_json` gives
programs the events as they are in the log.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

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
    TraceNote,
    TraceStep,
    TraceView,
)

MAX_UNFOLDED_LINES = 14
"""Outputs with more lines than this are folded."""

MAX_OPEN_LINES = 60
"""Outputs of failed steps are unfolded from the start if they have at most this many lines."""

MAX_TEXT_LENGTH = 200_000
"""Maximum number of characters shown of one text; the event log has the rest.

It keeps browsers fast.
"""

MAX_COLOURED_LINES = 3_000
"""Maximum number of lines of a diff that is coloured; a longer one is shown plain."""

MAX_OPEN_DIFF_LINES = 120
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
    return render(
        "trace/page.html.j2",
        policy=content_policy(live is not None),
        refresh=refresh,
        live=live,
        controls=controls,
        list_url=list_url,
        pull_request=pull_request,
        changes=split_diff(diff or ""),
        **_values(view, notices, is_live=live is not None),
    )


def render_update(earlier: TraceView, view: TraceView, notices: Sequence[str] = ()) -> str:
    """Return what has changed in the page of a run in progress: HTML with its status, and with
    those steps and notes that are new or differ.

    earlier: what the page shows; its entries are in the same order.
    """
    shown, links = dict(_anchored(earlier.entries)), _next_failures(earlier.entries)
    new_links = _next_failures(view.entries)

    def is_new(anchor: str, entry: Entry) -> bool:
        return shown.get(anchor) != entry or links.get(anchor) != new_links.get(anchor)

    values = _values(view, notices, is_live=True, is_wanted=is_new)
    return render("trace/live.html.j2", **values)


def _values(
    view: TraceView,
    notices: Sequence[str],
    is_live: bool,
    is_wanted: Callable[[str, Entry], bool] = lambda *_: True,
) -> dict[str, Any]:
    """Return what the templates of the page and of its updates both read.

    is_wanted: decides by its anchor and itself whether an entry is shown.
    """
    return {
        "header": view.header,
        "plan": view.header.plan if is_live else (),
        "notices": notices,
        "phases": _phases(view.entries, is_wanted),
        "failures": _failing(view.entries),
        "next_failures": _next_failures(view.entries),
        "anchor_of": _anchor,
        "prose": lambda text: render_prose(truncate_middle(text, MAX_TEXT_LENGTH)),
        "cut": lambda text: truncate_middle(text, MAX_TEXT_LENGTH),
        "duration": duration,
        "one_line": one_line,
        "plural": plural,
        "max_unfolded_lines": MAX_UNFOLDED_LINES,
        "max_open_lines": MAX_OPEN_LINES,
        "max_coloured_lines": MAX_COLOURED_LINES,
        "max_open_diff_lines": MAX_OPEN_DIFF_LINES,
    }


@dataclass(frozen=True)
class HtmlPhase:
    """A phase with its entries by their ids in the page. facts: numbers of steps and failures."""

    anchor: str
    name: str
    facts: str
    entries: dict[str, Entry]


def _phases(
    entries: Sequence[Entry], is_wanted: Callable[[str, Entry], bool]
) -> tuple[HtmlPhase, ...]:
    """Return the phases with those entries that are wanted; without phases that have none."""
    anchored = _anchored(entries)
    phases = []
    for number, phase in enumerate(split_phases(entries), 1):
        named = islice(anchored, len(phase.entries))
        wanted = {anchor: entry for anchor, entry in named if is_wanted(anchor, entry)}
        facts = _phase_facts(phase.entries)
        phases.append(HtmlPhase(f"phase-{number}", phase.name, facts, wanted))
    return tuple(phase for phase in phases if phase.entries)


def _anchored(entries: Iterable[Entry]) -> Iterator[tuple[str, Entry]]:
    """Yield each entry with its anchor."""
    seen: set[str] = set()
    for entry in entries:
        anchor = _anchor(entry, "step")
        # A damaged log may have the same id twice.
        if anchor in seen:
            anchor += f"-{len(seen)}"
        seen.add(anchor)
        yield anchor, entry


def _anchor(entry: Entry, parent_anchor: str) -> str:
    """Return the id of an entry in the page. parent_anchor: what it begins with."""
    if isinstance(entry, TraceNote):
        return f"{parent_anchor}-event-{entry.event_id}".removeprefix("step-")
    return f"{parent_anchor}-{entry.number}"


def _failing(entries: Iterable[Entry]) -> list[str]:
    """Return the anchors of the steps that failed, and of errors, outside of delegates."""
    return [anchor for anchor, entry in _anchored(entries) if _has_failed(entry)]


def _next_failures(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the anchor of the failure after each failure."""
    return dict(pairwise(_failing(entries)))


def _phase_facts(entries: Sequence[Entry]) -> str:
    steps = [entry for entry in entries if isinstance(entry, TraceStep)]
    failed = sum(map(_has_failed, entries))
    facts = [plural(len(steps), "step") if steps else plural(len(entries), "entry", "entries")]
    facts += [f"{failed} failed"] if failed else []
    return ", ".join(facts)


def _has_failed(entry: Entry) -> bool:
    return entry.mood == "bad" if isinstance(entry, TraceStep) else entry.category == "error"


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
