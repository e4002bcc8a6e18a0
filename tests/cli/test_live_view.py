"""Tests of the live view of a run, drawn on a terminal in memory."""

import io
import re
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest
from rich.console import Console

from resolver.cli.live_view import LiveView, clock_time
from resolver.cli.run_display import RunDisplay, is_live_terminal, take_display
from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import EventBase
from resolver.models.verification import CaseResult, CheckExecution
from resolver.runs.wiring.sandbox import live_output
from resolver.runtime.base import NOT_SEPARATED
from resolver.runtime.image_pull import pull_logger
from resolver.security.redaction import Redactor
from resolver.trace.text import TerminalProgress
from tests.trace.sample import HOSTILE, START, hostile, realistic

SEQUENCE = re.compile("\x1b\\[[0-9;?]*[a-zA-Z]")
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class TerminalFile(io.StringIO):
    """A file that says that it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class BrokenTerminal(TerminalFile):
    """A terminal that has gone."""

    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def make_console(file: io.StringIO, width: int = 80, terminal: str = "xterm") -> Console:
    return Console(file=file, width=width, height=24, _environ={"TERM": terminal})


def draw(events: list[EventBase], width: int = 80, verbose: bool = False) -> tuple[str, list[str]]:
    """Return what was written, and the lines that remain."""
    file = TerminalFile()
    ids = iter(range(len(events)))
    view = LiveView(
        make_console(file, width),
        verbose=verbose,
        now=lambda: START + timedelta(seconds=2.0 * len(events)),
    )
    with view.during():
        for event in events:
            view(event.model_copy(update={"id": next(ids)}))
    written = file.getvalue()
    return written, [SEQUENCE.sub("", line) for line in written.split("\n")]


@pytest.mark.parametrize("width", [40, 80])
def test_each_step_stays_as_one_line_of_the_terminals_width(width: int) -> None:
    _, lines = draw(realistic(), width)
    steps = [line.split("\r")[-1] for line in lines]
    steps = [line for line in steps if re.match(r"[✓✗·] +\d+ ", line)]
    assert [int(line.split()[1]) for line in steps] == list(range(1, len(steps) + 1))
    assert all(len(line) <= width for line in steps)
    [failed] = [line for line in steps if line.startswith("✗   2 Run python")]
    assert failed.endswith("exit code 1, 1.3 s")


def test_what_a_sandbox_shares_with_the_machine_is_never_cut_off() -> None:
    detail = f"this machine, as user 0; hidden from it: network; {NOT_SEPARATED}{'files, ' * 30}end"
    _, lines = draw([life.StageCompleted(stage="sandbox", detail=detail)], width=40)
    assert "files, end" in " ".join(lines)


def test_the_status_has_phase_limits_and_times() -> None:
    written, _ = draw(realistic())
    shown = SEQUENCE.sub("", written)
    assert "Reading the request, cloning" in shown
    assert re.search(
        r"Working · iteration 2 of 250 · \$0\.0\d of \$5\.00 · \d+:\d\d, \d+:\d\d left", shown
    )
    assert "The model is thinking · 0:00" in shown
    assert re.search(r"Run python -m pytest -q tests/test_parse.py · 0:00", shown)
    narrow = SEQUENCE.sub("", draw(realistic(), 40)[0])
    assert re.search(r"Working · 2/250 · \$0\.0\d/\$5\.00 · \d", narrow)


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_text_controls_no_terminal(words: str) -> None:
    written, _ = draw(hostile(words), verbose=True)
    assert not CONTROL.search(SEQUENCE.sub("", written).replace("\r", ""))
    colors_and_cursor = {"m", "A", "K", "h", "l"}
    assert {match[0][-1] for match in SEQUENCE.finditer(written)} <= colors_and_cursor


def test_a_terminal_that_has_gone_ends_no_run(caplog: pytest.LogCaptureFixture) -> None:
    view = LiveView(make_console(BrokenTerminal()))
    with view.during():
        pass
    assert "the live view ended" in caplog.text


def test_a_resumed_run_counts_what_its_log_has_spent() -> None:
    file = TerminalFile()
    earlier = realistic()
    view = LiveView(make_console(file), earlier=earlier, now=lambda: datetime.now(UTC))
    with view.during():
        view(life.Resumed(id=len(earlier), version="1", run="run-2", timestamp=START))
        view(life.SystemPrompt(id=len(earlier) + 1, content="x", timestamp=START))
    replies = sum(isinstance(event, life.ModelReplied) for event in earlier)
    assert f"iteration {replies} of 250" in SEQUENCE.sub("", file.getvalue())


def test_verbose_shows_reasoning_and_output() -> None:
    action = a.CmdRun(id=0, command="ls", thought="First I look\naround.")
    assert "around." not in draw([action])[0]
    assert "around." in draw([action], verbose=True)[0]


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


def test_times_are_counted_like_a_clock() -> None:
    assert [clock_time(s) for s in (-1, 5, 65, 3725)] == ["0:00", "0:05", "1:05", "1:02:05"]


@pytest.mark.parametrize("chosen", ["verbose", "quiet", "json"])
def test_the_log_of_a_resumed_run_is_read_for_the_live_view_only(chosen: str) -> None:
    reads: list[str] = []
    options = {name: name == chosen for name in ("verbose", "quiet", "json")}
    take_display(options, {"CI": "true"}, read_earlier=lambda: reads.append("read") or ())
    assert reads == []


def test_a_pull_of_an_image_is_shown_until_the_next_event() -> None:
    file = TerminalFile()
    view = LiveView(make_console(file), now=lambda: START)
    with RunDisplay(view._console, view).during():
        pull_logger.debug("Pulling the image %s: %s", "python:3.12", "12 of 45 MB\x1b[2J")
        pulling = [str(line) for line in view._renderable().renderables]
        view(realistic()[0].model_copy(update={"id": 0}))
        after = [str(line) for line in view._renderable().renderables]
    assert pulling[1] == "  Pulling the image python:3.12: 12 of 45 MB"
    assert len(after) == 1


def test_without_a_terminal_a_pull_is_one_line() -> None:
    file = io.StringIO()
    console = make_console(file)
    with RunDisplay(console, TerminalProgress(console)).during():
        pull_logger.info("Pulling the image %s", "python:3.12")
        pull_logger.debug("Pulling the image %s: %s", "python:3.12", "12 of 45 MB")
    pull_logger.info("Pulling the image %s", "after the run")
    assert file.getvalue() == "Pulling the image python:3.12\n"


@pytest.mark.parametrize(
    ("at", "code", "mark"), [("head", 0, "✓"), ("head", 1, "✗"), ("base", 1, "·")]
)
def test_a_check_is_one_line_with_its_result_at_the_end(
    at: Literal["base", "head"], code: int, mark: str
) -> None:
    cases = tuple(CaseResult(id=f"{i}", status="failed" if code else "passed") for i in range(3))
    execution = CheckExecution(exit_code=code, seconds=1.5, cases=cases)
    command = "python -m unittest tests.test_a_module_with_a_long_name.TestOfIt.test_one"
    check = life.CheckExecuted(
        key="k", name="unittest", command=command, at=at, tree="t", execution=execution
    )
    _, lines = draw([*realistic(), check], 80)
    [line] = [line.split("\r")[-1] for line in lines if "Check with" in line]
    assert re.match(f"{mark}     Check with(out)? the change: python -m unit", line)
    assert line.endswith(f"…  3 {'failed' if code else 'passed'}, 1.5 s")
    assert len(line) == 80


def test_the_last_lines_of_a_running_command_are_shown_until_it_ends() -> None:
    view = LiveView(make_console(TerminalFile()), now=lambda: START)

    def lines() -> list[str]:
        return [str(line) for line in view._renderable().renderables]

    view.show_output("before any command\n")
    assert len(lines()) == 1
    view(a.CmdRun(id=0, command="make test"))
    assert lines()[1:] == ["  Run make test · 0:00"]
    view.show_output("1\n2\n\n3\n4\tx")
    assert lines()[1:] == ["  Run make test · 0:00", "  │ 2", "  │ 3", "  │ 4   x"]
    view(o.CmdOutput(id=1, cause=0, content="5\n6\n", exit_code=0))
    view.show_output("too late")
    assert view._output == ["5", "6"]


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_output_of_a_running_command_controls_no_terminal(words: str) -> None:
    file = TerminalFile()
    view = LiveView(make_console(file), now=lambda: START)
    with view.during():
        view(a.CmdRun(id=0, command="make"))
        view.show_output(words)
        view._refresh()
        shown = [str(line) for line in view._renderable().renderables]
    assert not CONTROL.search(SEQUENCE.sub("", file.getvalue()).replace("\r", ""))
    assert len(shown) <= 5 and not any(CONTROL.search(line) for line in shown)


def test_only_a_live_view_receives_the_output_of_running_commands() -> None:
    assert live_output(None, Redactor(())) is None
    console = make_console(TerminalFile())
    assert live_output(TerminalProgress(console), Redactor(())) is None
    assert live_output(LiveView(console), Redactor(())) is not None


def test_the_output_of_a_running_command_is_shown_without_secrets() -> None:
    view = LiveView(make_console(TerminalFile()), now=lambda: START)
    on_output = live_output(view, Redactor(["correct-horse-battery", "first\nsecond line"]))
    assert on_output is not None
    view(a.CmdRun(id=0, command="env"))
    token = "ghp_" + "a1B2" * 9
    on_output(f"KEY=correct-\x1b[1mhorse-battery\nfirst\nsecond line\n{token}\nend")
    shown = "\n".join(str(line) for line in view._renderable().renderables)
    assert "[redacted]" in shown and "end" in shown
    assert not any(word in shown for word in ("horse", "battery", "second line", "a1B2"))
