"""Tests of webhook payloads: those of the test GitHub, against GitHub's description."""

import pytest

from tests.parts import published as source
from tests.parts.events import Events
from tests.parts.github import GitHubServer
from tests.parts.github_server import description


@pytest.fixture(scope="session")
def described() -> description.Description:
    return description.load(source.require(source.OPENAPI))


def test_events_match_githubs_schemas(
    github: GitHubServer, described: description.Description
) -> None:
    github.create_repository("octo/demo", files={"a.txt": "one\n"})
    events = Events(github, "octo/demo")
    issue = github.create_issue("octo/demo", "t", None, author="bob", labels=("bug",))
    github.commit("octo/demo", "work", {"a.txt": "one\ntwo\n"})
    pull = github.create_pull("octo/demo", "work")
    on_pull = github.event_issue_comment(github.add_comment(pull, "@agent", "alice"))
    assert on_pull["issue"]["pull_request"]["merged_at"] is None
    on_code = github.add_review_comment(pull, "a.txt", 2, "why?", "bob")
    reviews = [github.add_review(pull, "x", "bob", state) for state in ("COMMENTED", "APPROVED")]
    opened = events.subject(issue, "opened", "bob")
    payloads = [
        ("issue_comment", github.event_issue_comment(github.add_comment(issue, "x", "alice"))),
        ("issue_comment", on_pull),
        ("issues", opened),
        ("issues", events.subject(issue, "labeled", "carol", label={"name": "agent"})),
        ("pull_request", events.subject(pull, "opened", "bob")),
        ("pull_request_review_comment", events.review_comment(on_code)),
        *(("pull_request_review", events.review(review)) for review in reviews),
    ]
    for name, payload in payloads:
        assert described.payload_problems(name, payload) == []
    assert described.payload_problems("issues", opened | {"issue": {"number": "1"}})
    assert described.payload_problems("issues", opened | {"action": "exploded"})
