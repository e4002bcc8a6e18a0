"""A fresh request on an issue whose pull request of ours is still open works on that one."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.parts.github import GitHubServer
from tests.parts.github_server.routes_activity import note_pushes
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish
from tests.runs.test_continue import DOCS, Continuing, published
from tests.runs.test_github import REPOSITORY

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
    """Whole runs, because the second has to find and add to what the first opened."""
    pull = published(scene)
    assert pull.pull is not None
    # The settings are those of the default branch: here, they would forbid the change.
    files = {"notes.txt": "x\n", ".github/resolver.yml": "protected_paths: [calc.py]\n"}
    theirs = scene.github.commit(REPOSITORY, pull.pull.head, files, "Note", "mona")
    title, text = pull.title, pull.body or ""
    right(done := follow(scene))
    assert scene.pulls() == [pull] and scene.branches() == [pull.pull.head]
    assert scene.git("rev-parse", f"refs/heads/{pull.pull.head}^") == theirs
    assert scene.git("diff", "--name-only", theirs, tip(scene, pull)) == "calc.py"
    assert "a + b" in scene.git("show", f"refs/heads/{pull.pull.head}:calc.py")
    assert done.outcome["branch"] == pull.pull.head
    told = scene.told()
    assert f"Resolver added a commit to [#{pull.number}]" in told and "It divides by two." in told
    assert len(scene.issue.comments) == 4, "one comment for each request"
    assert f"pull request #{pull.number}" in scene.last_request
    body = pull.body or ""
    assert pull.title == title and text.split("-->\n\n", 1)[1].strip() in body
    assert body.count(f"Fixes #{scene.issue.number}") >= 1 and "divides by two" in body
    before = tip(scene, pull)
    scene.endpoint.script(bash("cat calc.py"), finish("It subtracts."))
    right(scene.ask("@agent why does add subtract?"))
    assert "a - b" in scene.last_request and tip(scene, pull) == before, "read at another branch"


def died_after_its_push(scene: Continuing) -> dict[str, Any]:
    """The event of a request whose run has pushed and could tell of nothing."""
    scene.github.advance(2)
    comment = scene.github.add_comment(scene.issue, ASKED, "mona")
    event = scene.github.event_issue_comment(comment)
    scene.endpoint.script(HALF, HALVES)
    scene.github.fail_next("PATCH", r"/pulls/\d+$", 422, times=99)
    scene.github.fail_next("PATCH", r"/issues/comments/\d+$", 422, times=99)
    scene.github.fail_next("POST", rf"/issues/{scene.issue.number}/comments$", 422, times=99)
    assert scene.action(event).exit_code == 1
    scene.github.app.faults = type(scene.github.app.faults)()
    return event


def test_a_run_that_died_finds_its_commit_in_what_was_merged_since(scene: Continuing) -> None:
    """Whole runs, because one has to die between its push and its comment."""
    pull = published(scene)
    event = died_after_its_push(scene)
    assert pull.pull is not None
    pull.state, pull.pull.merged_at = "closed", scene.github.world.now()
    asked = len(scene.endpoint.requests)
    right(scene.action(event))
    assert len(scene.endpoint.requests) == asked, "it was done again"
    assert scene.pulls() == [pull] and f"[#{pull.number}]" in scene.told()


def test_nobody_who_may_not_start_work_has_our_branches_looked_through(scene: Continuing) -> None:
    branch = f"agent/issue-{scene.issue.number}-x"
    scene.github.commit(REPOSITORY, branch, {"x.py": "1\n"}, "x", "resolver-bot")
    scene.github.create_pull(REPOSITORY, branch, "Fix it", "", author="resolver-bot")
    before = len(scene.github.requests)
    assert scene.ask(ASKED, author="mallory").exit_code != 0
    asked = [each.path for each in scene.github.requests[before:]]
    assert not any("matching-refs" in path or "/activity" in path for path in asked), asked
    assert sum(path.endswith("/pulls") for path in asked) <= 1


def test_what_was_pushed_after_the_request_is_not_read_and_stays(scene: Continuing) -> None:
    """Whole runs, because neither the model nor the push may see the later commit."""
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
    """Whole runs, because the change has to conflict with a push."""
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


def test_a_run_that_follows_goes_on_after_its_limit(scene: Continuing) -> None:
    """Whole runs, because the third continues the log of one that followed."""
    pull = published(scene)
    before = tip(scene, pull)
    scene.endpoint.script(HALF, bash("echo looked"))
    limited = scene.ask(ASKED, **{"INPUT_MAX-ITERATIONS": "2"})
    assert limited.exit_code == 4, limited.stdout + limited.stderr
    scene.endpoint.script(HALVES)
    right(scene.ask("@agent continue"))
    assert scene.pulls() == [pull] and scene.branches() == [pull.pull.head if pull.pull else ""]
    assert scene.git("rev-parse", f"{tip(scene, pull)}^") == before


def pushed_by_mona(scene: Continuing, pull: Issue, files: dict[str, str]) -> str:
    assert pull.pull is not None
    made: str = scene.github.commit(REPOSITORY, pull.pull.head, files, "Late", "mona")
    return made


def files_at(scene: Continuing, commit: str) -> list[str]:
    return scene.git("ls-tree", "-r", "--name-only", commit).split()


def say_so(scene: Continuing, **environment: str) -> Ended:
    scene.endpoint.script(DOCS, finish("Say so\n\nIt says that it adds."))
    return scene.ask("@agent continue, and say so in the README", **environment)


@pytest.mark.parametrize(("first", "how"), [("a fresh request", "leave"), ("continue", "merge")])
def test_what_an_earlier_run_was_put_on_top_of_stays_when_it_is_gone_on_with(
    scene: Continuing, first: str, how: str
) -> None:
    """Whole runs, because each starts from what the one before it left on the branch."""
    moved = {"RESOLVER_BASE_MOVED": how}
    pull = published(scene)
    late = {"late.txt": "x\n", ".github/workflows/ci.yml": "on: push\n"}
    if first == "continue":
        theirs = pushed_by_mona(scene, pull, late)
        scene.endpoint.script(HALF, HALVES)
        right(scene.ask("@agent continue, and add half()", **moved))
        assert theirs in scene.git("log", "-1", "--format=%P", tip(scene, pull)).split()
    else:
        event = asked_before(scene)
        pushed_by_mona(scene, pull, late)
        scene.endpoint.script(HALF, HALVES)
        right(scene.action(event, **moved))
    before = tip(scene, pull)
    right(say_so(scene, **moved))
    assert scene.git("rev-parse", f"{tip(scene, pull)}^") == before
    assert scene.git("diff", "--name-only", before, tip(scene, pull)) == "README.md"
    assert {*late} <= {*files_at(scene, tip(scene, pull))} and scene.pulls() == [pull]
    if first == "continue":
        return
    scene.endpoint.script(finish("It is all there."))
    again = scene.ask("@agent continue")
    assert again.exit_code == 3, again.stdout + again.stderr
    assert "nothing more to change" in scene.told()
    scene.endpoint.script(bash("git checkout -q HEAD -- README.md"), finish("Take it back"))
    right(scene.ask("@agent continue, without the README"))
    assert scene.git("diff", "--name-only", before, tip(scene, pull)) == ""


def test_what_lands_on_an_earlier_runs_commit_is_held_against_the_policy(
    scene: Continuing,
) -> None:
    """Whole runs, because the policy has to judge the result of a merge with earlier work."""
    pull = published(scene)
    event = asked_before(scene)
    assert pull.pull is not None
    text = scene.git("show", f"refs/heads/{pull.pull.head}:calc.py") + "\n"
    guarded = ".github/workflows/calc.yml"
    scene.github.commit(
        REPOSITORY, pull.pull.head, {"calc.py": None, guarded: text}, "Move", "mona"
    )
    scene.endpoint.script(DOCS, finish("Say so\n\nIt says that it adds."))
    right(scene.action(event))
    before = tip(scene, pull)
    scene.endpoint.script(HALF, HALVES)
    done = scene.ask("@agent continue, and add half()")
    assert done.exit_code != 0 and tip(scene, pull) == before
    assert guarded in scene.told() and "protected" in scene.told()


def test_a_protected_branch_is_left_alone_for_a_new_pull_request(scene: Continuing) -> None:
    """Whole runs, because the refused push has to lead to another branch."""
    pull = published(scene)
    before = tip(scene, pull)
    assert pull.pull is not None
    with (scene.github.repository(REPOSITORY).git_dir / "protected").open("a") as listed:
        listed.write(f"refs/heads/{pull.pull.head}\n")
    right(follow(scene))
    _, new = scene.pulls()
    assert (
        tip(scene, pull) == before
        and "is protected and Resolver is not allowed to push" in scene.told()
    )
    assert "half" in scene.git("show", f"{tip(scene, new)}:calc.py")


def test_a_commit_of_a_person_is_not_called_ours(scene: Continuing) -> None:
    """Whole runs, because a person has to push the same change meanwhile."""
    pull = published(scene)
    event = asked_before(scene)
    text = scene.git("show", f"{tip(scene, pull)}:calc.py")
    same = {"calc.py": f"{text}\n\ndef half(a):\n    return a / 2\n"}
    theirs = pushed_by_mona(scene, pull, same)
    body = pull.body
    scene.endpoint.script(HALF, HALVES)
    done = scene.action(event)
    assert done.exit_code == 3, done.stdout + done.stderr
    assert tip(scene, pull) == theirs and pull.body == body and scene.pulls() == [pull]
    assert (
        "Resolver added a commit" not in scene.told() and "nothing more to change" in scene.told()
    )


def ended_meanwhile(scene: Continuing, pull: Issue, files: dict[str, str]) -> Ended:
    """A request while which the pull request is squashed into main, with these files."""
    event = asked_before(scene)
    scene.github.commit(REPOSITORY, "main", files, "Make add add (#2)", "mona")
    answers = [HALF, HALVES]

    def answered(_: dict[str, Any]) -> Any:
        assert pull.pull is not None
        pull.state, pull.pull.merged_at = "closed", scene.github.world.now()
        return answers.pop(0)

    scene.endpoint.answer_with(answered)
    return scene.action(event)


def test_what_is_merged_while_it_works_is_not_proposed_again(scene: Continuing) -> None:
    """Whole runs, because the pull request has to be merged while the agent works."""
    pull = published(scene)
    text = scene.git("show", f"{tip(scene, pull)}:calc.py") + "\n"
    right(ended_meanwhile(scene, pull, {"calc.py": text}))
    _, new = scene.pulls()
    assert scene.git("rev-parse", f"{tip(scene, new)}^") == scene.git("rev-parse", "main")
    assert "-" not in scene.git("diff", "--numstat", "main", tip(scene, new)).split()
    changed = scene.git("diff", "--unified=0", "main", tip(scene, new))
    assert "+def half(a):" in changed and "a + b" not in changed
    assert "was merged or closed during the run" in scene.told() and "contains only" in scene.told()


def test_where_it_can_not_stand_alone_it_says_what_it_carries(scene: Continuing) -> None:
    """Whole runs, because the pull request has to be merged while the agent works."""
    pull = published(scene)
    right(ended_meanwhile(scene, pull, {"calc.py": "0\n"}))
    _, new = scene.pulls()
    assert scene.git("rev-parse", f"{tip(scene, new)}^") == tip(scene, pull)
    assert (
        "is merged or closed" in scene.told()
        and "It also contains the whole change of" in scene.told()
    )
