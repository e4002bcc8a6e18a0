"""`resolver outcomes` on a repository whose pull requests ended in every way."""

import json
from datetime import timedelta
from typing import Any

import pytest

from resolver.cli.main import run
from resolver.github.text.markers import Ending, run_marker
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue

REPOSITORY = "octo/sums"
BOT = "resolver[bot]"
PERSON = "mona"
DAY = 86_400
HOSTILE = "Add \x1b]0;owned\x07\x1b[2Jsplit ::error::x"


class Scenario:
    """Pull requests whose time begins 60 days ago and moves with `advance`."""

    def __init__(self, github: GitHubServer) -> None:
        self.github = github
        github.world.clock_offset = timedelta(days=-60)
        github.create_repository(REPOSITORY, {"README.md": "sums\n"})
        github.add_user(PERSON)
        github.add_user(BOT, "Bot")
        for login in (PERSON, BOT):
            github.grant(login, REPOSITORY, "write")

    @property
    def environment(self) -> dict[str, str]:
        token = self.github.token_for(BOT, REPOSITORY)
        return {"GITHUB_TOKEN": token, "RESOLVER_BOT_LOGIN": BOT, **self.github.addresses}

    def open(self, branch: str, title: str = "Add it", body: str = "", by: str = BOT) -> Issue:
        self.github.commit(REPOSITORY, branch, {f"{branch.rpartition('/')[2]}.py": title}, title)
        return self.github.create_pull(REPOSITORY, branch, title, body, author=by)

    def json(self, capsys: pytest.CaptureFixture[str], *options: str) -> Any:
        assert run(["outcomes", REPOSITORY, "--json", *options], self.environment) == 0
        return json.loads(capsys.readouterr().out)


@pytest.fixture
def scenario(github: GitHubServer) -> Scenario:
    return Scenario(github)


def test_each_pull_request_has_its_outcome(
    scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    github = scenario.github
    first = scenario.open("agent/issue-1-a")
    second = scenario.open("agent/issue-2-b")
    closed = scenario.open("agent/issue-3-c")
    github.advance(3600)
    github.merge_pull(first)
    github.advance(2 * 3600)
    github.merge_pull(second)
    github.close(closed)
    github.advance(40 * DAY)
    open_one = scenario.open("agent/issue-4-d")
    before = len(github.requests)
    data = scenario.json(capsys)
    assert [request.kind for request in github.requests[before:]] == ["graphql"]
    assert {pull["number"]: pull["state"] for pull in data["pull_requests"]} == {
        first.number: "merged",
        second.number: "merged",
        closed.number: "closed",
        open_one.number: "open",
    }
    counts = ("opened", "merged", "closed", "open")
    assert tuple(data[name] for name in counts) == (4, 2, 1, 1)
    assert data["acceptance"] == pytest.approx(2 / 3)
    assert data["median_seconds_to_merge"] == pytest.approx(2 * 3600, abs=60)
    since = f"{open_one.created_at - timedelta(days=1):%Y-%m-%d}"
    assert scenario.json(capsys, "--since", since)["opened"] == 1


@pytest.mark.attack
def test_a_strangers_pull_request_with_our_marker_does_not_count(
    scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody copies Resolver's hidden marker into a pull request: it is none of Resolver's."""
    marker = run_marker("k", Ending.PULL_REQUEST, 1, "20261001-120000-abcdef")
    scenario.open("agent/issue-1-mine", "Eve's", marker, by="eve")
    scenario.open("chore/bump", "Bump", marker)
    data = scenario.json(capsys)
    assert data["pull_requests"] == [] and data["acceptance"] is None


@pytest.mark.attack
def test_the_table_is_safe_to_print(scenario: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    """The title of a pull request controls the terminal: the table of outcomes shows its text."""
    scenario.open("agent/issue-1-split", HOSTILE)
    assert run(["outcomes", REPOSITORY], scenario.environment) == 0
    text = capsys.readouterr().out
    assert "no acceptance rate" in text and "1 open" in text and "Add split" in text
    assert "\x1b" not in text and "\x07" not in text
