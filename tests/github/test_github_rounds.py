"""Tests of replying in review threads, over a real socket."""

from collections.abc import Sequence
from typing import Any

import pytest
from markdown_it.tree import SyntaxTreeNode

from resolver.github.text.markdown import markdown_parser
from resolver.github.text.markers import is_thread_reply, thread_marker
from resolver.models.pull_request import AnsweredThreads, ThreadReply, ThreadRequest
from resolver.models.run import Command, Trigger, TriggerKind
from tests.github import reports
from tests.github.test_github_pulls import pull
from tests.github.test_github_reading import BOT, NAME, forge_for
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue, Review, ReviewComment

__all__ = ["pull"]

COMMIT = "c" * 40


@pytest.fixture
def review(github: GitHubServer, pull: Issue) -> Review:
    github.advance(5)
    lines = tuple(("a.py", n, f"@agent change {n}") for n in (28, 30, 31))
    made = github.add_review(pull, "", "alice", comments=lines)
    github.advance(5)
    return made


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


def read_threads(github: GitHubServer, review: Review) -> list[ThreadRequest]:
    """Its conversations, as they are read."""
    task = forge_for(github).read(trigger(review))
    assert task.pull is not None
    threads = [t for t in task.pull.threads if t.comments[0].review == review.id]
    return [ThreadRequest(label=f"T{n}", thread=t) for n, t in enumerate(threads, start=1)]


def done(threads: Sequence[ThreadRequest], words: str = "Changed.") -> list[ThreadReply]:
    return [ThreadReply(thread=thread, is_addressed=True, text=words) for thread in threads]


def give(
    github: GitHubServer,
    review: Review,
    replies: Sequence[ThreadReply],
    commit: str = COMMIT,
    token: str = "",
    **changes: Any,
) -> AnsweredThreads:
    patch = reports.patch("a.py").model_copy(update={"commit": commit or None})
    report = reports.report(trigger=trigger(review), patch=patch, **changes)
    forge = forge_for(github, token) if token else forge_for(github)
    return forge.answer_threads(report, replies, commit)


def ours(pull: Issue) -> list[ReviewComment]:
    return [c for c in pull.review_comments if c.author.login == BOT]


def test_each_thread_gets_one_reply_with_the_commit(
    github: GitHubServer, pull: Issue, review: Review
) -> None:
    threads = read_threads(github, review)
    given = give(github, review, done(threads[:2]))
    first, second = ours(pull)
    assert (first.in_reply_to, second.in_reply_to) == tuple(c.id for c in review.comments[:2])
    page = f"{github.server_url}/{NAME}/pull/{pull.number}/commits/{COMMIT}"
    assert first.body.rstrip().endswith(f"Changed.\n\nDone in [`{COMMIT[:12]}`](<{page}>).")
    assert given.url.endswith(f"#discussion_r{first.id}")
    assert given.missing_places == ()


def test_a_second_attempt_finds_replies_of_the_first(
    github: GitHubServer, pull: Issue, review: Review
) -> None:
    replies = done(read_threads(github, review))
    give(github, review, replies[:1])
    give(github, review, replies)
    github.advance(60)
    give(github, review, replies)
    assert [c.in_reply_to for c in ours(pull)] == [c.id for c in review.comments]


@pytest.mark.attack
def test_a_forged_marker_suppresses_no_reply(
    github: GitHubServer, pull: Issue, review: Review
) -> None:
    """Somebody forges the marker of a reply to a thread: the reply is published."""
    [thread] = read_threads(github, review)[:1]
    forged = thread_marker(f"review:{review.id}", thread.thread.id)
    root = review.comments[0]
    github.add_review_comment(pull, "a.py", 28, forged, "eve", in_reply_to=root)
    give(github, review, done([thread]))
    assert [c.in_reply_to for c in ours(pull)] == [root.id]


def test_another_request_gets_a_reply_of_its_own_in_the_same_thread(
    github: GitHubServer, pull: Issue, review: Review
) -> None:
    threads = read_threads(github, review)[:1]
    give(github, review, done(threads))
    github.advance(5)
    root = review.comments[0]
    later = github.add_review(pull, "", "alice", replies=((root, "@agent and now?"),))
    github.advance(5)
    give(github, later, done(threads, "Once more."))
    assert ["Once more." in c.body for c in ours(pull)] == [False, True]


def test_an_answer_is_not_called_done(github: GitHubServer, pull: Issue, review: Review) -> None:
    replies = [ThreadReply(thread=t, text="It is kept.") for t in read_threads(github, review)]
    give(github, review, replies)
    assert all("It is kept." in c.body and "Done" not in c.body for c in ours(pull))
    assert not any(c.resolved for c in pull.review_comments)


# What can go wrong


def test_a_deleted_thread_is_named_and_the_others_get_replies(
    github: GitHubServer, pull: Issue, review: Review
) -> None:
    threads = read_threads(github, review)
    pull.review_comments.remove(review.comments[0])
    given = give(github, review, done(threads))
    assert given.missing_places == ("a.py:28",)
    assert len(ours(pull)) == 2


HOSTILE = """@octo/owners look: fixes #7, closes octo/other#2 and https://github.com/octo/demo/issues/3
<img src=x onerror=alert(1)> <!-- hidden --> ![pixel](https://evil.example/p.png)
```suggestion
rm -rf /
```
<!-- resolver:thread key=0 -->"""


def test_text_of_the_model_is_inert(github: GitHubServer, pull: Issue, review: Review) -> None:
    give(github, review, done(read_threads(github, review)[:1], HOSTILE))
    [reply] = ours(pull)
    marker, _, words = reply.body.partition("\n")
    assert is_thread_reply(marker, f"review:{review.id}")
    assert "`@octo/owners`" in words
    assert "`#7`" in words and "`octo/other#2`" in words
    assert "`https://github.com/octo/demo/issues/3`" in words
    active = {"html_block", "html_inline", "image"}
    assert not active & {
        node.type for node in SyntaxTreeNode(markdown_parser().parse(words)).walk()
    }
    assert "```suggestion" not in words


# A question in one thread


def test_the_answer_to_a_question_in_a_thread_is_found_again(
    github: GitHubServer, pull: Issue, review: Review
) -> None:
    question = trigger(review, kind=TriggerKind.REVIEW_COMMENT, comment_id=review.comments[0].id)
    assert question.in_thread
    [thread] = read_threads(github, review)[:1]
    forge = forge_for(github)
    forge.answer_threads(reports.report(trigger=question), done([thread]), "")
    assert forge.find_publication(question) is None, "an answer among others is not the whole"
    github.advance(5)
    later = question.model_copy(update={"key": "review:9"})
    whole = [ThreadReply(thread=thread, text="Because.", is_only_answer=True)]
    given = forge.answer_threads(reports.report(trigger=later), whole, "")
    found = forge.find_publication(later)
    assert found is not None
    assert found.comment_url == given.url
