"""Resolver's own login, which is asked of GitHub where an event can't be understood without it."""

from pathlib import Path
from typing import Any

from resolver.config.settings import Settings, load_settings
from resolver.runs.common import own_login
from resolver.runs.wiring.sandbox import RunHost
from tests.parts.events import Events
from tests.parts.github import GitHubServer

BOT, REPOSITORY = "resolver-bot", "octo/calc"


def settings(github: GitHubServer, **more: str) -> Settings:
    environment = {
        "GITHUB_TOKEN": github.token_for(BOT, REPOSITORY),
        **github.addresses,
    }
    return load_settings({}, environment | more, {})


def assigned(github: GitHubServer) -> dict[str, Any]:
    events = Events(github, REPOSITORY)
    issue = github.create_issue(REPOSITORY, "add() subtracts", author="zoe")
    return events.subject(issue, "assigned", "mona", assignee=events.account(BOT))


def test_it_is_asked_only_for_an_event_that_names_an_account_and_only_if_it_is_not_set(
    github: GitHubServer, tmp_path: Path
) -> None:
    github.create_repository(REPOSITORY)
    for login in (BOT, "mona", "zoe"):
        github.add_user(login)
    host = RunHost({}, tmp_path)
    payload = assigned(github)
    set_by_operator = settings(github, RESOLVER_BOT_LOGIN="agent[bot]")
    assert own_login(set_by_operator, "issues", payload, host) == "agent[bot]"
    assert own_login(settings(github), "issue_comment", {"action": "created"}, host) == ""
    assert github.requests == []
    assert own_login(settings(github), "issues", payload, host) == BOT
