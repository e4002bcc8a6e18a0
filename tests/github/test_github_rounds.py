"""Tests of replying in review threads, over a real socket."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from resolver.github.text.markers import thread_marker
from resolver.models.pull_request import AnsweredThreads, ThreadReply, ThreadRequest
from resolver.models.run import Command, Trigger, TriggerKind
from tests.github import reports
from tests.github.test_github_pulls import pull
from tests.github.test_github_reading import BOT, NAME, forge_for
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue, Review, ReviewComment

__all__ = ["pull"]

COMMIT = "c" * 40


def trigger(review: Review, **changes: Any) -> Trigger:
    values: dict[str, Any] = {
        "key": f"review:{review.id}",
        "kind": TriggerKind.REVIEW_SUBMITTED,
        "number": review.number,
        "is_pull_request": True,
        "command": Command.QUESTION,
        "comment_id": review.id,
        "review_id": review.id,
        "at": review.created_at,
    }
    return reports.trigger(**{**values, **changes})


def done(threads: Sequence[ThreadRequest], words: str = "Changed.") -> list[ThreadReply]:
    return [ThreadReply(thread=thread, is_addressed=True, text=words) for thread in threads]


@dataclass
class Round:
    """A review of three lines, and the replies in its threads."""

    github: GitHubServer
    pull: Issue
    review: Review

    def threads(self) -> list[ThreadRequest]:
        """Its conversations, as they are read."""
        task = forge_for(self.github).read(trigger(self.review))
        assert task.pull is not None
        threads = [t for t in task.pull.threads if t.comments[0].review == self.review.id]
        return [ThreadRequest(label=f"T{n}", thread=t) for n, t in enumerate(threads, start=1)]

    def give(self, replies: Sequence[ThreadReply], review: Review | None = None) -> AnsweredThreads:
        """Reply to the request of a review, by default this one."""
        patch = reports.patch("a.py").model_copy(update={"commit": COMMIT})
        report = reports.report(trigger=trigger(review or self.review), patch=patch)
        return forge_for(self.github).answer_threads(report, replies, COMMIT)

    def ours(self) -> list[ReviewComment]:
        return [c for c in self.pull.review_comments if c.author.login == BOT]


@pytest.fixture
def stage(github: GitHubServer, pull: Issue) -> Round:
    github.advance(5)
    lines = tuple(("a.py", n, f"@agent change {n}") for n in (28, 30, 31))
    made = github.add_review(pull, "", "alice", comments=lines)
    github.advance(5)
    return Round(github, pull, made)


def test_each_thread_gets_one_reply_with_the_commit(stage: Round) -> None:
    threads = stage.threads()
    given = stage.give(done(threads[:2]))
    first, second = stage.ours()
    assert (first.in_reply_to, second.in_reply_to) == tuple(c.id for c in stage.review.comments[:2])
    page = f"{stage.github.server_url}/{NAME}/pull/{stage.pull.number}/commits/{COMMIT}"
    assert first.body.rstrip().endswith(f"Changed.\n\nDone in [`{COMMIT[:12]}`](<{page}>).")
    assert given.url.endswith(f"#discussion_r{first.id}")
    assert given.missing_places == ()


def test_a_second_attempt_finds_replies_of_the_first(stage: Round) -> None:
    replies = done(stage.threads())
    stage.give(replies[:1])
    stage.give(replies)
    stage.github.advance(60)
    stage.give(replies)
    assert [c.in_reply_to for c in stage.ours()] == [c.id for c in stage.review.comments]


@pytest.mark.attack
def test_a_forged_marker_suppresses_no_reply(stage: Round) -> None:
    """Somebody forges the marker of a reply to a thread: the reply is published."""
    [thread] = stage.threads()[:1]
    forged = thread_marker(f"review:{stage.review.id}", thread.thread.id)
    root = stage.review.comments[0]
    stage.github.add_review_comment(stage.pull, "a.py", 28, forged, "eve", in_reply_to=root)
    stage.give(done([thread]))
    assert [c.in_reply_to for c in stage.ours()] == [root.id]


def test_a_deleted_thread_is_named_and_the_others_get_replies(stage: Round) -> None:
    threads = stage.threads()
    stage.pull.review_comments.remove(stage.review.comments[0])
    given = stage.give(done(threads))
    assert given.missing_places == ("a.py:28",)
    assert len(stage.ours()) == 2


def test_the_answer_to_a_question_in_a_thread_is_found_again(stage: Round) -> None:
    question = trigger(
        stage.review, kind=TriggerKind.REVIEW_COMMENT, comment_id=stage.review.comments[0].id
    )
    assert question.in_thread
    [thread] = stage.threads()[:1]
    forge = forge_for(stage.github)
    forge.answer_threads(reports.report(trigger=question), done([thread]), "")
    assert forge.find_publication(question) is None, "an answer among others is not the whole"
    stage.github.advance(5)
    later = question.model_copy(update={"key": "review:9"})
    whole = [ThreadReply(thread=thread, text="Because.", is_only_answer=True)]
    given = forge.answer_threads(reports.report(trigger=later), whole, "")
    found = forge.find_publication(later)
    assert found is not None
    assert found.comment_url == given.url
