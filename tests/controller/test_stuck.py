"""Going in circles is found; a long normal run is left alone."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from resolver.controller.stuck import find_repetition
from resolver.events.actions import CmdRun, Message
from resolver.events.base import EventBase
from resolver.events.observations import CmdOutput, ErrorObservation
from tests.events.strategies import logs


def log(*pairs: tuple[EventBase, EventBase]) -> list[EventBase]:
    events: list[EventBase] = []
    for action, observation in pairs:
        id = len(events)
        events.append(action.model_copy(update={"id": id}))
        events.append(observation.model_copy(update={"id": id + 1, "cause": id}))
    return events


def ran(command: str, output: str = "", code: int = 0) -> tuple[CmdRun, CmdOutput]:
    return CmdRun(command=command), CmdOutput(content=output, exit_code=code)


def test_the_same_action_with_the_same_result_four_times() -> None:
    assert find_repetition(log(*[ran("ls", "a")] * 3)) is None
    assert find_repetition(log(*[ran("ls", "a")] * 4)) == "the same action with the same result"


def test_repeats_that_differ_in_numbers_and_temporary_paths_count() -> None:
    pairs = [ran("pytest", f"1 failed in 0.{i}2s, see /tmp/pytest-{i}/log", 1) for i in range(4)]
    assert find_repetition(log(*pairs)) is not None


def test_the_same_action_that_fails_three_times_in_different_words() -> None:
    words = ("no such file", "permission denied", "is a directory")
    pairs = [(CmdRun(command="cat x"), ErrorObservation(content=w)) for w in words]
    assert find_repetition(log(*pairs)) == "the same action that fails each time"


def test_two_actions_in_turn() -> None:
    pairs = [ran("ls", "a"), ran("pwd", "b")] * 3
    assert find_repetition(log(*pairs)) == "the same two actions in turn"
    assert find_repetition(log(*pairs[:-1])) is None


def test_the_same_words_three_times() -> None:
    events = [Message(id=i, content="What shall I do?") for i in range(3)]
    assert find_repetition(events) == "the same message"


def test_only_what_came_after_the_warning_counts() -> None:
    events = log(*[ran("ls", "a")] * 5)
    assert find_repetition(events, since=len(events) - 6) is None


def test_the_same_command_with_different_results_is_work() -> None:
    outputs = ("collected ok", "failed: alpha", "failed: beta", "failed: gamma", "passed")
    assert find_repetition(log(*[ran("pytest -q", o) for o in outputs])) is None


def test_a_long_normal_run_gives_no_alarm() -> None:
    cycle = itertools.cycle(["view", "edit", "test"])
    pairs = [
        ran(f"{next(cycle)} module_{chr(97 + i % 26)}", f"result {chr(97 + i * 7 % 26)}")
        for i in range(300)
    ]
    events = log(*pairs)
    assert all(find_repetition(events[: i + 1]) is None for i in range(len(events)))


@given(logs(), st.integers(0, 9))
def test_no_log_breaks_the_detector(events, since) -> None:
    find_repetition(events, since)
