"""Folds the log of a GitHub Actions job into groups, one for each phase of a run.

The runner interprets a line that begins with `::` as a workflow command. Only the lines that open
and close a group are printed as such; TerminalProgress breaks up such sequences in text from
outside. Source:
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from resolver.events.log import Event
from resolver.events.observations import AgentStateChanged
from resolver.models.run import RunState
from resolver.trace.progress import TerminalProgress
from resolver.trace.steps import is_step

# Titles of the groups, in the order of the phases.
PREPARING = "Read the request, clone, start the sandbox"
WORKING = "The agent works"
PUBLISHING = "Check and publish"

_AT_WORK = frozenset({RunState.LOADING, RunState.RUNNING, RunState.PAUSED})
"""States in which the run has not ended."""


class Groups:
    """A subscriber of the event stream that prints progress in groups.

    Use `during` as a context manager around the run.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = TerminalProgress(console)
        self._open = ""

    @contextmanager
    def during(self) -> Iterator[None]:
        """Open the first group, and close the last one however the run ends."""
        self._turn_to(PREPARING)
        try:
            yield
        finally:
            self._turn_to("")

    def __call__(self, event: Event) -> None:
        """Print the progress line of `event` in the group that it belongs to."""
        if is_step(event):
            self._turn_to(WORKING)
        self._progress(event)
        if isinstance(event, AgentStateChanged) and event.state not in _AT_WORK:
            self._turn_to(PUBLISHING)

    def _turn_to(self, title: str) -> None:
        if title == self._open:
            return
        if self._open:
            self._console.print(Text("::endgroup::"))
        if title:
            self._console.print(Text(f"::group::{title}"))
        self._open = title
