"""The display of a run by a command: its options, and the choice between a live view, plain lines,
JSON lines and nothing.
"""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import click
from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from resolver.config.templates import render
from resolver.errors import UsageError
from resolver.events.base import ActionBase
from resolver.events.lifecycle import RunStarted, roots_of
from resolver.events.log import Event
from resolver.events.state import State
from resolver.events.stream import Clock, Subscriber, utc_now
from resolver.runtime.image_pull import pull_logger
from resolver.trace import html
from resolver.trace.plain import for_terminal, one_line
from resolver.trace.steps import step_of
from resolver.trace.text import TerminalProgress

F = TypeVar("F", bound=Callable[..., Any])


def display_options(function: F) -> F:
    """Add the options that decide how a run is shown. `take_display` reads them."""
    for flag, text in (
        ("--json", "Print each event as a line of JSON to stdout; all else goes to stderr."),
        ("--quiet", "Show only the result."),
        ("--verbose", "Show the model's reasoning too, and the end of each output."),
    ):
        function = click.option(flag, is_flag=True, help=text)(function)
    return function


class LiveView:
    """Subscriber of the event stream that shows a run on a terminal: a line for each event, and
    below them a few lines that are redrawn, with what is being done and what is left of the limits.

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
        redirects: Iterable[str] = (),
        now: Clock = utc_now,
    ) -> None:
        self._console = console
        self._progress = TerminalProgress(console, verbose=verbose)
        self._now = now
        self._state = State.fold(earlier)
        self._roots = roots_of(self._state.events)
        self._activity: str | None = None
        self._event_at = now()
        self._spinner = Spinner("dots", style="cyan")
        self._live = Live(
            console=console,
            get_renderable=self._render,
            refresh_per_second=8,
            transient=True,
            redirect_stdout="stdout" in redirects,
            redirect_stderr="stderr" in redirects,
            vertical_overflow="crop",
        )

    @contextmanager
    def during(self) -> Iterator[None]:
        """Redraw the view while the context is open. A terminal that is gone ends no run."""
        with suppress(OSError):
            self._live.start(refresh=True)
        try:
            yield
        finally:
            with suppress(OSError):
                self._live.stop()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        if isinstance(event, RunStarted):
            self._state, self._roots = State(), ()
        self._state.apply(event)
        self._roots += roots_of((event,))
        self._activity, self._event_at = None, self._now()
        self._progress(event)

    def show_activity(self, text: str) -> None:
        """Show what is being done, until the next event."""
        self._activity = for_terminal(text)

    def _render(self) -> Group:
        state, now = self._state, self._now()
        action = next(reversed(list(state.pending.values())), None)
        step = step_of(action, 0, None, self._roots) if isinstance(action, ActionBase) else None
        left = max(0.0, state.limits.max_time - state.elapsed(now))
        text = render(
            "run/live_view.txt.j2",
            title=for_terminal(one_line(step.plain_title)) if step else None,
            activity=self._activity,
            elapsed=timedelta(seconds=int((now - self._event_at).total_seconds())),
            state=state.run_state,
            iterations=state.iterations,
            limits=state.limits,
            cost=state.priced,
            left=timedelta(seconds=int(left)),
        )
        status, *limits = text.strip().splitlines()
        lines = [Text(status, style="bold")]
        lines += [Text(f"  {line}", style="dim") for line in limits]
        for line in lines:
            line.truncate(self._console.width - 3, overflow="ellipsis")
        self._spinner.update(text=lines[0])
        return Group(self._spinner, *lines[1:])


@dataclass(frozen=True)
class RunDisplay:
    """The options of the display of a run.

    console: for the result and other text.
    progress: subscriber of the run's events; None if none are shown.
    """

    console: Console
    progress: Subscriber | None
    is_quiet: bool = False
    is_json: bool = False

    @contextmanager
    def during(self) -> Iterator[None]:
        """Show the run while the context is open. Nothing may be read from the terminal in it."""
        if isinstance(self.progress, LiveView):
            with _PullHandler(self.progress.show_activity).during(), self.progress.during():
                yield
        elif self.progress is not None and not self.is_json:
            with _PullHandler(self._print).during():
                yield
        else:
            yield

    def _print(self, text: str) -> None:
        self.console.print(Text(for_terminal(text)), soft_wrap=True)


class _PullHandler(logging.Handler):
    """Passes what is logged about pulls of images to a display."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        """Show the record's message."""
        self._show(record.getMessage())

    @contextmanager
    def during(self) -> Iterator[None]:
        """Receive messages while the context is open."""
        level = pull_logger.level
        pull_logger.addHandler(self)
        pull_logger.setLevel(self.level)
        try:
            yield
        finally:
            pull_logger.setLevel(level)
            pull_logger.removeHandler(self)


def take_display(
    options: dict[str, Any],
    environment: Mapping[str, str],
    *,
    uses_stdout: bool = False,
    read_earlier: Callable[[], Iterable[Event]] = tuple,
) -> RunDisplay:
    """Remove the display options from `options`, and return the display that they ask for.

    uses_stdout: True if the run is shown on stdout instead of stderr.
    read_earlier: returns the events of a resumed log. Only the live view calls it.

    Raises UsageError if the options contradict each other.
    """
    verbose, quiet, json = (options.pop(name) for name in ("verbose", "quiet", "json"))
    if verbose + quiet + json > 1:
        raise UsageError("--verbose, --quiet and --json exclude each other", "use one of them")
    console = Console(stderr=json or not uses_stdout)
    if json:
        return RunDisplay(console, _print_json, is_json=True)
    if quiet:
        return RunDisplay(console, None, is_quiet=True)
    if not is_live_terminal(console, environment):
        return RunDisplay(console, TerminalProgress(console, verbose=verbose))
    streams = {"stdout": sys.stdout, "stderr": sys.stderr}
    redirects = [name for name, stream in streams.items() if stream.isatty()]
    view = LiveView(console, verbose=verbose, earlier=read_earlier(), redirects=redirects)
    return RunDisplay(console, view)


def is_live_terminal(console: Console, environment: Mapping[str, str]) -> bool:
    """Return True if lines can be redrawn in place on the console.

    The logs of CI systems may come from a pseudoterminal, but keep every line that is drawn.
    """
    return (
        console.file.isatty()  # rich takes a pipe for a terminal if FORCE_COLOR is set
        and not console.is_dumb_terminal
        and console.encoding.startswith("utf")
        and environment.get("CI", "").lower() in ("", "0", "false")
    )


def _print_json(event: Event) -> None:
    click.echo(html.json_line(event))
