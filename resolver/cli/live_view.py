"""The live view of a run on a terminal: one line per finished step, and below them a few lines that
are redrawn in place with the phase, the limits and what is being done.

If the view can't be drawn, the run continues with plain lines.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from resolver.config.templates import render
from resolver.events import lifecycle as life
from resolver.events.base import ActionBase
from resolver.events.lifecycle import ROOT_STAGE, roots_of
from resolver.events.log import Event
from resolver.events.observations import AgentStateChanged
from resolver.events.state import State
from resolver.events.stream import Clock, utc_now
from resolver.models.run import ACTIVE_STATES, RunState
from resolver.runtime.base import NOT_SEPARATED
from resolver.trace.plain import duration, for_terminal, one_line
from resolver.trace.steps import inner_event, is_step, step_of
from resolver.trace.text import (
    TerminalProgress,
    has_live_line,
    last_lines,
    live_line,
    output_tail,
)
from resolver.trace.view import Mood, TraceStep

logger = logging.getLogger("resolver.cli.live_view")

REFRESH_SECONDS = 0.125
JOIN_SECONDS = 1.0
"""Seconds that the end of the run waits for a drawing that is under way. A terminal that does not
read, as after Ctrl-S, blocks it."""

NARROW_COLUMNS = 60
"""Width below which the limits are abbreviated."""

MAX_LIVE_OUTPUT_LINES = 3
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

Phase = Literal[
    "prepare", "sandbox", "checkout", "setup", "rebuild", "work", "export", "verify", "publish"
]

_PHASE_AFTER_STAGE: dict[str, Phase] = {
    "sandbox": "checkout",
    ROOT_STAGE: "setup",
    "change": "verify",
}
CHECK_TITLES = {
    "base": "Check without the change",
    "base_with_tests": "Check without the change, with its tests",
    "head": "Check with the change",
    "head_with_base_tests": "Check with the change, with the tests from before",
}
_MARKS = {"good": ("✓", "green"), "bad": ("✗", "red"), "plain": ("·", "dim")}


def clock_time(seconds: float) -> str:
    """Format seconds as `1:05` or `1:02:05`, for a display that counts them."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def phase_after(event: Event, phase: Phase) -> Phase:
    """Return the phase that a run is in after `event`, given the phase before it."""
    match event:
        case life.RunStarted() | life.Resumed():
            return "sandbox"
        case life.StageCompleted(stage=stage) if stage in _PHASE_AFTER_STAGE:
            return _PHASE_AFTER_STAGE[stage]
        case life.ModelReplied() | life.SystemPrompt():
            return "work"
        case AgentStateChanged(state=RunState.RUNNING):
            return "work" if phase == "verify" else phase
        case AgentStateChanged(state=state) if state not in ACTIVE_STATES:
            return "export"
        case life.VerificationCompleted(sent_to_agent=sent):
            return "work" if sent else "publish"
    return phase


@dataclass(frozen=True)
class _RunningStep:
    """A step whose result is not known yet. `number` is 0 for a step of a delegate."""

    action: ActionBase
    number: int
    depth: int
    started: float


class LiveView:
    """Subscriber of the event stream that shows a run on a terminal.

    console: a terminal that can move its cursor and shows Unicode.
    earlier: events of a resumed log, which count for its limits.
    redirects: which of stdout and stderr are shown on the same terminal; what is written to them
        appears above the view.

    Use `during` as a context manager around the run. Without it, nothing is redrawn.
    """

    def __init__(
        self,
        console: Console,
        *,
        verbose: bool = False,
        earlier: Iterable[Event] = (),
        redirects: Sequence[str] = (),
        now: Clock = utc_now,
    ) -> None:
        self._console = console
        self._verbose = verbose
        self._now = now
        self._redirects = redirects
        self._live: Live | None = None
        self._is_broken = False
        self._is_new_run = False
        self._plain = TerminalProgress(console, verbose=verbose)
        self._phase: Phase = "prepare"
        self._phase_started = self._event_at = self._time()
        self._steps = 0
        self._running: dict[tuple[int, ...], _RunningStep] = {}
        self._output: list[str] = []
        self._activity_text = ""
        self._restart(earlier)

    @contextmanager
    def during(self) -> Iterator[None]:
        """Draw the view until the context is left, then erase it. The steps' lines remain."""
        ended = threading.Event()
        thread = threading.Thread(target=self._redraw, args=(ended,), name="live-view", daemon=True)
        self._draw(self._start)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(JOIN_SECONDS)
            for running in list(self._running.values()):
                self._draw(partial(self._print_step, running, None))
            self._draw(self._stop)

    def __call__(self, event: Event) -> None:
        """Show `event`: as a line above the view, in the view, or not at all."""
        if self._is_broken:
            self._plain(event)
        else:
            self._draw(partial(self._show, event))

    def show_activity(self, text: str) -> None:
        """Show what is being done, until the next event."""
        self._activity_text = for_terminal(one_line(text, 200))

    def show_output(self, text: str) -> None:
        """Show the last lines of the running command's output, until it ends.

        The view is drawn later, in another thread, so that a terminal can't hold up the caller.
        """
        if self._running:
            self._output = last_lines(text, MAX_LIVE_OUTPUT_LINES)

    def _time(self) -> float:
        return self._now().timestamp()

    def _restart(self, events: Iterable[Event]) -> None:
        events = list(events)
        self._state = State.fold(events)
        self._roots = roots_of(events)
        self._steps = sum(is_step(event) and has_live_line(event) for event in events)

    def _start(self) -> None:
        self._live = Live(
            console=self._console,
            get_renderable=self._renderable,
            auto_refresh=False,
            transient=True,
            redirect_stdout="stdout" in self._redirects,
            redirect_stderr="stderr" in self._redirects,
            vertical_overflow="crop",
        )
        self._live.start(refresh=True)

    def _refresh(self) -> None:
        if self._live is not None:
            self._live.refresh()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()

    def _redraw(self, ended: threading.Event) -> None:
        while not ended.wait(REFRESH_SECONDS):
            self._draw(self._refresh)

    def _draw(self, draw: Callable[[], object]) -> None:
        """Call `draw`, or end the view if that fails: no error of a terminal may end a run."""
        if self._is_broken:
            return
        try:
            draw()
        except Exception as error:  # noqa: BLE001 - logged; the run continues
            self._is_broken = True
            with suppress(Exception):
                self._stop()
            logger.warning("the live view ended, plain lines follow: %r", error)

    def _show(self, event: Event) -> None:
        if isinstance(event, life.RunStarted):
            self._restart(())
            self._output = []
        self._activity_text = ""
        self._state.apply(event)
        self._roots += roots_of((event,))
        path: tuple[int, ...] = ()
        depth = 0
        self._event_at = self._time()
        phase = phase_after(event, self._phase)
        if isinstance(event, life.RunStarted | life.Resumed):
            self._is_new_run = isinstance(event, life.RunStarted)
        if phase == "setup" and not self._is_new_run:
            phase = "rebuild"
        if phase != self._phase:
            self._phase, self._phase_started = phase, self._event_at
        while isinstance(event, life.DelegateEvent):
            path, depth, event = (*path, event.delegate), depth + 1, inner_event(event)
        running = self._running.pop((*path, event.cause), None) if event.cause is not None else None
        if running is not None and not isinstance(event, AgentStateChanged):
            self._print_step(running, event)
        elif is_step(event) and has_live_line(event):
            self._begin_step(event, path, depth)
        elif isinstance(event, life.CheckExecuted):
            self._print_check(event)
        elif line := live_line(event, self._roots):
            self._print_note(line, depth, whole=_names_missing_separation(event))
        self._refresh()

    def _begin_step(self, action: ActionBase, path: tuple[int, ...], depth: int) -> None:
        if not depth:
            self._steps += 1
        self._output = []
        running = _RunningStep(action, 0 if depth else self._steps, depth, self._event_at)
        if self._verbose and (thought := step_of(action, 0, None).thought):
            self._console.print(Text(for_terminal(thought), style="italic dim"))
        if action.observation:
            self._running[(*path, action.id)] = running
        else:
            self._print_step(running, None)

    def _print_step(self, running: _RunningStep, observation: Event | None) -> None:
        step = step_of(running.action, running.number, observation, self._roots)
        self._output = output_tail(step, MAX_LIVE_OUTPUT_LINES)
        self._console.print(self._step_line(step, running), no_wrap=True, crop=True)
        for line in output_tail(step) if self._verbose else ():
            self._console.print(Text(f"      │ {line}", style="dim"), soft_wrap=True)

    def _step_line(self, step: TraceStep, running: _RunningStep) -> Text:
        """Return the step as one line of at most the terminal's width, its result at the end."""
        facts = [step.badge] if step.badge and step.mood != "good" else []
        seconds = self._event_at - running.started if step.seconds is None else step.seconds
        facts += [duration(seconds)] if seconds >= 1 else []
        number = f"{step.number:>3}" if step.number else "   " + "  " * running.depth
        return _fitted_line(self._console.width, step.mood, f"{number} {_title(step)}", facts)

    def _print_check(self, event: life.CheckExecuted) -> None:
        """Print which check was executed where, and its result at the end of the line."""
        execution = event.execution
        failed = execution.count("failed", "error")
        passed = execution.count("passed")
        facts = [f"{passed} passed"] if passed or (execution.cases and not failed) else []
        facts += [f"{failed} failed"] if failed else []
        if not execution.cases:
            code = execution.exit_code
            facts += ["did not end in time" if code is None else f"exit code {code}"]
        facts += ["from an earlier run"] if event.is_cached else [duration(execution.seconds)]
        mood: Mood = "good" if execution.exit_code == 0 else "bad"
        if event.at != "head" and mood == "bad":
            mood = "plain"  # without the change, a test that shows the problem has to fail
        title = for_terminal(f"{CHECK_TITLES[event.at]}: {one_line(event.command)}")
        line = _fitted_line(self._console.width, mood, f"    {title}", facts)
        self._console.print(line, no_wrap=True, crop=True)

    def _print_note(self, line: str, depth: int, *, whole: bool) -> None:
        """Print a line about the run. whole: use more lines if it is too long for one."""
        text = line.strip().removeprefix("- ")
        for label in ("stage: ", "state: ", "check: "):
            if text.startswith(label):
                text = text.removeprefix(label)
                text = text[:1].upper() + text[1:]
        is_problem = text.startswith(("error", "warning", "failed"))
        note = Text("  " * depth + f"  {text}", style="red" if is_problem else "dim")
        if not (is_problem or whole or self._verbose):
            note.truncate(self._console.width, overflow="ellipsis")
        self._console.print(note, soft_wrap=True)

    def _renderable(self) -> Group:
        """Return the lines that are redrawn, each at most as wide as the terminal."""
        time, width = self._time(), self._console.width
        spinner = SPINNER[int(time / REFRESH_SECONDS) % len(SPINNER)]
        lines = [Text.assemble((spinner, "cyan"), " ", (self._status(time, width - 2), "bold"))]
        if self._phase == "work" or self._running:
            lines.append(Text(f"  {self._activity(time)}"))
            lines += [Text(f"  │ {line}", style="dim") for line in self._output]
        elif self._activity_text:
            lines.append(Text(f"  {self._activity_text}"))
        for line in lines:
            line.truncate(width - 1, overflow="ellipsis")
        return Group(*lines)

    def _status(self, time: float, width: int) -> str:
        """Return the segments of the status line that fit into `width` columns."""
        limits, elapsed = self._state.limits, self._state.elapsed(self._now())
        segments = render(
            "run/live_status.txt.j2",
            phase=self._phase,
            is_narrow=width < NARROW_COLUMNS,
            iterations=self._state.iterations,
            limits=limits,
            cost=self._state.priced,
            elapsed=clock_time(elapsed),
            left=clock_time(limits.max_time - elapsed),
            phase_elapsed=clock_time(time - self._phase_started),
        ).splitlines()
        status = segments[0]
        for segment in filter(None, segments[1:]):
            if len(status) + len(segment) + 3 <= width:
                status += f" · {segment}"
        return status

    def _activity(self, time: float) -> str:
        running = next(reversed(self._running.values()), None)
        step = step_of(running.action, running.number, None, self._roots) if running else None
        since = running.started if running else self._event_at
        elapsed = clock_time(time - since)
        # The time stays visible if a long command is truncated.
        title = (
            one_line(_title(step), max(10, self._console.width - len(elapsed) - 6)) if step else ""
        )
        return render("run/live_activity.txt.j2", title=title, elapsed=elapsed).strip()


def _names_missing_separation(event: Event) -> bool:
    """Return True if the event says what the sandbox shares with this machine."""
    return isinstance(event, life.StageCompleted) and NOT_SEPARATED in event.detail


def _title(step: TraceStep) -> str:
    prose = one_line(step.prose)
    title = f"{step.verb} {step.subject}".rstrip()
    return for_terminal(f"{title}: {prose}" if prose else title)


def _fitted_line(width: int, mood: Mood, title: str, facts: Sequence[str]) -> Text:
    """Return a mark, a title and facts as one line. The facts stay if the title is long."""
    mark, style = _MARKS[mood]
    result = Text(", ".join(facts), style="red" if mood == "bad" else "dim")
    line = Text.assemble((mark, style), f" {title}")
    columns = width - (result.cell_len + 2 if facts else 0)
    line.truncate(max(columns, width // 2), overflow="ellipsis", pad=bool(facts))
    line.append_text(Text("  ") + result if facts else Text())
    line.truncate(width, overflow="ellipsis")
    return line
