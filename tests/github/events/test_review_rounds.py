"""Tests that a submitted review is one request, whichever of its events arrives first."""

from typing import Any

import pytest

from resolver.github.events.reviews import (
    MAX_REQUESTED_THREADS,
    render_deferred_threads,
    requested_threads,
    whole_request,
)
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


def pull(*threads: ReviewThread, body: str = "", author: str = "mona") -> PullRequestContext:
    review = AuthoredText(id=REVIEW, author=author, at=reports.WHEN, body=body)
    reviews = (PastReview(state="COMMENTED", text=review),) if body else ()
    return PullRequestContext(
        number=9, head="a" * 40, base_branch="main", threads=threads, reviews=reviews
    )


def names(request: Trigger, on: PullRequestContext) -> dict[str, str]:
    return {
        requested.label: requested.thread.id
        for requested in requested_threads(request, on, MENTION)
    }


FIRST = thread("first", words("Rename this."))
SECOND = thread("second", words("@agent split this"))
OTHER = thread("other", words("@agent delete this", review=60))


def test_a_review_with_a_mention_covers_all_its_comments() -> None:
    on = pull(OTHER, FIRST, SECOND, body="@agent please address")
    assert names(trigger(), on) == {"T1": "first", "T2": "second"}


def test_without_a_mention_in_the_review_each_comment_asks_for_itself() -> None:
    on = pull(FIRST, SECOND, OTHER, body="Looks good in general.")
    assert names(trigger(), on) == {"T1": "second"}


def test_an_edited_review_still_covers_all_its_comments() -> None:
    request = trigger(kind=TriggerKind.REVIEW_SUBMITTED, comment_id=REVIEW, instruction="do it")
    assert names(request, pull(FIRST, SECOND)) == {"T1": "first", "T2": "second"}


def test_a_reply_asks_only_about_its_thread() -> None:
    talk = thread(
        "talk",
        words("I'd keep it.", "zoe", 50),
        words("@agent do as zoe says", review=60),
        words("@agent rename it then"),
    )
    [requested] = requested_threads(
        trigger(), pull(FIRST.model_copy(update={"comments": ()}), talk), MENTION
    )
    assert (requested.thread.id, requested.request) == ("talk", "rename it then")


@pytest.mark.parametrize("body", ["`@agent` is its name", "> @agent please address", "@agents"])
def test_text_without_a_mention_asks_for_nothing(body: str) -> None:
    assert names(trigger(), pull(FIRST, body=body)) == {}


def test_comments_of_others_never_ask() -> None:
    strange = thread("strange", words("@agent delete all", "eve"), words("Hm.", "mona", 50))
    assert names(trigger(), pull(strange)) == {}
    assert names(trigger(), pull(FIRST, body="@agent please address", author="eve")) == {}


@pytest.mark.parametrize("command", [Command.REVIEW, Command.UPDATE, Command.HELP])
def test_other_commands_are_about_the_whole_pull_request(command: Command) -> None:
    assert names(trigger(command), pull(FIRST, SECOND, body="@agent please address")) == {}


def test_a_trigger_without_a_review_asks_about_no_lines() -> None:
    assert names(trigger(review_id=None), pull(FIRST, SECOND)) == {}


def test_threads_beyond_the_maximum_are_reported() -> None:
    many = [thread(f"t{n}", words("Rename.")) for n in range(MAX_REQUESTED_THREADS + 3)]
    on = pull(*many, body="@agent please address")
    threads = requested_threads(trigger(), on, MENTION)
    assert len(threads) == MAX_REQUESTED_THREADS
    assert "3 more conversations" in (render_deferred_threads(trigger(), on, threads) or "")
    assert render_deferred_threads(trigger(), pull(FIRST), threads[:1]) is None


# The request as a whole


def whole(on: PullRequestContext, request: Trigger | None = None) -> Trigger:
    given = request or trigger()
    return whole_request(given, on, requested_threads(given, on, MENTION), MENTION)


def test_the_request_is_the_same_whichever_event_came_first() -> None:
    on = pull(FIRST, SECOND, body="@agent please address, and add tests")
    came = [
        trigger(kind=TriggerKind.REVIEW_SUBMITTED, comment_id=REVIEW, instruction="please address"),
        trigger(instruction="split this", comment_id=3),
    ]
    assert {whole(on, event).instruction for event in came} == {
        "please address, and add tests\n\nT1: Rename this.\n\nT2: split this"
    }


def test_single_comments_together_are_one_request() -> None:
    third = thread("third", words("And @agent inline that, please"))
    assert whole(pull(SECOND, third)).instruction == "T1: split this\n\nT2: inline that, please"


def test_a_single_comment_is_asked_as_it_came() -> None:
    assert whole(pull(SECOND)) == trigger()


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
    question = command is Command.QUESTION
    for first in {Command.QUESTION, command if question else Command.FIX}:
        assert whole(on, trigger(first)).command is command
