"""Tests of writes to a failing GitHub, which are retried and done once."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from resolver.errors import ForgeError
from resolver.github.comments.markers import check_marker
from resolver.github.github_forge import GitHubForge
from resolver.models.pull_request import AskedThread, Remark, Review, ThreadReply
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
class Scene:
    """An issue, a pull request for it, and a conversation on a line of that."""

    github: GitHubServer
    issue: Issue
    pull: Issue
    remark: ReviewComment

    def answer(self, forge: GitHubForge) -> object:
        asked = reports.trigger(
            number=self.pull.number,
            is_pull_request=True,
            kind=TriggerKind.REVIEW_COMMENT,
            comment_id=self.remark.id,
            command=Command.QUESTION,
            at=self.remark.created_at,
        )
        read = forge_for(self.github).read(asked).pull
        assert read is not None
        thread = AskedThread(label="T1", thread=read.threads[0])
        replies = [ThreadReply(thread=thread, is_addressed=True, text="Done.")]
        return forge.answer_threads(reports.report(trigger=asked), replies, "", resolve=False)

    def review(self, forge: GitHubForge) -> object:
        asked = reports.trigger(number=self.pull.number, is_pull_request=True)
        tip = self.github.repository(NAME).git.tip("work")
        assert tip is not None
        said = Review(commit=tip, inline_comments=(Remark(path="a.py", line=1, body="Why?"),))
        return forge.publish_review(reports.report(trigger=asked), said)


@pytest.fixture
def scene(github: GitHubServer) -> Scene:
    github.create_repository(NAME, {"a.py": "1\n"})
    issue = github.create_issue(NAME, "It breaks", "Please help", author="alice")
    github.commit(NAME, BRANCH, {"a.py": "2\n"})
    github.commit(NAME, "work", {"a.py": "3\n"})
    pull = github.create_pull(NAME, "work", "Three", "So it is.", author="alice")
    remark = github.add_review_comment(pull, "a.py", 1, "Why?", "alice")
    return Scene(github, issue, pull, remark)


Write = Callable[[Scene, GitHubForge], object]
Count = Callable[[Scene], int]

WRITES: dict[str, tuple[str, Write, Count]] = {
    "pull request": (
        r"/pulls$",
        lambda scene, forge: forge.open_pull_request(report_on(scene.issue), BRANCH),
        lambda scene: sum(i.pull is not None for i in issues(scene)) - 1,
    ),
    "comment": (
        r"/issues/\d+/comments$",
        lambda scene, forge: forge.comment(report_on(scene.issue)),
        lambda scene: len(scene.issue.comments),
    ),
    "progress": (
        r"/issues/\d+/comments$",
        lambda scene, forge: forge.run_comments.write_progress(progress(scene.issue), None),
        lambda scene: len(scene.issue.comments),
    ),
    "review": (
        r"/reviews$",
        lambda scene, forge: scene.review(forge),
        lambda scene: sum(r.author.login == BOT for r in scene.pull.reviews),
    ),
    "reply": (
        r"/replies$",
        lambda scene, forge: scene.answer(forge),
        lambda scene: sum(c.author.login == BOT for c in scene.pull.review_comments),
    ),
    "issue of a check": (
        r"/issues$",
        lambda scene, forge: forge.check_places().open_issue("tests", "main", "c" * 40),
        lambda scene: sum((i.body or "").startswith(check_marker("tests")) for i in issues(scene)),
    ),
}


def issues(scene: Scene) -> list[Issue]:
    return list(scene.github.repository(NAME).issues.values())


@pytest.mark.parametrize("kind", WRITES)
def test_a_write_is_retried_for_minutes_and_done_once(scene: Scene, kind: str) -> None:
    path, write, count = WRITES[kind]
    time = PassingTime()
    limited = {"message": "You have exceeded a secondary rate limit.", "documentation_url": "x"}
    for _ in range(3):
        scene.github.fail_next("POST", path, 502)
        scene.github.fail_next("POST", path, 403, {"Retry-After": "40"}, limited)
        scene.github.cut_next("POST", path)
    scene.github.cut_next("POST", path, after=True)
    write(scene, forge_for(scene.github, retries=time.retries()))
    assert count(scene) == 1
    assert time.now >= 120, "the faults did not last minutes"


@pytest.mark.parametrize("kind", WRITES)
def test_a_write_that_succeeded_with_a_502_is_not_repeated(scene: Scene, kind: str) -> None:
    path, write, count = WRITES[kind]
    scene.github.fail_next("POST", path, 502, after=True)
    write(scene, forge_for(scene.github))
    assert count(scene) == 1


def test_a_write_is_abandoned_at_its_limit_and_reported(scene: Scene) -> None:
    time = PassingTime()
    scene.github.fail_next("POST", r"/pulls$", 502, times=99)
    forge = forge_for(scene.github, retries=time.retries(100.0))
    with pytest.raises(ForgeError, match=r"open a pull request.*502"):
        forge.open_pull_request(report_on(scene.issue), BRANCH)
    assert time.now <= 100
    asked = [each for each in scene.github.requests if each.path.endswith("/pulls")]
    assert sum(each.method == "POST" for each in asked) > 5


def test_a_refused_write_is_not_retried(scene: Scene) -> None:
    time = PassingTime()
    scene.github.fail_next("POST", r"/pulls$", 422, times=99)
    with pytest.raises(ForgeError, match="422"):
        forge_for(scene.github, retries=time.retries()).open_pull_request(
            report_on(scene.issue), BRANCH
        )
    assert time.waits == []
