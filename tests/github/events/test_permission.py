"""Who may start work, asked of a GitHub over a real socket."""

from typing import Any

import pytest

from resolver.config.access_policy import AccessPolicy, Level
from resolver.errors import NotAllowed, Refused
from resolver.github.events.permission import authorize
from resolver.github.local_forge import LocalForge
from resolver.models.run import Actor, Trigger, TriggerKind
from tests.github import reports
from tests.github.test_github_reading import BOT, NAME, forge_for
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
    authorize(asked_by("carol"), forge_for(server), AccessPolicy(users=("dave", "Carol")))


def test_those_on_the_other_list_may_not_whatever_they_may_elsewhere(server: GitHubServer) -> None:
    server.grant("alice", NAME, "admin")
    with pytest.raises(NotAllowed, match="may not start work"):
        authorize(asked_by("alice"), forge_for(server), AccessPolicy(("alice",), denied=("ALICE",)))


LEVELS = ["read", "triage", "write", "maintain", "admin"]


@pytest.mark.parametrize("needed", ["triage", "write", "maintain", "admin"])
@pytest.mark.parametrize("role", LEVELS)
def test_the_level_that_is_needed_can_be_lower_or_higher(
    server: GitHubServer, role: str, needed: Level
) -> None:
    server.grant("alice", NAME, role)
    asking, forge = asked_by("alice"), forge_for(server)
    if LEVELS.index(role) >= LEVELS.index(needed):
        authorize(asking, forge, AccessPolicy(level=needed))
    else:
        with pytest.raises(NotAllowed, match=f"no {needed} access.*permission: {role}"):
            authorize(asking, forge, AccessPolicy(level=needed))


def test_a_role_of_the_organizations_own_counts_as_what_it_is_built_on(
    server: GitHubServer,
) -> None:
    server.grant("alice", NAME, "write")
    answer = {"permission": "write", "role_name": "release-captain", "user": None}
    server.fail_next("GET", "/permission$", 200, body=answer)
    authorize(asked_by("alice"), forge_for(server))
    server.fail_next("GET", "/permission$", 200, body={**answer, "permission": "read"})
    with pytest.raises(NotAllowed):
        authorize(asked_by("alice"), forge_for(server))


def test_members_of_a_team_on_the_list_may(server: GitHubServer) -> None:
    server.add_member("octo/Core", "carol")
    server.add_member("octo/core", "dave", "pending")
    server.add_user("eve")
    who = AccessPolicy(teams=("octo/docs", "octo/core"))
    server.grant("mona", NAME, "write")
    token = server.token_for("mona")
    authorize(asked_by("Carol"), forge_for(server, token), who)
    for login in ("dave", "eve"):
        with pytest.raises(NotAllowed, match=f"{login} has no write access"):
            authorize(asked_by(login), forge_for(server, token), who)


def test_a_team_that_cannot_be_read_is_a_no_that_names_the_permission(
    server: GitHubServer,
) -> None:
    server.add_member("octo/core", "carol")
    token = server.token_for(BOT, NAME, permissions={"metadata": "read", "contents": "write"})
    with pytest.raises(NotAllowed, match="who is in octo/core") as told:
        authorize(asked_by("carol"), forge_for(server, token), AccessPolicy(teams=("octo/core",)))
    assert "members: read" in told.value.next_step


def test_who_may_anyway_needs_no_team(server: GitHubServer) -> None:
    server.grant("alice", NAME, "write")
    authorize(asked_by("alice"), forge_for(server), AccessPolicy(teams=("octo/core",)))
    assert not [each for each in server.requests if "/teams/" in each.path]


def test_a_check_that_failed_was_nobodys_wish(server: GitHubServer) -> None:
    authorize(asked_by("eve", kind=TriggerKind.CHECK_FAILED), forge_for(server))
    assert not server.requests


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
