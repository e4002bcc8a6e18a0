"""Who may start work, asked of a GitHub over a real socket."""

from typing import Any

import pytest

from resolver.errors import Refused
from resolver.forge.local import LocalForge
from resolver.model import Actor, Trigger, TriggerKind
from resolver.triggers.permission import authorize
from tests.forge import reports
from tests.forge.test_github_reading import NAME, forge_for
from tests.parts.github import GitHubServer


@pytest.fixture
def server(github: GitHubServer) -> GitHubServer:
    github.create_repository(NAME)
    return github


def asked_by(login: str, **changes: Any) -> Trigger:
    return reports.trigger(actor=Actor(login=login), **changes)


@pytest.mark.parametrize("role", ["admin", "maintain", "write"])
def test_people_with_write_access_may(server: GitHubServer, role: str) -> None:
    server.grant("alice", NAME, role, association="NONE")
    authorize(asked_by("alice"), forge_for(server))


@pytest.mark.parametrize("role", ["triage", "read", None])
@pytest.mark.parametrize("association", ["OWNER", "MEMBER", "CONTRIBUTOR"])
def test_others_may_not_whatever_their_association(
    server: GitHubServer, role: str | None, association: str
) -> None:
    server.grant("mallory", NAME, role, association=association)
    with pytest.raises(Refused, match="mallory has no write access to octo/demo") as told:
        authorize(asked_by("mallory"), forge_for(server))
    assert told.value.next_step


def test_those_on_the_list_may(server: GitHubServer) -> None:
    authorize(asked_by("carol"), forge_for(server), ("dave", "Carol"))


@pytest.mark.parametrize("status", [404, 500, 502])
def test_an_answer_that_cannot_be_had_is_a_no(server: GitHubServer, status: int) -> None:
    server.grant("alice", NAME, "write")
    server.fail_next("GET", "/permission$", status, times=20)
    with pytest.raises(Refused, match="could not be read") as told:
        authorize(asked_by("alice"), forge_for(server))
    assert told.value.next_step


def test_a_rate_limit_is_a_no(server: GitHubServer) -> None:
    server.grant("alice", NAME, "write")
    server.fail_next("GET", "/permission$", 429, headers={"Retry-After": "900"}, times=9)
    with pytest.raises(Refused, match="rate limit"):
        authorize(asked_by("alice"), forge_for(server))


def test_a_hiccup_is_tried_again(server: GitHubServer) -> None:
    server.grant("alice", NAME, "write")
    server.cut_next("GET", "/permission$")
    authorize(asked_by("alice"), forge_for(server))


def test_a_command_line_needs_a_token_that_may_push(server: GitHubServer) -> None:
    server.grant("alice", NAME, "write")
    trigger = asked_by("whoever", kind=TriggerKind.COMMAND_LINE)
    authorize(trigger, forge_for(server, server.token_for("alice")))
    with pytest.raises(Refused, match="may not push"):
        authorize(trigger, forge_for(server, server.token_for("carol")))


def test_a_local_checkout_asks_nobody(tmp_path: Any) -> None:
    forge = LocalForge(tmp_path / "issue.md", "main")
    authorize(asked_by("me", kind=TriggerKind.LOCAL, number=None), forge)
