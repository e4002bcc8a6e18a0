"""Tests that a submitted review is one request, whichever of its events arrives first."""

from typing import Any

import pytest

from resolver.github.events.reviews import requested_threads, whole_request
from resolver.models.pull_request import AuthoredText, PastReview, PullRequestContext, ReviewThread
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from tests.github import reports

REVIEW = 70
MENTION = "@agent"


def trigger(command: Command = Command.FIX, **changes: Any) -> Trigger:
    values: dict[str, Any] = {
        "kind": TriggerKind.REVIEW_COMMENT,
        "command": command,
        "is_pull_request": True,
        "review_id": REVIEW,
        "actor": Actor(login="mona", id=5),
        "instruction": "whatever came first",
    }
    return reports.trigger(**{**values, **changes})


def words(body: str, author: str = "mona", review: int | None = REVIEW) -> AuthoredText:
    return AuthoredText(id=1, author=author, at=reports.WHEN, body=body, review=review)


def thread(name: str, *comments: AuthoredText) -> ReviewThread:
    return ReviewThread(id=name, path="a.py", line=3, comments=comments)


def pull(
    *threads: ReviewThread, body: str | None = None, author: str = "mona"
) -> PullRequestContext:
    review = AuthoredText(id=REVIEW, author=author, at=reports.WHEN, body=body or "")
    reviews = (PastReview(state="COMMENTED", text=review),) if body else ()
    return PullRequestContext(
        number=9, head="a" * 40, base_branch="main", threads=threads, reviews=reviews
    )


FIRST = thread("first", words("Rename this."))
SECOND = thread("second", words("@agent split this"))
OTHER = thread("other", words("@agent delete this", review=60))
TALK = thread(
    "talk",
    words("I'd keep it.", "zoe", 50),
    words("@agent do as zoe says", review=60),
    words("@agent rename it then"),
)
STRANGE = thread("strange", words("@agent delete all", "eve"), words("Hm.", "mona", 50))
SUBMITTED = {"kind": TriggerKind.REVIEW_SUBMITTED, "comment_id": REVIEW, "instruction": "do it"}
ADDRESS = "@agent please address"


@pytest.mark.parametrize(
    ("request_", "on", "asked"),
    [
        (trigger(), pull(OTHER, FIRST, SECOND, body=ADDRESS), ["Rename this.", "split this"]),
        (trigger(), pull(FIRST, SECOND, OTHER, body="Looks good."), ["split this"]),
        # its text was edited since
        (trigger(**SUBMITTED), pull(FIRST, SECOND), ["Rename this.", "split this"]),
        (trigger(), pull(thread("empty"), TALK), ["rename it then"]),
        *(
            (trigger(), pull(FIRST, body=body), [])
            for body in ("`@agent` is its name", "> @agent please address", "@agents")
        ),
        (trigger(), pull(STRANGE), []),
        (trigger(), pull(FIRST, body=ADDRESS, author="eve"), []),
        (trigger(Command.REVIEW), pull(FIRST, SECOND, body=ADDRESS), []),
        (trigger(Command.UPDATE), pull(FIRST, SECOND, body=ADDRESS), []),
        (trigger(review_id=None), pull(FIRST, SECOND), []),
    ],
)
def test_a_review_asks_in_its_threads_what_its_author_wrote(
    request_: Trigger, on: PullRequestContext, asked: list[str]
) -> None:
    requested = requested_threads(request_, on, MENTION)
    assert [one.request for one in requested] == asked
    assert [one.label for one in requested] == [f"T{n + 1}" for n in range(len(asked))]


def whole(on: PullRequestContext, request: Trigger) -> Trigger:
    return whole_request(request, on, requested_threads(request, on, MENTION), MENTION)


def test_the_request_is_the_same_whichever_event_came_first() -> None:
    on = pull(FIRST, SECOND, body="@agent please address, and add tests")
    came = [trigger(**SUBMITTED), trigger(instruction="split this", comment_id=3)]
    assert {whole(on, event).instruction for event in came} == {
        "please address, and add tests\n\nT1: Rename this.\n\nT2: split this"
    }
    assert whole(pull(SECOND, TALK), trigger()).instruction == (
        "T1: split this\n\nT2: rename it then"
    )
    assert whole(pull(SECOND), trigger()) == trigger(), "a single comment is asked as it came"


@pytest.mark.parametrize(
    ("body", "comment", "command"),
    [
        ("@agent ask why so?", "Hm.", Command.QUESTION),
        ("@agent ask why so?", "@agent rename this", Command.FIX),
        ("@agent rename these", "@agent ask why is this here?", Command.FIX),
    ],
)
def test_a_review_is_work_if_any_of_its_texts_asks_for_work(
    body: str, comment: str, command: Command
) -> None:
    on = pull(thread("one", words(comment)), body=body)
    for first in {Command.QUESTION, command}:
        assert whole(on, trigger(first)).command is command
