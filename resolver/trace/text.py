"""Renders a trace as plain text for a terminal or a job's log, whole or one line per event.

Whatever the log contains, the text controls no terminal and holds no commands of GitHub's runner. A
run in progress is printed to a rich console by a stream subscriber.
"""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, EventBase, Source
from resolver.events.lifecycle import RunStarted, roots_of
from resolver.events.log import Event, parse_logged_event
from resolver.models.run import RunState
from resolver.models.truncate import truncate_middle
from resolver.trace.plain import duration, for_terminal, money, one_line, plural
from resolver.trace.steps import build_view, is_step, step_of
from resolver.trace.view import TraceStep, note_of

MAX_TEXT_LENGTH = 20_000
"""Maximum number of characters shown of one text; the markdown trace and the log have the rest."""

MAX_TAIL_LINES = 20
"""Maximum number of lines of a step's output that are shown during a verbose run."""

_HIDDEN_EVENTS = (life.RunStarted, life.SystemPrompt, life.ModelReplied, o.Null, a.Think)
_MARKS = {"good": "ok: ", "bad": "failed: ", "plain": ""}


def render_text(events: Iterable[Event]) -> str:
    """Return the whole trace as plain lines."""
    view = build_view(events)
    text = render(
        "trace/trace.txt.j2",
        header=view.header,
        entries=view.entries,
        marks=_MARKS,
        duration=duration,
        money=money,
        plural=plural,
        cut=lambda text: truncate_middle(text, MAX_TEXT_LENGTH),
    )
    return for_terminal(text).rstrip("\n") + "\n"


def live_line(event: Event, roots: Sequence[str] = ()) -> str | None:
    """Return one plain line for an event during a run; None if there is nothing to show.

    The line of an action says what is done; that of its observation says only how it ended.

    roots: paths of the repository in the sandboxes so far.
    """
    if isinstance(event, life.DelegateEvent):
        line = live_line(parse_logged_event(event.event), roots)
        return f"    {line}" if line else None
    if not has_live_line(event):
        return None
    if is_step(event):
        step = step_of(event, 0, None, roots)
        prose = one_line(step.prose or "")
        suffix = f": {prose}" if prose else ""
        return for_terminal(f"> {step.plain_title}{suffix}")
    if event.cause is not None and not isinstance(event, (ActionBase, o.AgentStateChanged)):
        return _result_line(event)
    note = note_of(event)
    return for_terminal(f"- {note.category}: {note.text}") if note else None


def has_live_line(event: EventBase) -> bool:
    """Return False for events that are never shown during a run."""
    return not (isinstance(event, _HIDDEN_EVENTS) or _is_obvious(event))


def output_tail(step: TraceStep) -> list[str]:
    """Return the last lines of the step's outputs, without blank lines."""
    text = for_terminal("\n".join(block.text[-10_000:] for block in step.outputs))
    lines = [line.rstrip() for line in text.expandtabs(4).split("\n")]
    return [line for line in lines if line][-MAX_TAIL_LINES:]


def _is_obvious(event: EventBase) -> bool:
    """Return True for the prompt and for the state "running", which a person who watches knows."""
    if isinstance(event, a.Message):
        return event.source is Source.USER and event.cause is None
    return isinstance(event, o.AgentStateChanged) and event.state is RunState.RUNNING


def _result_line(observation: Event) -> str | None:
    step = step_of(_action_stub(observation), 0, observation)
    parts = [f"{_MARKS[step.mood]}{step.badge}"] if step.badge else []
    seconds = float(getattr(observation, "seconds", 0.0))
    parts += [duration(seconds)] if seconds else []
    if step.mood == "bad" and step.outputs:
        parts.append(one_line(step.outputs[0].text[-2_000:].rstrip().rpartition("\n")[2]))
    return for_terminal(f"  {', '.join(parts)}") if parts else None


def _action_stub(observation: Event) -> ActionBase:
    return ActionBase(id=observation.cause or 0, timestamp=observation.timestamp)


class TerminalProgress:
    """Prints each step when it begins and how it ended: styled on a terminal, else plain lines.

    console: where to print. Text from outside is never interpreted as rich markup, and is printed
        without anything that controls a terminal or GitHub's runner.
    verbose: show the model's reasoning too, and the end of each output.
    """

    def __init__(self, console: Console, *, verbose: bool = False) -> None:
        self._console = console
        self._verbose = verbose
        self._steps = 0
        self._roots: tuple[str, ...] = ()

    def __call__(self, event: Event) -> None:
        """Print the progress line of `event`, if it has one."""
        if isinstance(event, RunStarted):
            self._steps = 0  # of a sweep, each run has steps of its own
        self._roots += roots_of((event,))
        line = live_line(event, self._roots)
        if line is None:
            return
        if isinstance(event, ActionBase) and is_step(event):
            self._steps += 1
            self._print_thought(event)
            line = line.replace(">", f"{self._steps}.", 1)
        if self._console.is_terminal:
            self._print(line, self._style(event, line))
        else:
            self._print(line, None)
        if self._verbose and event.cause is not None and not isinstance(event, ActionBase):
            for output in output_tail(step_of(_action_stub(event), 0, event)):
                self._print(f"  | {output}", "dim")

    def _print_thought(self, action: ActionBase) -> None:
        thought = one_line(step_of(action, self._steps, None).thought or "", 200)
        if thought and (self._verbose or self._console.is_terminal):
            self._print(for_terminal(thought), "italic dim")

    def _style(self, event: Event, line: str) -> str:
        if is_step(event):
            return "bold"
        if line.lstrip().startswith(("failed", "- error", "- warning")):
            return "red"
        return "green" if line.lstrip().startswith("ok") else "dim"

    def _print(self, line: str, style: str | None) -> None:
        # Replace characters that the output can't encode, instead of raising an exception.
        encoding = self._console.encoding
        printable = line.encode(encoding, "replace").decode(encoding)
        self._console.print(Text(printable, style=style or ""), soft_wrap=True)
