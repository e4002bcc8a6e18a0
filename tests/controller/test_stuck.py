"""Tests of detecting repetition without mistaking progress for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.controller import stuck
from resolver.controller.stuck import StuckDetector
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import EventBase, Source
from resolver.events.lifecycle import Condensation, ModelReplied, Warned
from resolver.events.state import State
from resolver.models.approval import RATINGS
from resolver.models.run import Completion, RunState
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
    return StuckDetector().find_repetition(State.fold(events))


def ever_found(events: list[EventBase]) -> str | None:
    """Return the first repetition found when the log is examined after each event."""
    detector, state = StuckDetector(), State()
    for event in events:
        state.apply(event)
        said = detector.find_repetition(state)
        if said:
            return said
    return None


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


def test_the_rest_of_a_reply_written_before_the_warning_does_not_count() -> None:
    reply = ModelReplied(completion=Completion(model="m"))
    calls = [x.model_copy(update={"reply": 0}) for x in [a.CmdRun(command="ls")] * 9]
    answers = [o.CmdOutput(content="a", exit_code=0, cause=i) for i in range(60)]
    events: list[EventBase] = [reply]
    for number, call in enumerate(calls):
        if number == 4:
            events.append(Warned(about="stuck", message="x"))
        events += [call, answers[len(events)]]
    assert found(numbered(*events)) is None


def test_a_second_repeat_soon_after_the_warning_is_distinguished_from_a_late_one() -> None:
    detector, state = StuckDetector(), State.fold(log(*[ran("ls", "a")] * 4))
    detector.find_repetition(state)
    assert not detector.warned
    state.apply(Warned(id=8, about="stuck", message="x"))
    detector.find_repetition(state)
    assert detector.warned
    for number in range(stuck.STEPS_AFTER_WARNING + 1):
        for event in ran(f"other {'x' * number}", "y" * number):
            id = len(state.events)
            cause = id - 1 if isinstance(event, o.CmdOutput) else None
            state.apply(event.model_copy(update={"id": id, "cause": cause}))
    assert detector.find_repetition(state) is None
    assert not detector.warned


@pytest.mark.parametrize(
    "new",
    [
        a.Message(content="try the other file", source=Source.USER),
        o.AgentStateChanged(state=RunState.STUCK),
    ],
)
def test_a_comment_or_a_restart_resets_the_detector(new: EventBase) -> None:
    events = log(*[ran("ls", "a")] * 4)
    events += [Warned(id=8, about="stuck", message="x"), new.model_copy(update={"id": 9})]
    detector = StuckDetector()
    assert detector.find_repetition(State.fold(events)) is None
    assert not detector.warned


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

    def test_waiting_for_a_running_program(self) -> None:
        wait = a.CmdRun(command="", is_input=True)
        still = o.CmdOutput(content="", exit_code=None, seconds=30.0)
        assert ever_found(log(*[(wait, still)] * 11)) is None
        assert ever_found(log(*[(wait, still)] * 12)) is not None

    def test_occasional_checks_of_a_background_job_are_not_stuck(self) -> None:
        action, observation = ran("sleep 30; tail -n1 build.log", "linking")
        waited = observation.model_copy(update={"seconds": 30.1})
        assert ever_found(log(*[(action, waited)] * 8)) is None
        in_turn = [(action, waited), ran("date", "today")] * 8
        assert ever_found(log(*in_turn)) is None


@given(logs(), st.integers(0, 9))
def test_no_log_breaks_the_detector(events, start) -> None:
    detector, state = StuckDetector(), State.fold(events[:start])
    detector.find_repetition(state)
    for event in events[start:]:
        state.apply(event)
        detector.find_repetition(state)
