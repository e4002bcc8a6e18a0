"""Tests of deriving the outcome from the log."""

import pytest

from resolver.agents.base import DummyAgent
from resolver.errors import ModelError
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.models.run import DeclineReason, RunState
from tests.controller.test_controller import Raising, Run


@pytest.mark.parametrize(
    ("declined", "state"),
    [
        ("cannot_reproduce", RunState.REJECTED),
        ("already_fixed", RunState.REJECTED),
        ("not_wanted", RunState.REJECTED),
        ("needs_answer", RunState.AWAITING_USER_INPUT),
    ],
)
def test_a_reason_to_change_nothing_decides_the_end_state(
    declined: DeclineReason, state: RunState
) -> None:
    finish = a.Finish(message="Which one?\n\nOr both?", task_completed=False, declined=declined)
    outcome = Run().go(DummyAgent([finish]))
    assert (outcome.state, outcome.declined, outcome.reason) == (state, declined, "Which one?")
    assert outcome.message == finish.message and not outcome.task_completed


def test_an_answer_is_finished_work() -> None:
    outcome = Run().go(DummyAgent([a.Finish(message="It does.", declined="answered")]))
    assert (outcome.state, outcome.declined) == (RunState.FINISHED, "answered")
    assert outcome.task_completed


def test_an_error_of_the_model_keeps_its_cause_and_what_to_do() -> None:
    outcome = Run().go(Raising(ModelError("it is empty", "add credit", "no_credit")))
    assert (outcome.state, outcome.reason) == (RunState.ERROR, "it is empty")
    assert (outcome.because, outcome.next_step) == ("no_credit", "add credit")


def test_a_resumed_run_that_fails_again_has_the_error_of_this_time() -> None:
    run = Run()
    run.go(Raising(ModelError("it is empty", "add credit", "no_credit")))
    run.stream.add(o.AgentStateChanged(state=RunState.RUNNING))
    outcome = run.go(Raising(ModelError("no reply", "try again later", "provider_down")))
    assert (outcome.state, outcome.reason) == (RunState.ERROR, "no reply")
    assert (outcome.because, outcome.next_step) == ("provider_down", "try again later")
