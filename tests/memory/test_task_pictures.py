"""Tests of the task's pictures: sent with the first message, and the same after a restart."""

from typing import Any

import pytest

from resolver.events.lifecycle import SystemPrompt
from resolver.memory.conversation import MAX_IMAGES, ConversationMemory, Dialect
from resolver.models.issue_context import Picture
from tests.memory.logs import Log, task
from tests.memory.test_pictures import looked, sent, url, words
from tests.trace import sample


def started(*pictures: Picture) -> Log:
    opening = sample.started()
    task_with_pictures = opening.task.model_copy(update={"pictures": pictures})
    opening = opening.model_copy(update={"task": task_with_pictures})
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
