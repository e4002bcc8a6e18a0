"""Tests of calls of a model that a stop or a limit ends."""

import threading

import pytest

from resolver.controller.control import Control, Stop
from resolver.errors import ModelError, RunStopped, StepInterrupted
from resolver.llm.interruptible import ModelCalls
from resolver.models.run import Completion, Tokens
from tests.parts.waiting import until

REPLY = Completion(text="yes", tokens=Tokens(), model="m")


def fail() -> Completion:
    raise ModelError("the model is away")


def test_a_call_returns_its_reply_and_raises_its_error() -> None:
    calls = ModelCalls(Control().interruptible)
    assert calls.run(lambda: REPLY) == REPLY
    with pytest.raises(ModelError, match="away"):
        calls.run(fail)


def test_a_call_that_was_interrupted_is_not_repeated_and_logs_nothing() -> None:
    control, answered, ended = Control(), threading.Event(), threading.Event()
    calls, logged = ModelCalls(control.interruptible), list[str]()

    def call() -> Completion:
        try:
            control.send(Stop(by="ada"))
            answered.wait()
            calls.require_wanted()
            logged.append("a retry")
        finally:
            ended.set()
        return REPLY

    with pytest.raises(StepInterrupted):
        calls.run(call)
    answered.set()
    assert ended.wait(10) and not logged
    with pytest.raises(RunStopped, match="stopped by ada"):
        control.raise_if_stopped()
    control.close()


def test_a_wait_before_a_repetition_is_interrupted() -> None:
    control, waited = Control(), list[BaseException]()
    calls = ModelCalls(control.interruptible)
    wait = calls.sleep

    def call() -> Completion:
        control.send(Stop())
        try:
            wait(3000)
        except StepInterrupted as interrupted:
            waited.append(interrupted)
            raise
        return REPLY

    with pytest.raises(StepInterrupted):
        calls.run(call)
    until(lambda: waited)
    control.close()
