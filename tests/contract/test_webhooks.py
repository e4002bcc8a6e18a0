"""Tests of webhook payloads: those of the test GitHub, and published examples."""

import pytest

from tests.parts import published as source
from tests.parts.github import GitHubServer
from tests.parts.github_server import description
from tests.parts.github_server.description import Description
from tests.parts.github_server.state import App


@pytest.fixture(scope="session")
def described() -> Description:
    return description.load(source.require(source.OPENAPI))


@pytest.fixture(params=[False, True], ids=["repository webhook", "App's webhook"])
def app(request: pytest.FixtureRequest, github: GitHubServer) -> App | None:
    github.create_repository("octo/demo", files={"a.txt": "one\n"})
    return github.add_app("resolver") if request.param else None


@pytest.mark.parametrize("action", ["created", "edited", "deleted"])
def test_an_issue_comment_event_matches_githubs_schema(
    github: GitHubServer, described: Description, app: App | None, action: str
) -> None:
    issue = github.create_issue("octo/demo", "t", "b", author="bob", labels=("bug",))
    comment = github.add_comment(issue, "@agent fix", "alice")
    payload = github.event_issue_comment(comment, action, app=app)
    assert described.payload_problems("issue_comment", payload) == []
    assert payload["sender"]["login"] == "alice"


def test_a_comment_on_a_pull_request_is_distinguished_from_one_on_an_issue(
    github: GitHubServer, described: Description, app: App | None
) -> None:
    github.commit("octo/demo", "work", {"a.txt": "two\n"})
    pull = github.create_pull("octo/demo", "work")
    payload = github.event_issue_comment(github.add_comment(pull, "@agent", "alice"), app=app)
    assert described.payload_problems("issue_comment", payload) == []
    assert payload["issue"]["pull_request"]["merged_at"] is None


@pytest.mark.parametrize("action", ["opened", "edited", "reopened"])
def test_an_issues_event_matches_githubs_schema(
    github: GitHubServer, described: Description, app: App | None, action: str
) -> None:
    issue = github.create_issue("octo/demo", "t", None, author="bob")
    payload = github.event_issues(issue, action, app=app)
    assert described.payload_problems("issues", payload) == []


def test_a_labeled_event_names_the_label_and_its_author(
    github: GitHubServer, described: Description, app: App | None
) -> None:
    issue = github.create_issue("octo/demo", "t", author="bob")
    payload = github.event_issue_labeled(issue, "agent", sender="carol", app=app)
    assert described.payload_problems("issues", payload) == []
    assert (payload["label"]["name"], payload["sender"]["login"]) == ("agent", "carol")
    assert [label["name"] for label in payload["issue"]["labels"]] == ["agent"]


def test_a_review_comment_event_matches_githubs_schema(
    github: GitHubServer, described: Description, app: App | None
) -> None:
    github.commit("octo/demo", "work", {"a.txt": "one\ntwo\n"})
    pull = github.create_pull("octo/demo", "work")
    comment = github.add_review_comment(pull, "a.txt", 2, "why?", "bob")
    payload = github.event_review_comment(comment, app=app)
    assert described.payload_problems("pull_request_review_comment", payload) == []


@pytest.mark.parametrize("state", ["COMMENTED", "APPROVED", "CHANGES_REQUESTED"])
def test_a_review_event_matches_githubs_schema(
    github: GitHubServer, described: Description, app: App | None, state: str
) -> None:
    github.commit("octo/demo", "work", {"a.txt": "one\ntwo\n"})
    review = github.add_review(github.create_pull("octo/demo", "work"), "so it is", "bob", state)
    payload = github.event_review(review, app=app)
    assert described.payload_problems("pull_request_review", payload) == []
    assert payload["review"]["state"] == state.lower()


def test_a_wrong_payload_is_found(github: GitHubServer, described: Description) -> None:
    github.create_repository("octo/demo")
    payload = github.event_issues(github.create_issue("octo/demo", "t"))
    assert described.payload_problems("issues", payload | {"issue": {"number": "1"}})
    assert described.payload_problems("issues", payload | {"action": "exploded"})
