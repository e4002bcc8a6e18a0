"""Tests of the live view of a run, drawn on a terminal in memory."""

import io
import re
from datetime import timedelta

import pytest
from rich.console import Console

from resolver.cli.run_display import LiveView, RunDisplay, is_live_terminal
from resolver.events.base import EventBase
from resolver.runtime.image_pull import pull_logger
from tests.trace.sample import HOSTILE, START, hostile, realistic

SEQUENCE = re.compile("\x1b\\[[0-9;?]*[a-zA-Z]")
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class TerminalFile(io.StringIO):
    """A file that says that it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def make_console(file: io.StringIO, width: int = 80, terminal: str = "xterm") -> Console:
    return Console(file=file, width=width, height=24, _environ={"TERM": terminal})


def draw(events: list[EventBase]) -> str:
    """Return what is written to the terminal."""
    file = TerminalFile()
    ids = iter(range(len(events)))
    view = LiveView(
        make_console(file),
        verbose=True,
        now=lambda: START + timedelta(seconds=2.0 * len(events)),
    )
    with view.during():
        for event in events:
            view(event.model_copy(update={"id": next(ids)}))
    return file.getvalue()


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_text_controls_no_terminal(words: str) -> None:
    written = draw(hostile(words))
    assert not CONTROL.search(SEQUENCE.sub("", written).replace("\r", ""))
    colors_and_cursor = {"m", "A", "K", "h", "l"}
    assert {match[0][-1] for match in SEQUENCE.finditer(written)} <= colors_and_cursor


@pytest.mark.parametrize(
    ("file", "terminal", "environment", "expected"),
    [
        (TerminalFile(), "xterm", {}, True),
        (TerminalFile(), "dumb", {}, False),
        (TerminalFile(), "xterm", {"CI": "true"}, False),
        (TerminalFile(), "xterm", {"CI": "false"}, True),
        (io.StringIO(), "xterm", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_only_a_terminal_that_redraws_gets_a_live_view(
    file: io.StringIO, terminal: str, environment: dict[str, str], expected: bool
) -> None:
    assert is_live_terminal(make_console(file, 80, terminal), environment) is expected


def shown(view: LiveView) -> list[str]:
    """Return the lines that are redrawn, without the spinner."""
    status, *lines = view._render().renderables
    return [str(status.text), *map(str, lines)]  # type: ignore[union-attr]


def test_a_pull_of_an_image_is_shown_until_the_next_event() -> None:
    view = LiveView(make_console(TerminalFile()), now=lambda: START)
    with RunDisplay(make_console(TerminalFile()), view).during():
        pull_logger.info("Pulling the image %s", "python:3.12\x1b[2J")
        assert shown(view) == ["Pulling the image python:3.12 · 0:00:00"]
        view(realistic()[0].model_copy(update={"id": 0}))
        assert shown(view) == ["Preparing · 0:00:00"]


def test_the_limits_are_shown_while_the_agent_works() -> None:
    view = LiveView(make_console(TerminalFile()), now=lambda: START)
    for id, event in enumerate(realistic()[:12]):
        view(event.model_copy(update={"id": id}))
    _, limits, *_ = shown(view)
    assert limits.startswith("  iteration 2 of ")
