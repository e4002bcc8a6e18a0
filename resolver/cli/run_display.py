"""The display of a run by a command: its options, and the choice between a live view, plain lines,
JSON lines and nothing.
"""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.text import Text

from resolver.cli.live_view import LiveView
from resolver.cli.options import GroupedOption
from resolver.errors import UsageError
from resolver.events.log import Event
from resolver.events.stream import Subscriber
from resolver.runtime.image_pull import pull_logger
from resolver.trace import html
from resolver.trace.plain import for_terminal
from resolver.trace.text import TerminalProgress

F = TypeVar("F", bound=Callable[..., Any])

_GROUP = "Display"


def display_options(function: F) -> F:
    """Add the options that decide how a run is shown. `take_display` reads them."""
    for flag, text in (
        ("--json", "Print each event as a line of JSON to stdout; all else goes to stderr."),
        ("--quiet", "Show only the result."),
        ("--verbose", "Show the model's reasoning too, and the end of each output."),
    ):
        function = click.option(flag, is_flag=True, cls=GroupedOption, group=_GROUP, help=text)(
            function
        )
    return function


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
            with _PullHandler(self._print, logging.INFO).during():
                yield
        else:
            yield

    def _print(self, text: str) -> None:
        self.console.print(Text(for_terminal(text)), soft_wrap=True)


class _PullHandler(logging.Handler):
    """Passes what is logged about pulls of images to a display.

    level: DEBUG for all progress, INFO for the start of each pull.
    """

    def __init__(self, show: Callable[[str], None], level: int = logging.DEBUG) -> None:
        super().__init__(level)
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
