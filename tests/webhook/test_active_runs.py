"""Tests of the active runs of a process, which comments reach."""

from resolver.controller.control import Control, MessageToAgent, Resume
from resolver.entrypoints.webhook.active_runs import ActiveRuns
from resolver.models.run import Command
from tests.storage.test_run_index import trigger_at


def test_a_message_that_comes_too_late_is_returned() -> None:
    at_work, control, start = ActiveRuns(), Control(), trigger_at(0, 1)
    at_work.register(start, control)
    early = trigger_at(1, 2, Command.CONTINUE, "be quick")
    late = trigger_at(2, 3, Command.CONTINUE, "use pytest -x")
    assert at_work.send(early)
    assert [type(control.take()) for _ in range(2)] == [MessageToAgent, Resume]
    assert at_work.send(late) and at_work.send(late)
    assert at_work.unregister(start) == [late]
    assert not at_work.send(late)


def test_a_request_from_before_the_run_is_not_for_it() -> None:
    at_work = ActiveRuns()
    at_work.register(trigger_at(5, 50), Control())
    old = trigger_at(4, 40, Command.STOP)
    assert not at_work.send(old)
    assert at_work.find_older_run(old) is None
