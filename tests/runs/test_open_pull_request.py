"""A new request on an issue adds to Resolver's open pull request for it.

tests/publishing decides what happens to a commit where others have pushed, and test_early_ends.py
what happens to one that was pushed before.
"""

from collections.abc import Iterator

import pytest

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish
from tests.runs.test_continue import Continuing, published
from tests.runs.test_github import REPOSITORY

HALF = bash("printf '\\ndef half(a):\\n    return a / 2\\n' >> calc.py")
HALVES = finish("Add half to calc\n\nIt divides by two.")


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


def test_a_fresh_request_adds_to_the_open_pull_request(scenario: Continuing) -> None:
    """Whole runs, because the second has to find and add to what the first opened."""
    pull = published(scenario)
    assert pull.pull is not None
    # The settings are those of the default branch: here, they would forbid the change.
    files = {"notes.txt": "x\n", ".github/resolver.yml": "protected_paths: [calc.py]\n"}
    pushed_commit = scenario.github.commit(REPOSITORY, pull.pull.head, files, "Note", "mona")
    title, text = pull.title, pull.body
    scenario.endpoint.script(HALF, HALVES)
    right(done := scenario.ask("@agent also add half()"))
    assert scenario.pulls() == [pull] and scenario.branches() == [pull.pull.head]
    assert scenario.git("rev-parse", f"refs/heads/{pull.pull.head}^") == pushed_commit
    assert scenario.git("diff", "--name-only", pushed_commit, tip(scenario, pull)) == "calc.py"
    assert "a + b" in scenario.git("show", f"refs/heads/{pull.pull.head}:calc.py")
    assert done.outcome["branch"] == pull.pull.head
    commit = tip(scenario, pull)[:12]
    assert f"Resolver added the commit `{commit}` to [#{pull.number}]" in scenario.last_comment()
    assert len(scenario.issue.comments) == 4, "one comment for each request"
    assert f"pull request #{pull.number}" in scenario.last_request
    assert (pull.title, pull.body) == (title, text)
    [addition] = pull.comments
    assert f"as requested in #{scenario.issue.number}." in addition.body
    assert "It divides by two." in addition.body
    before = tip(scenario, pull)
    scenario.endpoint.script(bash("cat calc.py"), finish("It subtracts."))
    right(scenario.ask("@agent ask why does add subtract?"))
    assert "a - b" in scenario.last_request and tip(scenario, pull) == before, (
        "read at another branch"
    )
