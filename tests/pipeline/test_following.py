"""A fresh request on an issue whose pull request of ours is still open works on that one."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.parts.github import GitHubServer
from tests.parts.github_server.routes_activity import note_pushes
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish
from tests.pipeline.test_continue import Continuing, published
from tests.pipeline.test_github import FIX, REPOSITORY, SUMMARY

HALF = bash("printf '\\ndef half(a):\\n    return a / 2\\n' >> calc.py")
HALVES = finish("Add half to calc\n\nIt divides by two.")
ASKED = "@agent also add half()"


@pytest.fixture
def scene(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Continuing]:
    made = Continuing(github, command_line, model_endpoint)
    yield made
    wire = b"".join(p.read_bytes() for p in command_line.folder.rglob("*") if p.is_file())
    assert made.token.encode() not in wire, "the token was written to a file"


def right(done: Ended) -> None:
    assert done.exit_code == 0, done.stdout + done.stderr


def tip(scene: Continuing, pull: Issue) -> str:
    assert pull.pull is not None
    return scene.git("rev-parse", f"refs/heads/{pull.pull.head}")


def asked_before(scene: Continuing) -> dict[str, Any]:
    """The event of a request, after which time goes on."""
    note_pushes(scene.github.world, scene.repository)
    scene.github.advance(2)
    comment = scene.github.add_comment(scene.issue, ASKED, "mona")
    scene.github.advance(2)
    return scene.github.event_issue_comment(comment)


def follow(scene: Continuing, asked: str = ASKED) -> Ended:
    scene.endpoint.script(HALF, HALVES)
    return scene.ask(asked)


def test_a_fresh_request_adds_to_the_open_pull_request(scene: Continuing) -> None:
    pull = published(scene)
    assert pull.pull is not None
    theirs = scene.github.commit(REPOSITORY, pull.pull.head, {"notes.txt": "x\n"}, "Note", "mona")
    right(done := follow(scene))
    assert scene.pulls() == [pull] and scene.branches() == [pull.pull.head]
    assert scene.git("rev-parse", f"refs/heads/{pull.pull.head}^") == theirs
    assert scene.git("diff", "--name-only", theirs, tip(scene, pull)) == "calc.py"
    assert "a + b" in scene.git("show", f"refs/heads/{pull.pull.head}:calc.py")
    assert done.outcome["branch"] == pull.pull.head
    told = scene.told()
    assert f"I added a commit to [#{pull.number}]" in told and "It divides by two." in told
    assert len(scene.issue.comments) == 4, "one comment for each request"
    assert f"pull request #{pull.number}" in scene.last_request


def test_the_text_of_the_pull_request_says_what_was_added(scene: Continuing) -> None:
    pull = published(scene)
    title, text = pull.title, pull.body or ""
    right(follow(scene))
    assert pull.title == title
    body = pull.body or ""
    assert text.split("-->\n\n", 1)[1].strip() in body, "what stood there is gone"
    assert body.count(f"Fixes #{scene.issue.number}") >= 1 and "divides by two" in body
    scene.endpoint.script(bash("echo more > more.txt"), finish("Say more\n\nThere is more."))
    right(scene.ask("@agent and say more"))
    body = pull.body or ""
    assert "divides by two" in body and "There is more." in body and scene.pulls() == [pull]


def test_the_same_request_again_adds_nothing_more(scene: Continuing) -> None:
    pull = published(scene)
    scene.github.advance(2)
    comment = scene.github.add_comment(scene.issue, ASKED, "mona")
    event = scene.github.event_issue_comment(comment)
    scene.endpoint.script(HALF, HALVES)
    right(scene.action(event))
    before, asked = tip(scene, pull), len(scene.endpoint.requests)
    again = scene.action(event)
    right(again)
    assert again.outcome["repeated"] is True
    assert (tip(scene, pull), len(scene.endpoint.requests)) == (before, asked)


def test_a_run_that_died_after_its_push_finds_its_commit(scene: Continuing) -> None:
    pull = published(scene)
    scene.github.advance(2)
    comment = scene.github.add_comment(scene.issue, ASKED, "mona")
    event = scene.github.event_issue_comment(comment)
    scene.endpoint.script(HALF, HALVES)
    scene.github.fail_next("PATCH", r"/pulls/\d+$", 422, times=99)
    scene.github.fail_next("PATCH", r"/issues/comments/\d+$", 422, times=99)
    scene.github.fail_next("POST", rf"/issues/{scene.issue.number}/comments$", 422, times=99)
    assert scene.action(event).exit_code == 1
    before, asked = tip(scene, pull), len(scene.endpoint.requests)
    scene.github.app.faults = type(scene.github.app.faults)()
    right(scene.action(event))
    assert (tip(scene, pull), len(scene.endpoint.requests)) == (before, asked)
    assert scene.pulls() == [pull] and f"[#{pull.number}]" in scene.told()


def test_what_was_pushed_after_the_request_is_not_read_and_stays(scene: Continuing) -> None:
    pull = published(scene)
    assert pull.pull is not None
    event = asked_before(scene)
    theirs = scene.github.commit(REPOSITORY, pull.pull.head, {"late.txt": "x\n"}, "Late", "mona")
    scene.endpoint.script(bash("ls"), HALF, HALVES)
    right(scene.action(event))
    assert "late.txt" not in scene.last_request
    assert scene.git("rev-parse", f"refs/heads/{pull.pull.head}^") == theirs
    assert scene.pulls() == [pull] and "pushed to after the request" in scene.told()


def test_what_does_not_go_together_with_a_later_push_is_a_new_pull_request(
    scene: Continuing,
) -> None:
    pull = published(scene)
    assert pull.pull is not None
    event = asked_before(scene)
    theirs = scene.github.commit(REPOSITORY, pull.pull.head, {"calc.py": "0\n"}, "Late", "mona")
    scene.endpoint.script(HALF, HALVES)
    right(scene.action(event))
    assert tip(scene, pull) == theirs
    _, new = scene.pulls()
    assert new.pull is not None and new.pull.base == "main"
    assert "half" in scene.git("show", f"refs/heads/{new.pull.head}:calc.py")


@pytest.mark.parametrize("state", ["merged", "closed"])
def test_work_after_the_pull_request_is_done_is_a_new_one(scene: Continuing, state: str) -> None:
    pull = published(scene)
    assert pull.pull is not None
    pull.state = "closed"
    if state == "merged":
        pull.pull.merged_at = scene.github.world.now()
    right(follow(scene))
    assert len(scene.pulls()) == 2 and len(scene.branches()) == 2


@pytest.mark.parametrize("whose", ["another's", "of another branch", "of another issue"])
def test_a_pull_request_that_is_not_ours_for_this_issue_is_left_alone(
    scene: Continuing, whose: str
) -> None:
    ours = published(scene)
    ours.state = "closed"
    number = scene.issue.number
    author = "mona" if whose == "another's" else "resolver-bot"
    branch = f"agent/issue-{number}-x" if whose != "of another branch" else "feature"
    text = ours.body or ""
    if whose == "of another issue":
        text = text.replace(f"issue={number} ", "issue=999 ")
    scene.github.commit(REPOSITORY, branch, {"x.py": "1\n"}, "x", "mona")
    pull = scene.github.create_pull(REPOSITORY, branch, f"Fix #{number}", text, author=author)
    before = tip(scene, pull)
    right(follow(scene))
    assert tip(scene, pull) == before
    assert len(scene.pulls()) == 3


def test_of_several_the_newest_is_added_to(scene: Continuing) -> None:
    pull = published(scene)
    branch = f"agent/issue-{scene.issue.number}-other"
    scene.github.commit(REPOSITORY, branch, {"x.py": "1\n"}, "x", "resolver-bot")
    newer = scene.github.create_pull(
        REPOSITORY, branch, "Other", pull.body or "", author="resolver-bot"
    )
    before = tip(scene, pull)
    right(follow(scene))
    assert tip(scene, pull) == before
    assert scene.git("log", "-1", "--format=%s", f"refs/heads/{branch}") == "Add half to calc"
    assert len(scene.pulls()) == 2 and f"[#{newer.number}]" in scene.told()


def test_its_settings_are_read_at_the_default_branch(scene: Continuing) -> None:
    pull = published(scene)
    assert pull.pull is not None
    scene.github.commit(
        REPOSITORY, pull.pull.head, {".github/resolver.yml": "protected_paths: [calc.py]\n"}
    )
    right(follow(scene))
    assert scene.pulls() == [pull]


def test_a_run_that_follows_goes_on_after_its_limit(scene: Continuing) -> None:
    pull = published(scene)
    before = tip(scene, pull)
    scene.endpoint.script(HALF, bash("echo looked"))
    limited = scene.ask(ASKED, **{"INPUT_MAX-ITERATIONS": "2"})
    assert limited.exit_code == 4, limited.stdout + limited.stderr
    scene.endpoint.script(HALVES)
    right(scene.ask("@agent continue"))
    assert scene.pulls() == [pull] and scene.branches() == [pull.pull.head if pull.pull else ""]
    assert scene.git("rev-parse", f"{tip(scene, pull)}^") == before


def test_a_question_is_answered_at_the_default_branch(scene: Continuing) -> None:
    pull = published(scene)
    before = tip(scene, pull)
    scene.endpoint.script(bash("cat calc.py"), finish("It subtracts."))
    right(scene.ask("@agent why does add subtract?"))
    assert "a - b" in scene.last_request and tip(scene, pull) == before


def test_a_first_request_opens_a_pull_request_as_ever(scene: Continuing) -> None:
    scene.endpoint.script(FIX, finish(SUMMARY))
    right(scene.ask("@agent please fix this"))
    assert len(scene.pulls()) == 1 and "I opened" in scene.told()
