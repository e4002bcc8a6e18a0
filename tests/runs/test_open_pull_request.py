"""A new request on an issue adds to Resolver's open pull request for it.

tests/publishing/test_branches.py decides what happens to a commit where others have pushed.
"""

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
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Continuing]:
    made = Continuing(github, command_line, model_endpoint)
    yield made
    wire = b"".join(p.read_bytes() for p in command_line.folder.rglob("*") if p.is_file())
    assert made.token.encode() not in wire, "the token was written to a file"


def right(done: Ended) -> None:
    assert done.exit_code == 0, done.stdout + done.stderr


def tip(scenario: Continuing, pull: Issue) -> str:
    assert pull.pull is not None
    return scenario.git("rev-parse", f"refs/heads/{pull.pull.head}")


def asked_before(scenario: Continuing) -> dict[str, Any]:
    """Return the event of a request, and let time pass after it."""
    note_pushes(scenario.github.world, scenario.repository)
    scenario.github.advance(2)
    comment = scenario.github.add_comment(scenario.issue, ASKED, "mona")
    scenario.github.advance(2)
    return scenario.github.event_issue_comment(comment)


def follow(scenario: Continuing, asked: str = ASKED) -> Ended:
    scenario.endpoint.script(HALF, HALVES)
    return scenario.ask(asked)


def test_a_fresh_request_adds_to_the_open_pull_request(scenario: Continuing) -> None:
    """Whole runs, because the second has to find and add to what the first opened."""
    pull = published(scenario)
    assert pull.pull is not None
    # The settings are those of the default branch: here, they would forbid the change.
    files = {"notes.txt": "x\n", ".github/resolver.yml": "protected_paths: [calc.py]\n"}
    pushed_commit = scenario.github.commit(REPOSITORY, pull.pull.head, files, "Note", "mona")
    title, text = pull.title, pull.body or ""
    right(done := follow(scenario))
    assert scenario.pulls() == [pull] and scenario.branches() == [pull.pull.head]
    assert scenario.git("rev-parse", f"refs/heads/{pull.pull.head}^") == pushed_commit
    assert scenario.git("diff", "--name-only", pushed_commit, tip(scenario, pull)) == "calc.py"
    assert "a + b" in scenario.git("show", f"refs/heads/{pull.pull.head}:calc.py")
    assert done.outcome["branch"] == pull.pull.head
    comments = scenario.last_comment()
    assert (
        f"Resolver added a commit to [#{pull.number}]" in comments
        and "It divides by two." in comments
    )
    assert len(scenario.issue.comments) == 4, "one comment for each request"
    assert f"pull request #{pull.number}" in scenario.last_request
    body = pull.body or ""
    assert pull.title == title and text.split("-->\n\n", 1)[1].strip() in body
    assert body.count(f"Fixes #{scenario.issue.number}") >= 1 and "divides by two" in body
    before = tip(scenario, pull)
    scenario.endpoint.script(bash("cat calc.py"), finish("It subtracts."))
    right(scenario.ask("@agent why does add subtract?"))
    assert "a - b" in scenario.last_request and tip(scenario, pull) == before, (
        "read at another branch"
    )


def died_after_its_push(scenario: Continuing) -> dict[str, Any]:
    """The event of a request whose run has pushed and could tell of nothing."""
    scenario.github.advance(2)
    comment = scenario.github.add_comment(scenario.issue, ASKED, "mona")
    event = scenario.github.event_issue_comment(comment)
    scenario.endpoint.script(HALF, HALVES)
    scenario.github.fail_next("PATCH", r"/pulls/\d+$", 422, times=99)
    scenario.github.fail_next("PATCH", r"/issues/comments/\d+$", 422, times=99)
    scenario.github.fail_next("POST", rf"/issues/{scenario.issue.number}/comments$", 422, times=99)
    assert scenario.action(event).exit_code == 1
    scenario.github.app.faults = type(scenario.github.app.faults)()
    return event


def test_a_run_that_died_finds_its_commit_in_what_was_merged_since(scenario: Continuing) -> None:
    """Whole runs, because one has to die between its push and its comment."""
    pull = published(scenario)
    event = died_after_its_push(scenario)
    assert pull.pull is not None
    pull.state, pull.pull.merged_at = "closed", scenario.github.world.now()
    asked = len(scenario.endpoint.requests)
    right(scenario.action(event))
    assert len(scenario.endpoint.requests) == asked, "it was done again"
    assert scenario.pulls() == [pull] and f"[#{pull.number}]" in scenario.last_comment()


def test_no_branches_are_read_for_a_person_who_may_not_start_work(
    scenario: Continuing,
) -> None:
    """A whole run, because a refusal comes before all requests to GitHub but a few."""
    branch = f"agent/issue-{scenario.issue.number}-x"
    scenario.github.commit(REPOSITORY, branch, {"x.py": "1\n"}, "x", "resolver-bot")
    scenario.github.create_pull(REPOSITORY, branch, "Fix it", "", author="resolver-bot")
    before = len(scenario.github.requests)
    assert scenario.ask(ASKED, author="mallory").exit_code != 0
    asked = [request.path for request in scenario.github.requests[before:]]
    assert not any("matching-refs" in path or "/activity" in path for path in asked), asked
    assert sum(path.endswith("/pulls") for path in asked) <= 1


@pytest.mark.nightly
def test_what_was_pushed_after_the_request_is_not_read_and_stays(scenario: Continuing) -> None:
    """Whole runs, because neither the model nor the push may see the later commit."""
    pull = published(scenario)
    assert pull.pull is not None
    event = asked_before(scenario)
    pushed_commit = scenario.github.commit(
        REPOSITORY, pull.pull.head, {"late.txt": "x\n"}, "Late", "mona"
    )
    scenario.endpoint.script(bash("ls"), HALF, HALVES)
    right(scenario.action(event))
    assert "late.txt" not in scenario.last_request
    assert scenario.git("rev-parse", f"refs/heads/{pull.pull.head}^") == pushed_commit
    assert scenario.pulls() == [pull] and "pushed to after the request" in scenario.last_comment()


@pytest.mark.nightly
def test_what_does_not_go_together_with_a_later_push_is_a_new_pull_request(
    scenario: Continuing,
) -> None:
    """Whole runs, because the change has to conflict with a push."""
    pull = published(scenario)
    assert pull.pull is not None
    event = asked_before(scenario)
    pushed_commit = scenario.github.commit(
        REPOSITORY, pull.pull.head, {"calc.py": "0\n"}, "Late", "mona"
    )
    scenario.endpoint.script(HALF, HALVES)
    right(scenario.action(event))
    assert tip(scenario, pull) == pushed_commit
    _, new = scenario.pulls()
    assert new.pull is not None and new.pull.base == "main"
    assert "half" in scenario.git("show", f"refs/heads/{new.pull.head}:calc.py")


@pytest.mark.nightly
def test_a_run_on_its_open_pull_request_continues_after_its_limit(scenario: Continuing) -> None:
    """Whole runs, because the third continues the log of one that followed."""
    pull = published(scenario)
    before = tip(scenario, pull)
    scenario.endpoint.script(HALF, bash("echo looked"))
    limited = scenario.ask(ASKED, **{"INPUT_MAX-ITERATIONS": "2"})
    assert limited.exit_code == 4, limited.stdout + limited.stderr
    scenario.endpoint.script(HALVES)
    right(scenario.ask("@agent continue"))
    assert scenario.pulls() == [pull] and scenario.branches() == [
        pull.pull.head if pull.pull else ""
    ]
    assert scenario.git("rev-parse", f"{tip(scenario, pull)}^") == before


def pushed_by_mona(scenario: Continuing, pull: Issue, files: dict[str, str]) -> str:
    assert pull.pull is not None
    made: str = scenario.github.commit(REPOSITORY, pull.pull.head, files, "Late", "mona")
    return made


def files_at(scenario: Continuing, commit: str) -> list[str]:
    return scenario.git("ls-tree", "-r", "--name-only", commit).split()


def say_so(scenario: Continuing, **environment: str) -> Ended:
    scenario.endpoint.script(DOCS, finish("Say so\n\nIt says that it adds."))
    return scenario.ask("@agent continue, and say so in the README", **environment)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("first", "how"),
    [("a fresh request", "leave"), ("continue", "merge")],
)
def test_commits_that_others_pushed_stay_when_the_run_continues(
    scenario: Continuing, first: str, how: str
) -> None:
    """Whole runs, because each starts from what the one before it left on the branch, and neither
    the model nor a push may see what is pushed after the request."""
    moved = {"RESOLVER_BASE_MOVED": how}
    pull = published(scenario)
    late = {"late.txt": "x\n", ".github/workflows/ci.yml": "on: push\n"}
    if first == "continue":
        pushed_commit = pushed_by_mona(scenario, pull, late)
        scenario.endpoint.script(HALF, HALVES)
        right(scenario.ask("@agent continue, and add half()", **moved))
        assert (
            pushed_commit in scenario.git("log", "-1", "--format=%P", tip(scenario, pull)).split()
        )
    else:
        event = asked_before(scenario)
        pushed_by_mona(scenario, pull, late)
        scenario.endpoint.script(bash("ls"), HALF, HALVES)
        right(scenario.action(event, **moved))
        assert "calc.py" in scenario.last_request and "late.txt" not in scenario.last_request
        assert "pushed to after the request" in scenario.last_comment()
    before = tip(scenario, pull)
    right(say_so(scenario, **moved))
    assert scenario.git("rev-parse", f"{tip(scenario, pull)}^") == before
    assert scenario.git("diff", "--name-only", before, tip(scenario, pull)) == "README.md"
    assert {*late} <= {*files_at(scenario, tip(scenario, pull))} and scenario.pulls() == [pull]
    if first == "continue":
        return
    scenario.endpoint.script(finish("It is all there."))
    again = scenario.ask("@agent continue")
    assert again.exit_code == 3, again.stdout + again.stderr
    assert "nothing more to change" in scenario.last_comment()
    scenario.endpoint.script(bash("git checkout -q HEAD -- README.md"), finish("Take it back"))
    right(scenario.ask("@agent continue, without the README"))
    assert scenario.git("diff", "--name-only", before, tip(scenario, pull)) == ""


def test_what_lands_on_an_earlier_runs_commit_is_held_against_the_policy(
    scenario: Continuing,
) -> None:
    """Whole runs, because the policy has to judge the result of a merge with earlier work."""
    pull = published(scenario)
    event = asked_before(scenario)
    assert pull.pull is not None
    text = scenario.git("show", f"refs/heads/{pull.pull.head}:calc.py") + "\n"
    guarded = ".github/workflows/calc.yml"
    scenario.github.commit(
        REPOSITORY, pull.pull.head, {"calc.py": None, guarded: text}, "Move", "mona"
    )
    scenario.endpoint.script(DOCS, finish("Say so\n\nIt says that it adds."))
    right(scenario.action(event))
    before = tip(scenario, pull)
    scenario.endpoint.script(HALF, HALVES)
    done = scenario.ask("@agent continue, and add half()")
    assert done.exit_code != 0 and tip(scenario, pull) == before
    assert guarded in scenario.last_comment() and "protected" in scenario.last_comment()


@pytest.mark.nightly
def test_a_protected_branch_is_left_alone_for_a_new_pull_request(scenario: Continuing) -> None:
    """Whole runs, because the refused push has to lead to another branch."""
    pull = published(scenario)
    before = tip(scenario, pull)
    assert pull.pull is not None
    with (scenario.github.repository(REPOSITORY).git_dir / "protected").open("a") as listed:
        listed.write(f"refs/heads/{pull.pull.head}\n")
    right(follow(scenario))
    _, new = scenario.pulls()
    assert (
        tip(scenario, pull) == before
        and "is protected and Resolver is not allowed to push" in scenario.last_comment()
    )
    assert new.pull is not None and new.pull.base == "main"
    assert "half" in scenario.git("show", f"{tip(scenario, new)}:calc.py")


@pytest.mark.nightly
def test_a_commit_of_a_person_is_not_called_ours(scenario: Continuing) -> None:
    """Whole runs, because a person has to push the same change meanwhile."""
    pull = published(scenario)
    event = asked_before(scenario)
    text = scenario.git("show", f"{tip(scenario, pull)}:calc.py")
    same = {"calc.py": f"{text}\n\ndef half(a):\n    return a / 2\n"}
    pushed_commit = pushed_by_mona(scenario, pull, same)
    body = pull.body
    scenario.endpoint.script(HALF, HALVES)
    done = scenario.action(event)
    assert done.exit_code == 3, done.stdout + done.stderr
    assert tip(scenario, pull) == pushed_commit and pull.body == body and scenario.pulls() == [pull]
    assert (
        "Resolver added a commit" not in scenario.last_comment()
        and "nothing more to change" in scenario.last_comment()
    )


def ended_meanwhile(scenario: Continuing, pull: Issue, files: dict[str, str]) -> Ended:
    """A request while which the pull request is squashed into main, with these files."""
    event = asked_before(scenario)
    scenario.github.commit(REPOSITORY, "main", files, "Make add add (#2)", "mona")
    answers = [HALF, HALVES]

    def answered(_: dict[str, Any]) -> Any:
        assert pull.pull is not None
        pull.state, pull.pull.merged_at = "closed", scenario.github.world.now()
        return answers.pop(0)

    scenario.endpoint.answer_with(answered)
    return scenario.action(event)


@pytest.mark.nightly
def test_what_is_merged_while_it_works_is_not_proposed_again(scenario: Continuing) -> None:
    """Whole runs, because the pull request has to be merged while the agent works."""
    pull = published(scenario)
    text = scenario.git("show", f"{tip(scenario, pull)}:calc.py") + "\n"
    right(ended_meanwhile(scenario, pull, {"calc.py": text}))
    _, new = scenario.pulls()
    assert scenario.git("rev-parse", f"{tip(scenario, new)}^") == scenario.git("rev-parse", "main")
    assert "-" not in scenario.git("diff", "--numstat", "main", tip(scenario, new)).split()
    changed = scenario.git("diff", "--unified=0", "main", tip(scenario, new))
    assert "+def half(a):" in changed and "a + b" not in changed
    assert (
        "was merged or closed during the run" in scenario.last_comment()
        and "contains only" in scenario.last_comment()
    )


@pytest.mark.nightly
def test_where_it_can_not_stand_alone_it_says_what_it_carries(scenario: Continuing) -> None:
    """Whole runs, because the pull request has to be merged while the agent works."""
    pull = published(scenario)
    right(ended_meanwhile(scenario, pull, {"calc.py": "0\n"}))
    _, new = scenario.pulls()
    assert scenario.git("rev-parse", f"{tip(scenario, new)}^") == tip(scenario, pull)
    assert (
        "is merged or closed" in scenario.last_comment()
        and "It also contains the whole change of" in scenario.last_comment()
    )
