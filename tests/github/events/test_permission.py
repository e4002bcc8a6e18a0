"""Tests of who may start work, with a test GitHub over a real socket."""

from typing import Any

import pytest

from resolver.config.github_settings import AccessPolicy
from resolver.config.settings import load_settings
from resolver.errors import NotAllowed, Refused, UsageError
from resolver.github.events.permission import authorize
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.runs.conversation.watch import STARTING_COMMANDS
from tests.github import reports
from tests.github.test_github_reading import BOT, NAME, forge_for
from tests.parts.github import GitHubServer
from tests.parts.memory_forge import MemoryForge


@pytest.fixture
def server(github: GitHubServer) -> GitHubServer:
    github.create_repository(NAME)
    return github


def requested_by(login: str, **changes: Any) -> Trigger:
    return reports.trigger(actor=Actor(login=login), **changes)


@pytest.mark.attack
@pytest.mark.parametrize("role", ["triage", "read", None])
@pytest.mark.parametrize("association", ["OWNER", "MEMBER", "CONTRIBUTOR"])
def test_people_without_write_access_may_not_start_work(
    server: GitHubServer, role: str | None, association: str
) -> None:
    """Somebody with read or triage access asks for work: refused."""
    server.grant("mallory", NAME, role, association=association)
    with pytest.raises(Refused, match="mallory has no write access to octo/demo") as caught:
        authorize(requested_by("mallory"), forge_for(server))
    assert caught.value.next_step


def test_allowed_users_may_start_work(server: GitHubServer) -> None:
    authorize(requested_by("carol"), forge_for(server), AccessPolicy(users=("dave", "Carol")))


LEVELS = ["read", "triage", "write", "maintain", "admin"]


@pytest.mark.parametrize("role", LEVELS)
def test_write_access_is_needed(server: GitHubServer, role: str) -> None:
    server.grant("alice", NAME, role)
    asking, forge = requested_by("alice"), forge_for(server)
    if LEVELS.index(role) >= LEVELS.index("write"):
        authorize(asking, forge)
    else:
        with pytest.raises(NotAllowed, match=f"no write access.*permission: {role}"):
            authorize(asking, forge)


def test_a_custom_role_counts_as_its_base_role(
    server: GitHubServer,
) -> None:
    server.grant("alice", NAME, "write")
    answer = {"permission": "write", "role_name": "release-captain", "user": None}
    server.fail_next("GET", "/permission$", 200, body=answer)
    authorize(requested_by("alice"), forge_for(server))
    server.fail_next("GET", "/permission$", 200, body={**answer, "permission": "read"})
    with pytest.raises(NotAllowed):
        authorize(requested_by("alice"), forge_for(server))


def test_members_of_allowed_teams_may_start_work(server: GitHubServer) -> None:
    server.add_member("octo/Core", "carol")
    server.add_member("octo/core", "dave", "pending")
    server.add_user("eve")
    who = AccessPolicy(teams=("octo/docs", "octo/core"))
    server.grant("mona", NAME, "write")
    token = server.token_for("mona")
    authorize(requested_by("Carol"), forge_for(server, token), who)
    for login in ("dave", "eve"):
        with pytest.raises(NotAllowed, match=f"{login} has no write access"):
            authorize(requested_by(login), forge_for(server, token), who)


def test_the_teams_of_the_settings_are_those_whose_members_may_start_work() -> None:
    settings = load_settings({}, {"RESOLVER_ALLOWED_USERS": "octo/core, zoe, octo/docs"})
    assert settings.access_policy == AccessPolicy(("zoe",), ("octo/core", "octo/docs"))
    with pytest.raises(UsageError, match="'octo/co re' is not a team"):
        load_settings({}, {"RESOLVER_ALLOWED_USERS": "octo/co re"})


@pytest.mark.parametrize("command", sorted(STARTING_COMMANDS))
def test_nothing_can_be_asked_for_without_permission(
    server: GitHubServer, command: Command
) -> None:
    server.add_user("eve")
    asking = requested_by("eve").model_copy(update={"command": command})
    with pytest.raises(NotAllowed, match="eve has no write access"):
        authorize(asking, forge_for(server))


def test_an_unreadable_team_is_a_refusal_that_names_the_permission(
    server: GitHubServer,
) -> None:
    server.add_member("octo/core", "carol")
    token = server.token_for(BOT, NAME, permissions={"metadata": "read", "contents": "write"})
    with pytest.raises(NotAllowed, match="who is in octo/core") as caught:
        authorize(
            requested_by("carol"), forge_for(server, token), AccessPolicy(teams=("octo/core",))
        )
    assert "members: read" in caught.value.next_step


def test_a_person_with_permission_needs_no_team_lookup(server: GitHubServer) -> None:
    server.grant("alice", NAME, "write")
    authorize(requested_by("alice"), forge_for(server), AccessPolicy(teams=("octo/core",)))
    assert not [request for request in server.requests if "/teams/" in request.path]


def test_a_failed_check_needs_no_authorization_of_a_person(server: GitHubServer) -> None:
    authorize(requested_by("eve", kind=TriggerKind.CHECK_FAILED), forge_for(server))
    assert not server.requests


@pytest.mark.attack
@pytest.mark.parametrize("status", [404, 500, 502])
def test_an_unavailable_permission_is_a_refusal(server: GitHubServer, status: int) -> None:
    """GitHub does not answer what permission somebody has: refused, never assumed."""
    server.grant("alice", NAME, "write")
    server.fail_next("GET", "/permission$", status, times=20)
    with pytest.raises(Refused, match="could not be read") as caught:
        authorize(requested_by("alice"), forge_for(server))
    assert caught.value.next_step


def test_the_command_line_needs_a_token_with_push_permission(server: GitHubServer) -> None:
    server.grant("alice", NAME, "write")
    trigger = requested_by("whoever", kind=TriggerKind.COMMAND_LINE)
    authorize(trigger, forge_for(server, server.token_for("alice")))
    with pytest.raises(Refused, match="may not push"):
        authorize(trigger, forge_for(server, server.token_for("carol")))


def test_a_local_checkout_needs_no_permission(tmp_path: Any) -> None:
    forge = MemoryForge(tmp_path / "issue.md", "main")
    authorize(requested_by("me", kind=TriggerKind.LOCAL, number=None), forge)
