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
