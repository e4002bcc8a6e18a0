"""Tests of writes to a failing GitHub, which are retried and done once."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from resolver.errors import ForgeError
from resolver.github.github_forge import GitHubForge
from resolver.github.text.markers import check_marker
from resolver.models.pull_request import Remark, Review, ThreadReply, ThreadRequest
from resolver.models.run import Command, TriggerKind
from tests.github import reports
from tests.github.test_github_comments import progress
from tests.github.test_github_publishing import report_on
from tests.github.test_github_reading import BOT, NAME, forge_for
from tests.parts.clock import PassingTime
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue, ReviewComment

BRANCH = "agent/1-it-breaks"


@dataclass
class Scenario:
    """An issue, a pull request for it, and a conversation on a line of that."""

    github: GitHubServer
    issue: Issue
    pull: Issue
    remark: ReviewComment

    def answer(self, forge: GitHubForge) -> object:
        trigger = reports.trigger(
            number=self.pull.number,
            is_pull_request=True,
            kind=TriggerKind.REVIEW_COMMENT,
            comment_id=self.remark.id,
            command=Command.QUESTION,
            at=self.remark.created_at,
        )
        read = forge_for(self.github).read(trigger).pull
        assert read is not None
        thread = ThreadRequest(label="T1", thread=read.threads[0])
        replies = [ThreadReply(thread=thread, is_addressed=True, text="Done.")]
        return forge.answer_threads(reports.report(trigger=trigger), replies, "")

    def review(self, forge: GitHubForge) -> object:
        trigger = reports.trigger(number=self.pull.number, is_pull_request=True)
        tip = self.github.repository(NAME).git.tip("work")
        assert tip is not None
        review = Review(commit=tip, inline_comments=(Remark(path="a.py", line=1, body="Why?"),))
        return forge.publish_review(reports.report(trigger=trigger), review)


@pytest.fixture
def scenario(github: GitHubServer) -> Scenario:
    github.create_repository(NAME, {"a.py": "1\n"})
    issue = github.create_issue(NAME, "It breaks", "Please help", author="alice")
    github.commit(NAME, BRANCH, {"a.py": "2\n"})
    github.commit(NAME, "work", {"a.py": "3\n"})
    pull = github.create_pull(NAME, "work", "Three", "So it is.", author="alice")
    remark = github.add_review_comment(pull, "a.py", 1, "Why?", "alice")
    return Scenario(github, issue, pull, remark)


Write = Callable[[Scenario, GitHubForge], object]
Count = Callable[[Scenario], int]

WRITES: dict[str, tuple[str, Write, Count]] = {
    "pull request": (
        r"/pulls$",
        lambda scenario, forge: forge.open_pull_request(report_on(scenario.issue), BRANCH),
        lambda scenario: sum(i.pull is not None for i in issues(scenario)) - 1,
    ),
    "comment": (
        r"/issues/\d+/comments$",
        lambda scenario, forge: forge.comment(report_on(scenario.issue)),
        lambda scenario: len(scenario.issue.comments),
    ),
    "progress": (
        r"/issues/\d+/comments$",
        lambda scenario, forge: forge.run_comments.write_progress(progress(scenario.issue), None),
        lambda scenario: len(scenario.issue.comments),
    ),
    "review": (
        r"/reviews$",
        lambda scenario, forge: scenario.review(forge),
        lambda scenario: sum(r.author.login == BOT for r in scenario.pull.reviews),
    ),
    "reply": (
        r"/replies$",
        lambda scenario, forge: scenario.answer(forge),
        lambda scenario: sum(c.author.login == BOT for c in scenario.pull.review_comments),
    ),
    "issue of a check": (
        r"/issues$",
        lambda scenario, forge: forge.check_conversations().open_issue("tests", "main", "c" * 40),
        lambda scenario: sum(
            (i.body or "").startswith(check_marker("tests")) for i in issues(scenario)
        ),
    ),
}


def issues(scenario: Scenario) -> list[Issue]:
    return list(scenario.github.repository(NAME).issues.values())


@pytest.mark.parametrize("kind", WRITES)
def test_a_write_is_retried_for_minutes_and_done_once(scenario: Scenario, kind: str) -> None:
    path, write, count = WRITES[kind]
    time = PassingTime()
    limited = {"message": "You have exceeded a secondary rate limit.", "documentation_url": "x"}
    for _ in range(3):
        scenario.github.fail_next("POST", path, 502)
        scenario.github.fail_next("POST", path, 403, {"Retry-After": "40"}, limited)
        scenario.github.cut_next("POST", path)
    scenario.github.fail_next("POST", path, 502, after=True)
    write(scenario, forge_for(scenario.github, retries=time.retries()))
    assert count(scenario) == 1
    assert time.now >= 120, "the faults did not last minutes"


def test_the_result_replaces_the_progress_after_an_outage(scenario: Scenario) -> None:
    time = PassingTime()
    forge = forge_for(scenario.github, retries=time.retries())
    comment_id = forge.run_comments.write_progress(progress(scenario.issue), None)
    scenario.github.fail_next("PATCH", r"/issues/comments/", 502, times=20)
    forge.comment(report_on(scenario.issue, progress_comment_id=comment_id), 75.0)
    [comment] = scenario.issue.comments
    assert "nothing to change" in comment.body and time.waits


@pytest.mark.parametrize(("status", "is_retried"), [(502, True), (422, False)])
def test_a_write_is_retried_to_its_limit_unless_github_refuses_it(
    scenario: Scenario, status: int, is_retried: bool
) -> None:
    time = PassingTime()
    scenario.github.fail_next("POST", r"/pulls$", status, times=99)
    forge = forge_for(scenario.github, retries=time.retries(100.0))
    with pytest.raises(ForgeError, match=rf"open a pull request.*{status}"):
        forge.open_pull_request(report_on(scenario.issue), BRANCH)
    assert time.now <= 100 and (len(time.waits) > 4) is is_retried
