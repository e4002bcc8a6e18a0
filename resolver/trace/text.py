"""Renders a trace as plain text for a terminal or a job's log, whole or one line per event.

Whatever the log contains, the text controls no terminal and holds no commands of GitHub's runner.
"""

from collections.abc import Iterable, Sequence

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, Source
from resolver.events.log import Event
from resolver.models.run import RunState
from resolver.trace.notes import note_of
from resolver.trace.plain import duration, for_terminal, money, one_line, plural, truncate_text
from resolver.trace.steps import build_view, inner_event, is_step, step_of
from resolver.trace.view import Entry, TraceBlock, TraceHeader, TraceStep

LONGEST = 20_000
"""Maximum number of characters shown of one text; the markdown trace and the log have the rest."""

_SILENT = (life.RunStarted, life.SystemPrompt, life.ModelReplied, o.Null, a.Think)
_MARKS = {"good": "ok: ", "bad": "failed: ", "plain": ""}


def render_text(events: Iterable[Event]) -> str:
    """Return the whole trace as plain lines."""
    view = build_view(events)
    parts = [_header(view.header), *(_entry(entry) for entry in view.entries)]
    return for_terminal("\n\n".join(parts)) + "\n"


def live_line(event: Event, roots: Sequence[str] = ()) -> str | None:
    """Return one plain line for an event during a run; None if there is nothing to show.

    The line of an action says what is done; that of its observation says only how it ended.

    roots: paths of the repository in the sandboxes so far.
    """
    if isinstance(event, life.DelegateEvent):
        line = live_line(inner_event(event), roots)
        return f"    {line}" if line else None
    if isinstance(event, _SILENT) or _goes_without_saying(event):
        return None
    if is_step(event):
        step = step_of(event, 0, None, roots)
        words = one_line(step.words)
        said = f": {words}" if words else ""
        return for_terminal(f"> {_title(step)}{said}")
    if event.cause is not None and not isinstance(event, (ActionBase, o.AgentStateChanged)):
        return _result_line(event)
    note = note_of(event)
    return for_terminal(f"- {note.sort}: {note.text}") if note else None


def _goes_without_saying(event: Event) -> bool:
    """Return True for the prompt and for the state "running", which a person who watches knows."""
    if isinstance(event, a.Message):
        return event.source is Source.USER and event.cause is None
    return isinstance(event, o.AgentStateChanged) and event.state is RunState.RUNNING


def _result_line(answer: Event) -> str | None:
    step = step_of(_asked_by(answer), 0, answer)
    told = [f"{_MARKS[step.mood]}{step.badge}"] if step.badge else []
    measured = float(getattr(answer, "seconds", 0.0))
    told += [duration(measured)] if measured else []
    if step.mood == "bad" and step.outputs:
        told.append(one_line(step.outputs[0].text[-2_000:].rstrip().rpartition("\n")[2]))
    return for_terminal(f"  {', '.join(told)}") if told else None


def _asked_by(answer: Event) -> ActionBase:
    return ActionBase(id=answer.cause or 0, timestamp=answer.timestamp)


def _header(header: TraceHeader) -> str:
    where = f"{header.repository}#{header.number}" if header.number else header.repository
    tokens = f"{header.tokens.input:,} in, {header.tokens.output:,} out"
    facts = [
        ("Task", f"{header.title} ({where})" if header.title else ""),
        ("Outcome", f"{header.state}: {header.reason}" if header.reason else header.state),
        ("Model", header.model),
        ("Cost", f"{header.price}; tokens {tokens}"),
        *(("Of it", text) for text in header.parts),
        ("Work", f"{plural(header.iterations, 'iteration')} in {duration(header.seconds)}"),
        *(("Left out", text) for text in header.left_out),
    ]
    return "\n".join(f"{name + ':':<10}{value}" for name, value in facts if value)


def _entry(entry: Entry) -> str:
    """Return an entry as indented lines."""
    if not isinstance(entry, TraceStep):
        return f"- {entry.sort}: {entry.text}"
    facts = [f"{_MARKS[entry.mood]}{entry.badge}"] if entry.badge else []
    facts += [duration(entry.seconds)] if entry.seconds is not None else []
    facts += [money(entry.cost)] if entry.cost is not None else []
    parts = [f"{entry.number}. {_title(entry)}" + (f"  ({', '.join(facts)})" if facts else "")]
    parts += [_indented(text, "   ") for text in (entry.thought, entry.words) if text]
    blocks: list[TraceBlock] = [entry.action] if entry.action else []
    parts += [_indented(block.text, "   | ") for block in blocks]
    parts += ["\n".join(f"   {line}" for line in _entry(e).split("\n")) for e in entry.nested]
    parts += [_indented(block.text, "   | ") for block in entry.outputs]
    return "\n".join(parts)


def _title(step: TraceStep) -> str:
    return f"{step.verb} {step.subject}".rstrip()


def _indented(text: str, margin: str) -> str:
    return "\n".join(margin + line for line in truncate_text(text, LONGEST).split("\n"))
