"""Tests of detecting repetition without mistaking progress for it."""

import pytest
from hypothesis import given

from resolver.controller import stuck
from resolver.controller.stuck import find_repetition, was_warned
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import EventBase, Source
from resolver.events.lifecycle import Condensation, Warned
from resolver.models.approval import RATINGS
from resolver.models.run import RunState
from tests.events.strategies import logs

Pair = tuple[EventBase, EventBase]


def log(*pairs: Pair) -> list[EventBase]:
    events: list[EventBase] = []
    for action, observation in pairs:
        id = len(events)
        events.append(action.model_copy(update={"id": id}))
        events.append(observation.model_copy(update={"id": id + 1, "cause": id}))
    return events


def numbered(*events: EventBase) -> list[EventBase]:
    return [event.model_copy(update={"id": id}) for id, event in enumerate(events)]


def found(events: list[EventBase]) -> str | None:
    return find_repetition(events)  # type: ignore[arg-type]


def ever_found(events: list[EventBase]) -> str | None:
    """Return the first repetition found when the log is examined after each event."""
    return next(filter(None, (found(events[:end]) for end in range(len(events) + 1))), None)


def ran(command: str, output: str = "", code: int = 0) -> Pair:
    return a.CmdRun(command=command), o.CmdOutput(content=output, exit_code=code)


def test_the_same_action_with_the_same_result_four_times_is_quoted() -> None:
    assert found(log(*[ran("ls src", "a")] * 3)) is None
    assert found(log(*[ran("ls src", "a")] * 4)) == (
        "the same action with the same result 4 times: `ls src`"
    )


@pytest.mark.parametrize(
    "first",
    [
        ran("ls src", "b"),
        ran("ls src", "a", 1),
        ran("ls src ", "a"),
        (a.CmdRun(command="ls src", is_input=True), o.CmdOutput(content="a", exit_code=0)),
    ],
)
def test_a_difference_in_the_action_or_its_result_is_no_repetition(first: Pair) -> None:
    assert found(log(first, *[ran("ls src", "a")] * 3)) is None


def test_what_the_model_thinks_and_measures_make_no_difference() -> None:
    pairs: list[Pair] = [
        (
            a.CmdRun(command="ls", thought=f"again {i}", security_risk=risk),
            o.CmdOutput(content="a", exit_code=0, seconds=i / 10, output_file=f"/tmp/out-{i}"),
        )
        for i, risk in enumerate((None, *RATINGS))
    ]
    assert found(log(*pairs)) is not None


def test_the_same_action_that_fails_three_times_in_different_words() -> None:
    words = ("no such file", "permission denied", "is a directory")
    pairs = [(a.FileRead(path="x.py"), o.ErrorObservation(content=w)) for w in words]
    assert found(log(*pairs)) == "the same action fails 3 times: `file_read x.py`"


def test_alternating_actions_are_stuck() -> None:
    pairs = [ran("ls", "a"), ran("pwd", "b")] * 3
    assert found(log(*pairs)) == "the same 2 actions in turn 3 times: `ls`, then `pwd`"
    assert found(log(*pairs[:-1])) is None


def test_three_identical_messages_without_an_action_are_stuck() -> None:
    say = a.Message(content="What shall I do?")
    resume = a.Message(content="Go on.", source=Source.USER, cause=0)
    assert "the same words 3 times" in str(found(numbered(say, resume, say, resume, say)))
    work = [x.model_copy(update={"cause": 2}) for x in ran("ls")]
    assert found(numbered(say, resume, *work, say, resume, say)) is None


def test_ten_condensations_without_an_action_are_stuck() -> None:
    pair = (a.CondensationRequest(), Condensation(forgotten=(0,)))
    assert found(numbered(*pair * 9)) is None
    assert "condensed again and again" in str(found(numbered(*pair * 10)))
    assert found(numbered(*pair * 9, *ran("ls"), *pair * 9)) is None


def test_a_second_repeat_soon_after_the_warning_is_distinguished_from_a_late_one() -> None:
    events = log(*[ran("ls", "a")] * 4)
    assert not was_warned(events)
    events.append(Warned(id=8, about="stuck", message="x"))
    assert was_warned(events) and found(events) is None
    late = log(*[ran(f"other {n}") for n in range(stuck.STEPS_AFTER_WARNING + 1)])
    assert not was_warned([*events, *late])


@pytest.mark.parametrize(
    "new",
    [
        a.Message(content="try the other file", source=Source.USER),
        o.AgentStateChanged(state=RunState.STUCK),
    ],
)
def test_a_comment_or_a_restart_starts_afresh(new: EventBase) -> None:
    events = log(*[ran("ls", "a")] * 4)
    assert found([*events, new]) is None
    assert not was_warned([*events, Warned(id=8, about="stuck", message="x"), new])


class TestProgress:
    """Logs that look repetitive but make progress."""

    def test_the_same_command_with_different_results(self) -> None:
        words = ("collected ok", "failed: alpha", "failed: beta", "failed: gamma", "passed")
        assert ever_found(log(*[ran("pytest -q", w) for w in words])) is None

    def test_the_same_failing_test_after_each_edit(self) -> None:
        pairs: list[Pair] = []
        for i in range(30):
            edit = a.FileEdit(command="str_replace", path="p.py", old_str=f"{i}", new_str="x" * i)
            pairs += [(edit, o.FileEditResult(path="p.py", diff=f"-{i}\n+{'x' * i}"))]
            pairs += [
                ran("pytest -q", "1 failed in 0.21s", 1),
                ran("git status --short", " M p.py"),
            ]
        assert ever_found(log(*pairs)) is None

    def test_waiting_for_something(self) -> None:
        action, observation = ran("sleep 30; tail -n1 build.log", "linking")
        waited = observation.model_copy(update={"seconds": 30.1})
        assert ever_found(log(*[(action, waited)] * 20)) is None
        assert ever_found(log(*[(action, waited), ran("date", "today")] * 8)) is None


@given(logs(max_size=12))
def test_no_log_breaks_the_detector(events: list[EventBase]) -> None:
    found(events)
    was_warned(events)
