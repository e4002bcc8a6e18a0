"""Tests of images in a conversation: paired, bounded, and stable."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.lifecycle import SystemPrompt
from resolver.memory.conversation import (
    DROPPED_AT_ONCE,
    MAX_IMAGE_LENGTH,
    MAX_IMAGES,
    ConversationMemory,
    Dialect,
    first_sent_image,
)
from resolver.models.issue_context import Picture
from tests.memory.logs import Log, started, task
from tests.trace import sample

DIALECTS: list[Dialect] = ["tools", "tags"]


def url(number: int = 0) -> str:
    return f"data:image/png;base64,{number:04}"


def plot(*images: str) -> o.IPythonOutput:
    return o.IPythonOutput(content="plotted", images=images)


def looked(log: Log, *images: str) -> None:
    log.turn(a.IPythonRunCell(code="plot()"), plot(*images))


def sent(messages: list[dict[str, Any]]) -> list[str]:
    return [
        part["image_url"]["url"]
        for message in messages
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]


def words(messages: list[dict[str, Any]]) -> str:
    return "\n".join(str(message["content"]) for message in messages)


def memory(dialect: Dialect = "tools", sees: bool = True) -> ConversationMemory:
    return ConversationMemory(dialect, sees_images=sees)


def test_images_follow_the_results_of_all_calls_of_a_reply() -> None:
    log = started()
    reply = log.reply(("execute_ipython_cell", "{}"), ("str_replace_editor", "{}"))
    first = log.add(a.IPythonRunCell(code="x", reply=reply))
    log.add(plot(url(1)).model_copy(update={"cause": first}))
    second = log.add(a.FileRead(path="a.png", reply=reply))
    log.add(o.FileReadResult(content="PNG", path="a.png", images=(url(2),), cause=second))
    messages = memory().messages(log.state)
    assert [m["role"] for m in messages[2:]] == ["assistant", "tool", "tool", "user"]
    assert messages[3]["content"] == "plotted\n[image 1: shown below]"
    assert messages[4]["content"] == "PNG\n[image 2: shown below]"
    result = [part.get("text") for part in messages[5]["content"]]
    assert result == ["Image 1:", None, "Image 2:", None]
    assert sent(messages) == [url(1), url(2)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_without_image_input_gets_a_sentence(dialect: Dialect) -> None:
    log = started()
    looked(log, url(1))
    messages = memory(dialect, sees=False).messages(log.state)
    assert not sent(messages)
    assert "[image 1: not shown, since you can't see images here]" in words(messages)
    assert "base64" not in words(messages)


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("data:image/png;base64," + "A" * MAX_IMAGE_LENGTH, "too large"),
        ("data:image/svg+xml;base64,AAAA", "only PNG"),
        ("https://example.org/a.png", "only PNG"),
        ("file:///etc/passwd", "only PNG"),
        ("data:image/png;base64,AA AA\n", "only PNG"),
    ],
)
def test_invalid_images_are_not_sent(image: str, why: str) -> None:
    log = started()
    looked(log, image)
    messages = memory().messages(log.state)
    assert not sent(messages) and why in words(messages)


@given(st.integers(0, 500))
def test_the_newest_images_are_sent_up_to_the_maximum(count: int) -> None:
    first = first_sent_image(count)
    assert 0 <= count - first <= MAX_IMAGES
    assert count <= MAX_IMAGES or count - first > MAX_IMAGES - DROPPED_AT_ONCE
    assert first_sent_image(count + 1) - first in (0, DROPPED_AT_ONCE)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_older_images_are_dropped_several_at_a_time(dialect: Dialect) -> None:
    log, kept, changes = started(), memory(dialect), 0
    before: list[dict[str, Any]] = []
    for number in range(30):
        looked(log, url(number))
        messages = kept.messages(log.state)
        assert messages == memory(dialect).messages(log.state)
        changes += messages[: len(before)] != before
        before = messages
        assert len(sent(messages)) <= MAX_IMAGES
        assert sent(messages)[-1] == url(number)
    assert changes <= -(-(30 - MAX_IMAGES) // DROPPED_AT_ONCE)
    assert "[image 1: no longer shown; make it again if you need it]" in words(before)


def started_with(*pictures: Picture) -> Log:
    opening = sample.started()
    task_with_pictures = opening.task.model_copy(update={"pictures": pictures})
    opening = opening.model_copy(update={"task": task_with_pictures})
    return Log(opening, SystemPrompt(content="rules"), task())


def picture(number: int, data: str = "") -> Picture:
    return Picture(number=number, where="in the description", data=data)


def test_fetched_pictures_follow_the_task_with_their_numbers() -> None:
    log = started_with(picture(1), picture(2, url(2)), picture(3, url(3)))
    (_, first) = memory().messages(log.state)
    assert first["content"][0]["text"] == (
        "fix it\n[picture 2: shown below]\n[picture 3: shown below]"
    )
    assert [p["text"] for p in first["content"] if p["type"] == "text"][1:] == [
        "Picture 2:",
        "Picture 3:",
    ]
    assert sent(memory().messages(log.state)) == [url(2), url(3)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_pictures_of_the_task_are_not_counted_or_dropped_with_others(dialect: Dialect) -> None:
    log = started_with(picture(1, url(9000)))
    for number in range(MAX_IMAGES + 1):
        looked(log, url(number))
    messages = memory(dialect).messages(log.state)
    assert sent(messages)[0] == url(9000)
    assert "[image 1: no longer shown" in words(messages)
    assert len(sent(messages)) < MAX_IMAGES + 1
