"""Tests of the task's pictures: sent with the first message, and the same after a restart."""

from datetime import UTC, datetime
from typing import Any

import pytest

from resolver.events.lifecycle import RunStarted, SystemPrompt
from resolver.memory.conversation import MAX_IMAGES, ConversationMemory, Dialect
from resolver.models.issue_context import Picture
from resolver.models.run import Actor, RunLimits, Task, Trigger, TriggerKind
from tests.memory.logs import Log, task
from tests.memory.test_pictures import looked, sent, url, words

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def started(*pictures: Picture) -> Log:
    trigger = Trigger(
        key="k", kind=TriggerKind.LOCAL, repository="/r", actor=Actor(login="ann"), at=NOW
    )
    opening = RunStarted(
        run="r",
        version="1",
        task=Task(
            trigger=trigger, title="t", body="b", base_branch="main", source="/r", pictures=pictures
        ),
        base="a" * 40,
        agent="CodeActAgent",
        model="m",
        runtime="local",
        limits=RunLimits(),
    )
    return Log(opening, SystemPrompt(content="rules"), task())


def picture(number: int, data: str = "") -> Picture:
    return Picture(number=number, where="in the description", data=data)


def messages_of(log: Log, sees: bool = True, dialect: Dialect = "tools") -> list[dict[str, Any]]:
    return ConversationMemory(dialect, sees_images=sees).messages(log.state)


def test_fetched_pictures_follow_the_task_with_their_numbers() -> None:
    log = started(picture(1), picture(2, url(2)), picture(3, url(3)))
    (_, first) = messages_of(log)
    assert first["content"][0]["text"] == (
        "fix it\n[picture 2: shown below]\n[picture 3: shown below]"
    )
    assert [p["text"] for p in first["content"] if p["type"] == "text"][1:] == [
        "Picture 2:",
        "Picture 3:",
    ]
    assert sent(messages_of(log)) == [url(2), url(3)]


@pytest.mark.parametrize("dialect", ["tools", "tags"])
def test_pictures_of_the_task_are_not_counted_or_dropped_with_others(dialect: Dialect) -> None:
    log = started(picture(1, url(9000)))
    for number in range(MAX_IMAGES + 1):
        looked(log, url(number))
    messages = messages_of(log, dialect=dialect)
    assert sent(messages)[0] == url(9000)
    assert "[image 1: no longer shown" in words(messages)
    assert len(sent(messages)) < MAX_IMAGES + 1
