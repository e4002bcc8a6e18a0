"""Tests of comparing a replayed run with its recording."""

from resolver.controller.replay import compare_with_recording
from resolver.events.actions import CmdRun, Message
from resolver.events.base import EventBase, Source
from resolver.events.lifecycle import ReplayDiverged, RunStarted
from resolver.events.observations import ChangedPaths, CmdOutput
from resolver.events.stream import utc_now
from resolver.models.run import Actor, RunLimits, Task, Trigger, TriggerKind

TRIGGER = Trigger(
    key="k", kind=TriggerKind.LOCAL, repository="r", actor=Actor(login="ada"), at=utc_now()
)
TASK = Task(trigger=TRIGGER, title="t", body="b", base_branch="main", source="r")


def started(base: str = "b" * 40) -> RunStarted:
    return RunStarted(
        run="1", version="0", task=TASK, base=base, agent="a", model="m", runtime="local",
        limits=RunLimits(),
    )  # fmt: skip


def differences(
    recorded: list[EventBase], now: list[EventBase], base: str = "b" * 40
) -> list[ReplayDiverged]:
    logs = [
        [e.model_copy(update={"id": i}) for i, e in enumerate(events)]
        for events in ([started(), *recorded], [started(base), *now])
    ]
    return compare_with_recording(*logs)  # type: ignore[arg-type]


def output(content: str, code: int = 0) -> CmdOutput:
    return CmdOutput(content=content, exit_code=code)


def test_identical_events_have_no_difference() -> None:
    log = [CmdRun(command="ls"), output("a\nb")]
    assert differences(log, log) == []


def test_the_text_of_a_result_does_not_count() -> None:
    assert differences([output("0.002s in /workspace")], [output("1.204s in /tmp/x")]) == []


def test_another_changed_file_is_a_difference() -> None:
    before, after = (
        output("").model_copy(update={"changed": ChangedPaths(paths=(path,), count=1)})
        for path in ("a.py", "b.py")
    )
    [found] = differences([before], [after])
    assert (found.field, found.recorded, found.found) == ("changed", "a.py", "b.py")


def test_another_exit_code_is_reported_with_the_recorded_event() -> None:
    [found] = differences(
        [CmdRun(command="t"), output("", 0)], [CmdRun(command="t"), output("", 1)]
    )
    assert (found.recorded_id, found.field, found.recorded, found.found) == (
        2,
        "exit_code",
        "0",
        "1",
    )


def test_another_base_commit_is_a_difference() -> None:
    [found] = differences([], [], base="c" * 40)
    assert (found.field, found.found) == ("base", "c" * 40)


def test_messages_of_the_user_are_not_compared() -> None:
    first, second = (Message(content=c, source=Source.USER) for c in "ab")
    assert differences([first], [second]) == []
