"""Tests that plain text controls neither the terminal nor GitHub's runner."""

import io
import json
import re

import pytest
from hypothesis import given
from rich.console import Console

from resolver.events.base import EventBase
from resolver.events.log import dump_line
from resolver.trace.html import render_json
from resolver.trace.plain import (
    clean,
    clean_diff,
    duration,
    for_terminal,
    money,
)
from resolver.trace.text import TerminalProgress, render_text
from tests.trace.events import any_events, text
from tests.trace.sample import HOSTILE, hostile, realistic

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
STYLE = re.compile("\x1b\\[[0-9;]*m")


def harmless(shown: str) -> None:
    """Return True if the text has no terminal control and no line that the runner reads as a
    command."""
    assert not CONTROL.search(shown)
    for line in shown.split("\n"):
        assert not line.lstrip().startswith("::")
        assert "##[" not in line


def test_a_diff_shows_what_is_invisible_in_its_lines() -> None:
    line = "+if user\u202e admin\u2066:\x1b[31m\u200b"
    assert clean_diff(line) == "+if user[U+202E] admin[U+2066]:[U+200B]"
    assert clean(line) == "+if user admin:"


def progress(events: list[EventBase], terminal: bool, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(
        file=file, width=80, force_terminal=terminal, color_system="standard", legacy_windows=False
    )
    show = TerminalProgress(console)
    for event in events:
        show(event)
    file.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_text_does_not_control_the_terminal(words: str) -> None:
    log = hostile(words)
    harmless(render_text(log))
    harmless(render_json(log))
    harmless(progress(log, terminal=False))
    harmless(STYLE.sub("", progress(log, terminal=True)))


@given(any_events())
def test_any_log_is_shown_without_controlling_the_terminal(events: list) -> None:
    harmless(render_text(events))
    harmless(render_json(events))
    harmless(progress(events, terminal=False))
    harmless(STYLE.sub("", progress(events, terminal=True)))


@given(text)
def test_text_for_a_terminal_is_harmless(text: str) -> None:
    once = for_terminal(text)
    harmless(once)
    assert for_terminal(once) == once


def test_a_run_is_shown_in_plain_lines() -> None:
    assert progress(realistic(), terminal=False).splitlines()[2:7] == [
        "1. Run git log --oneline | head -3 && ls",
        "  ok: exit code 0, 30 ms",
        "2. Run python -m pytest -q tests/test_parse.py",
        "  failed: exit code 1, 1.3 s, ========================= 1 failed, 13 passed in 0.21s "
        "=========================",
        "3. Read /workspace/calendar/parse.py, lines 1 to 14",
    ]


def test_the_json_view_is_the_log_as_an_array() -> None:
    for log in (realistic(), hostile("\n".join(HOSTILE)), []):
        shown = json.loads(render_json(log))
        assert shown == [json.loads(dump_line(event)) for event in log]


def test_carriage_returns_do_not_hide_text() -> None:
    assert clean("rm -rf /\rls     \r\nx") == "rm -rf /\nls     \nx"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.03, "30 ms"), (1.34, "1.3 s"), (59.4, "59 s"), (64, "1 min 4 s"), (7_800, "2 h 10 min"),
     (float("nan"), "unknown"), (-1, "unknown")],
)  # fmt: skip
def test_durations_are_human_readable(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("cost", "expected"),
    [(None, "unknown"), (0, "$0.00"), (0.0041, "$0.0041"), (0.25, "$0.25"), (12.345, "$12.35"),
     (float("inf"), "unknown")],
)  # fmt: skip
def test_small_amounts_have_enough_digits(cost: float | None, expected: str) -> None:
    assert money(cost) == expected
