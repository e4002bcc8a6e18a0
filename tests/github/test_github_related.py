"""Tests of reading related issues and pull requests of the same repository."""

import pytest

from resolver.models.issue_context import Reference
from resolver.models.run import Task, Trigger
from tests.github.test_github_reading import NAME, ask, forge_for
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue


@pytest.fixture
def issue(github: GitHubServer) -> Issue:
    github.create_repository(NAME, files={"a.py": "x\n"})
    github.grant("alice", NAME, "write")
    return github.create_issue(NAME, "It breaks", "Please help", author="mallory")


def read(github: GitHubServer, trigger: Trigger) -> tuple[Task, dict[int, Reference]]:
    task = forge_for(github).read(trigger)
    return task, {reference.number: reference for reference in task.references}


def test_references_in_title_body_comments_and_request_are_read(
    github: GitHubServer, issue: Issue
) -> None:
    numbers = [
        github.create_issue(NAME, f"other {n}", f"words {n}", author="bob").number for n in range(4)
    ]
    github.edit_issue(issue, title=f"As #{numbers[0]}", body=f"see {NAME}#{numbers[1]}, #999")
    github.add_comment(issue, f"{github.server_url}/{NAME}/issues/{numbers[2]}", "carol")
    _, found = read(github, ask(github, issue, f"@agent fix it like #{numbers[3]} does"))
    assert list(found) == [numbers[3], numbers[0], numbers[1], numbers[2]]
    first = found[numbers[3]]
    assert (first.title, first.body, first.author) == ("other 3", "words 3", "bob")
    assert (first.relation, first.state, first.is_pull_request) == ("mentioned", "open", False)
    assert first.association == "NONE"


def test_a_pull_request_that_closes_it_is_read(github: GitHubServer, issue: Issue) -> None:
    github.commit(NAME, "work", {"a.py": "y\n"})
    pull = github.create_pull(NAME, "work", "A fix", f"Fixes #{issue.number}", author="carol")
    _, found = read(github, ask(github, issue))
    assert {n: r.relation for n, r in found.items()} == {pull.number: "closes it"}
    assert found[pull.number].is_pull_request


def test_references_opened_or_edited_later_are_not_used(github: GitHubServer, issue: Issue) -> None:
    early = github.create_issue(NAME, "harmless", "harmless", author="bob")
    quiet = github.create_issue(NAME, "quiet", "words", author="bob")
    github.edit_issue(issue, body=f"see #{early.number} #{quiet.number} #{quiet.number + 1}")
    trigger = ask(github, issue)
    github.edit_issue(early, title="EVIL", body="EVIL")
    github.add_comment(quiet, "EVIL", "mallory")
    github.create_issue(NAME, "EVIL", "EVIL", author="mallory")
    task, found = read(github, trigger)
    assert "EVIL" not in task.model_dump_json()
    assert (found[early.number].title, found[early.number].is_late) == ("harmless", True)
    assert (found[quiet.number].body, found[quiet.number].is_late) == ("words", False)
    assert f"the text of #{early.number}, edited after the request" in task.left_out
    assert f"#{quiet.number + 1}, opened after the request" in task.left_out


def test_other_repositories_are_never_read(github: GitHubServer, issue: Issue) -> None:
    github.create_repository("octo/private", private=True)
    secret = github.create_issue("octo/private", "SECRET", "SECRET", author="octo")
    github.edit_issue(issue, body=f"see octo/private#{secret.number} and octo/private#77")
    token = github.token_for("octo")
    task = forge_for(github, token).read(ask(github, issue))
    assert "SECRET" not in task.model_dump_json()
    assert task.references == ()
    assert any(line.startswith("2 issues of other repositories") for line in task.left_out)


def test_references_beyond_the_maximum_are_counted(github: GitHubServer, issue: Issue) -> None:
    numbers = [github.create_issue(NAME, "o", "x" * 9000, author="bob").number for _ in range(20)]
    github.edit_issue(issue, body=" ".join(f"#{n}" for n in numbers))
    task, found = read(github, ask(github, issue))
    assert list(found) == numbers[:12]
    assert all(len(reference.body) <= 3_000 for reference in found.values())
    assert "8 more issues and pull requests it refers to" in task.left_out


def test_errors_of_reading_references_are_reported_and_stop_nothing(
    github: GitHubServer, issue: Issue
) -> None:
    other = github.create_issue(NAME, "Same here", "as well", author="bob")
    trigger = ask(github, issue, f"@agent fix #{other.number}")
    forge = forge_for(github, attempts=1)
    forge.find_publication(trigger)
    github.fail_next("POST", "graphql", status=502, times=9)
    task = forge.read(trigger)
    assert task.title == "It breaks"
    assert any("could not read what it refers to" in line for line in task.left_out)
