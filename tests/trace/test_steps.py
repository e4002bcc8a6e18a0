"""Tests of the view that all renderers share: steps, notes and header."""

from datetime import timedelta

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.models.approval import SecurityRisk
from resolver.models.run import RunState
from resolver.trace.steps import build_view
from resolver.trace.view import TraceNote, TraceStep
from tests.trace.sample import PIXEL, numbered, realistic, started


def steps_of(*events: object) -> list[TraceStep]:
    view = build_view(numbered(events))  # type: ignore[arg-type]
    return [entry for entry in view.entries if isinstance(entry, TraceStep)]


def notes_of(*events: object) -> list[TraceNote]:
    view = build_view(numbered(events))  # type: ignore[arg-type]
    return [entry for entry in view.entries if isinstance(entry, TraceNote)]


def test_a_real_log_has_its_steps_in_order() -> None:
    steps = [e for e in build_view(realistic()).entries if isinstance(e, TraceStep)]
    assert [step.title for step in steps] == [
        "Run `git log --oneline | head -3 && ls`",
        "Run `python -m pytest -q tests/test_parse.py`",
        "Read `/workspace/calendar/parse.py, lines 1 to 14`",
        "Edit `/workspace/calendar/parse.py`",
        "Reply not followed",
        "Run Python `from calendar_.parse import parse_date …`",
        "Run `python -m pytest -q 2>&1 \\ …`",
        "Finish",
    ]
    assert [step.number for step in steps] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_the_header_summarizes_the_run() -> None:
    header = build_view(realistic()).header
    assert (header.repository, header.number, header.requested_by) == (
        "octo-org/calendar",
        482,
        "maria-k",
    )
    assert (header.state, header.mood) == ("finished", "good")
    assert header.price == "at least $0.0287"
    assert header.tokens.input == 8 * 9_184
    assert header.seconds == timedelta(seconds=64).total_seconds()
    assert header.left_out == ("A comment by @drive-by, written after the request.",)


def test_a_command_that_still_runs_says_so() -> None:
    running, late = steps_of(
        a.CmdRun(command="sleep 9"),
        o.CmdOutput(content="…"),
        a.CmdRun(command="sleep 9"),
        o.CmdOutput(timed_out=True),
    )
    assert (running.badge, late.badge) == ("still running", "timed out")


def test_an_action_that_the_model_rated_a_high_risk_is_marked() -> None:
    done, unanswered, medium = steps_of(
        a.CmdRun(command="git push", security_risk=SecurityRisk.HIGH),
        o.CmdOutput(exit_code=0),
        a.CmdRun(command="reboot", security_risk=SecurityRisk.HIGH),
        a.CmdRun(command="make", security_risk=SecurityRisk.MEDIUM),
    )
    assert (done.badge, done.mood) == ("exit code 0, high risk", "good")
    assert (unanswered.badge, medium.badge) == ("no answer, high risk", "no answer")


def test_an_edit_shows_its_result_or_else_its_request() -> None:
    edit = a.FileEdit(command="str_replace", path="x", old_str="a\nb", new_str="c")
    done, refused = steps_of(
        edit,
        o.FileEditResult(path="x", diff="-a\n+c"),
        edit,
        o.ErrorObservation(content="no match"),
    )
    assert done.action is None
    assert [block.language for block in done.outputs] == ["diff"]
    assert refused.action is not None
    assert refused.action.text == "-a\n-b\n+c"
    assert (refused.badge, refused.mood) == ("not done", "bad")


def test_only_raster_images_are_shown() -> None:
    images = (
        PIXEL,
        "https://evil.example/x.png",
        "data:image/svg+xml;base64,PHN2Zz4=",
        PIXEL + "\n",
    )
    (step,) = steps_of(a.IPythonRunCell(code="plot()"), o.IPythonOutput(images=images))
    assert step.images == (PIXEL,)


def test_a_connection_is_a_quiet_line_and_a_refused_one_a_warning() -> None:
    view = build_view(numbered([
        life.Egress(host="pypi.org", port=443, allowed=True, bytes_sent=10, bytes_received=2000,
                    seconds=0.5),
        life.Egress(host="evil.test", port=80, allowed=False, reason="not on the list"),
        life.Egress(host="slow.test", port=443, allowed=True, reason="timed out", connections=3),
    ]))  # fmt: skip
    assert [(note.category, note.text) for note in view.entries if isinstance(note, TraceNote)] == [
        ("network", "Connection to pypi.org:443 (10 bytes out, 2,000 in, 0.5 s)"),
        ("warning", "Connection to evil.test:80 refused: not on the list"),
        ("network", "3 connections to slow.test:443 (0 bytes out, 0 in): timed out"),
    ]


def test_stages_warnings_and_states_are_notes() -> None:
    notes = notes_of(
        started(),
        life.StageCompleted(stage="cloned", seconds=1.5),
        life.Warned(about="limit", message="near"),
        o.AgentStateChanged(state=RunState.LIMIT, reason="budget"),
        life.Condensation(forgotten=(1, 2), summary="s"),
    )
    assert [(note.category, note.text) for note in notes] == [
        ("stage", "cloned (1.5 s)"),
        ("warning", "near"),
        ("state", "limit: budget"),
        ("memory", "The conversation was shortened: 2 events removed"),
    ]
