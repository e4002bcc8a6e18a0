"""Tests of comparing a replayed run with its recording."""

import pytest

from resolver.controller.replay import compare_with_recording
from resolver.events.actions import CmdRun, Message
from resolver.events.base import EventBase, Source
from resolver.events.lifecycle import ReplayDiverged, VerificationCompleted
from resolver.events.observations import ChangedPaths, CmdOutput
from resolver.models.verification import DISABLED
from tests.trace.sample import started

STARTED = started()


def differences(
    recorded: list[EventBase], now: list[EventBase], base: str = STARTED.base
) -> list[ReplayDiverged]:
    logs = [
        [e.model_copy(update={"id": i}) for i, e in enumerate(events)]
        for events in ([STARTED, *recorded], [STARTED.model_copy(update={"base": base}), *now])
    ]
    return compare_with_recording(*logs)  # type: ignore[arg-type]


def output(content: str, code: int = 0) -> CmdOutput:
    return CmdOutput(content=content, exit_code=code)


def changed(path: str) -> CmdOutput:
    return output("").model_copy(update={"changed": ChangedPaths(paths=(path,), count=1)})


LS = CmdRun(command="ls")
MESSAGES = [Message(content=content, source=Source.USER) for content in "ab"]


@pytest.mark.parametrize(
    ("recorded", "now", "found"),
    [
        ([LS, output("a\nb")], [LS, output("a\nb")], None),
        # Times and paths in the text of a result differ in every run.
        ([output("0.002s in /workspace")], [output("1.204s in /tmp/x")], None),
        (MESSAGES[:1], MESSAGES[1:], None),
        ([LS, output("", 0)], [LS, output("", 1)], (2, "exit_code", "0", "1")),
        ([changed("a.py")], [changed("b.py")], (1, "changed", "a.py", "b.py")),
        ([LS], [CmdRun(command="pwd")], (1, "command", "ls", "pwd")),
    ],
)
def test_what_differs_is_reported_with_the_recorded_event(
    recorded: list[EventBase], now: list[EventBase], found: tuple[int, str, str, str] | None
) -> None:
    reported = [(d.recorded_id, d.field, d.recorded, d.found) for d in differences(recorded, now)]
    assert reported == ([found] if found else [])


def test_another_base_commit_is_a_difference() -> None:
    [found] = differences([], [], base="c" * 40)
    assert (found.field, found.found) == ("base", "c" * 40)


def test_a_verification_that_sends_the_change_back_differs_from_one_that_did_not() -> None:
    recorded, now = (
        VerificationCompleted(tree="t", evidence=DISABLED.evidence(), sent_to_agent=sent)
        for sent in (False, True)
    )
    [found] = differences([recorded], [now])
    assert (found.recorded_id, found.field, found.found) == (1, "sent_to_agent", "True")
