"""Tests of reading a pull request and publishing a review, over a real socket."""

from typing import Any

import pytest

from resolver.errors import ForgeError, Refused
from resolver.github.context.visibility import SeenTexts
from resolver.github.text.markers import (
    Ending,
    check_marker,
    review_marker,
    run_marker,
    thread_marker,
)
from resolver.models.pull_request import (
    PullRequestContext,
    Remark,
    Review,
)
from resolver.models.run import Command, Task, Trigger
from tests.github import reports
from tests.github.test_github_reading import BOT, NAME, ask, forge_for
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue

TEXT = "".join(f"{n}\n" for n in range(1, 61))


@pytest.fixture
def pull(github: GitHubServer) -> Issue:
    github.create_repository(NAME, {"a.py": TEXT})
    github.grant("alice", NAME, "write")
    github.commit(NAME, "work", {"a.py": TEXT.replace("30\n", "thirty\n")}, "Say thirty")
    return github.create_pull(NAME, "work", "Say thirty", "So it is.", author="mallory")


def read(github: GitHubServer, trigger: Trigger) -> tuple[Task, PullRequestContext]:
    task = forge_for(github).read(trigger)
    assert task.pull is not None
    return task, task.pull


def test_the_context_of_a_pull_request_is_read(github: GitHubServer, pull: Issue) -> None:
    assert pull.pull is not None
    pull.pull.draft = True
    task, found = read(github, ask(github, pull))
    assert (task.title, task.body, task.base_branch) == ("Say thirty", "So it is.", "main")
    assert (found.number, found.head_branch, found.base_branch) == (pull.number, "work", "main")
    assert found.head == github.repository(NAME).git.tip("work")
    assert (found.head_repository, found.is_fork, found.is_draft) == (NAME, False, True)
    assert (found.author, found.association, found.moved) == ("mallory", "NONE", "")


def test_threads_are_read_page_by_page_with_their_state(github: GitHubServer, pull: Issue) -> None:
    first = github.add_review_comment(pull, "a.py", 30, "Why?", "eve")
    github.add_review_comment(pull, "a.py", 30, "Because.", "alice", in_reply_to=first)
    for n in range(59):
        github.add_review_comment(pull, "a.py", 29, f"thread {n}", "eve").resolved = n % 2 == 0
    github.add_review(pull, "draft", "eve", "PENDING")
    for n in range(51):
        github.add_review(pull, f"review {n}", "eve")
    _, found = read(github, ask(github, pull))
    assert len(found.threads) == 60
    assert [w.body for w in found.threads[0].comments] == ["Why?", "Because."]
    assert [t.is_resolved for t in found.threads[:4]] == [False, True, False, True]
    assert [r.text.body for r in found.reviews] == [f"review {n}" for n in range(51)]
    assert len([r for r in github.requests if r.kind == "graphql"]) == 3, "and two further pages"


def test_resolvers_markers_are_not_reported_as_hidden_text() -> None:
    marker = run_marker("key", Ending.PULL_REQUEST, 1, "run-1")
    for text in (
        f"{marker}\n\nSo it is.",
        f"{check_marker('ci')}\nSo it is.",
        f"{thread_marker('key', 't')}\nSo it is.",
    ):
        seen = SeenTexts(reports.trigger(), BOT)
        assert (seen.clean(text, "#1", BOT), seen.left_out) == ("So it is.", [])
        assert seen.clean(text, "#1", "mallory") == "So it is."
        assert seen.left_out == ["hidden in #1: 1 HTML comment"]


@pytest.mark.parametrize(
    ("command", "verb"), [(Command.REVIEW, "reviewed"), (Command.UPDATE, "updated")]
)
def test_what_only_a_pull_request_can_get_is_refused_on_an_issue(
    github: GitHubServer, pull: Issue, command: Command, verb: str
) -> None:
    issue = github.create_issue(NAME, "It breaks", "x", author="mallory")
    trigger = ask(github, pull).model_copy(update={"number": issue.number, "command": command})
    with pytest.raises(Refused, match=f"only a pull request can be {verb}") as refused:
        forge_for(github).read(trigger)
    assert "pull request" in refused.value.next_step


@pytest.mark.parametrize(
    ("failure", "says", "next_step"),
    [
        ({"type": "FORBIDDEN", "message": "Resource not accessible"}, "403", "permission"),
        ({"type": "NOT_FOUND", "message": "Could not resolve"}, "404", "token"),
        ({"type": "UNPROCESSABLE", "message": "Draft is not supported"}, "422", "GitHub names"),
        ({"message": "Something went wrong while executing your query"}, "502", "try again"),
        ({"type": "RATE_LIMITED", "message": "Too much"}, "rate limit is reached", "try again"),
        ({"message": "You have exceeded a secondary rate limit."}, "rate limit", "try again"),
    ],
    ids=lambda value: value.get("type", "no type") if isinstance(value, dict) else "",
)
def test_a_failed_query_is_reported_by_the_type_of_its_error(
    github: GitHubServer,
    pull: Issue,
    failure: dict[str, str],
    says: str,
    next_step: str,
) -> None:
    trigger = ask(github, pull)
    github.fail_next("POST", "/graphql$", 200, body={"errors": [failure]}, times=9)
    with pytest.raises(ForgeError) as caught:
        forge_for(github).read(trigger)
    assert says in caught.value.what
    assert next_step in f"{caught.value.what} {caught.value.next_step}"


# Publishing


def review(github: GitHubServer, *lines: int, **more: Any) -> Review:
    head = github.repository(NAME).git.tip("work")
    placed = tuple(Remark(path="a.py", line=n, body=f"on {n}") for n in lines)
    return Review(**{"commit": head, "inline_comments": placed, **more})


def report_on(pull: Issue, key: str = "issue_comment:77") -> Any:
    trigger = reports.trigger(
        key=key, number=pull.number, is_pull_request=True, command=Command.REVIEW
    )
    return reports.report(trigger=trigger)


@pytest.mark.attack
def test_a_forged_marker_hides_no_review(github: GitHubServer, pull: Issue) -> None:
    """Somebody forges the marker of a review: the review is published."""
    report = report_on(pull)
    github.add_review(pull, review_marker(report.trigger.key), "eve")
    forge_for(github).publish_review(report, review(github))
    assert len(pull.reviews) == 2


def test_comments_go_into_the_text_if_one_of_them_is_refused(
    github: GitHubServer, pull: Issue
) -> None:
    assert pull.pull is not None
    pull.pull.refused_lines |= {("a.py", 28)}
    done = forge_for(github).publish_review(report_on(pull), review(github, 27, 28))
    [published] = pull.reviews
    assert published.comments == pull.review_comments == []
    assert "on 27" in published.body and "on 28" in published.body
    assert (done.placed, done.in_body) == (0, 2)
