"""Tests of who may start work."""

from dataclasses import dataclass, field

import pytest

from resolver.config.github_settings import AccessPolicy
from resolver.errors import ForgeError, NotAllowed, Refused
from resolver.github.events.permission import authorize
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.runs.conversation.watch import STARTING_COMMANDS
from tests.github import reports
from tests.github.test_github_reading import BOT, NAME, forge_for
from tests.parts.github import GitHubServer

TEAMS = AccessPolicy(teams=("octo/docs", "octo/core"))


@dataclass
class Permissions:
    """What GitHub says. asked: the questions so far."""

    level: str = "none"
    teams: tuple[str, ...] = ()
    may_push: bool = False
    asked: list[str] = field(default_factory=list)

    def permission(self, login: str) -> str:
        self.asked.append(login)
        return self.level

    def is_member(self, team: str, login: str) -> bool:
        self.asked.append(team)
        return team in self.teams

    def operator_may_push(self) -> bool:
        return self.may_push


def asked_by(login: str, **changes: object) -> Trigger:
    return reports.trigger(actor=Actor(login=login), **changes)


@pytest.mark.parametrize(
    ("reader", "policy"),
    [
        (Permissions("write"), None),
        (Permissions("admin"), None),
        (Permissions(), AccessPolicy(users=("dave", "Carol"))),
        (Permissions("read", teams=("octo/core",)), TEAMS),
    ],
)
def test_writers_and_people_on_the_lists_may_start_work(
    reader: Permissions, policy: AccessPolicy | None
) -> None:
    authorize(asked_by("carol"), reader, policy)


@pytest.mark.parametrize("command", sorted(STARTING_COMMANDS))
@pytest.mark.parametrize("level", ["none", "read", "triage"])
def test_others_may_start_nothing(command: Command, level: str) -> None:
    asking = asked_by("eve").model_copy(update={"command": command})
    with pytest.raises(
        NotAllowed, match=rf"eve has no write access.*permission: {level}"
    ) as caught:
        authorize(asking, Permissions(level), TEAMS)
    assert caught.value.next_step


def test_a_person_with_permission_needs_no_team_lookup() -> None:
    reader = Permissions("write")
    authorize(asked_by("alice"), reader, TEAMS)
    assert reader.asked == ["alice"]


@pytest.mark.parametrize("kind", [TriggerKind.CHECK_FAILED, TriggerKind.LOCAL])
def test_nobody_is_asked_about_a_failed_check_or_a_local_checkout(kind: TriggerKind) -> None:
    reader = Permissions()
    authorize(asked_by("eve", kind=kind), reader)
    assert reader.asked == []


def test_the_command_line_needs_a_token_with_push_permission() -> None:
    trigger = asked_by("whoever", kind=TriggerKind.COMMAND_LINE)
    authorize(trigger, Permissions(may_push=True))
    with pytest.raises(Refused, match="may not push"):
        authorize(trigger, Permissions("admin"))


# What GitHub answers


@pytest.fixture
def server(github: GitHubServer) -> GitHubServer:
    github.create_repository(NAME)
    return github


@pytest.mark.attack
@pytest.mark.parametrize("role", ["triage", "read", None])
@pytest.mark.parametrize("association", ["OWNER", "MEMBER", "CONTRIBUTOR"])
def test_people_without_write_access_may_not_start_work(
    server: GitHubServer, role: str | None, association: str
) -> None:
    """Somebody with read or triage access asks for work: refused."""
    server.grant("mallory", NAME, role, association=association)
    with pytest.raises(Refused, match="mallory has no write access"):
        authorize(asked_by("mallory"), forge_for(server))


def test_a_custom_role_counts_as_its_base_role(server: GitHubServer) -> None:
    server.grant("alice", NAME, "write")
    answer = {"permission": "write", "role_name": "release-captain", "user": None}
    server.fail_next("GET", "/permission$", 200, body=answer)
    authorize(asked_by("alice"), forge_for(server))
    server.fail_next("GET", "/permission$", 200, body={**answer, "permission": "read"})
    with pytest.raises(NotAllowed):
        authorize(asked_by("alice"), forge_for(server))


def test_active_members_of_teams_are_known(server: GitHubServer) -> None:
    server.add_member("octo/Core", "carol")
    server.add_member("octo/core", "dave", "pending")
    server.grant("mona", NAME, "write")
    forge = forge_for(server, server.token_for("mona"))
    assert [forge.is_member("octo/core", name) for name in ("Carol", "dave", "eve")] == [
        True, False, False,
    ]  # fmt: skip
    blind = server.token_for(BOT, NAME, permissions={"metadata": "read", "contents": "write"})
    with pytest.raises(NotAllowed, match="who is in octo/core") as caught:
        authorize(asked_by("carol"), forge_for(server, blind), AccessPolicy(teams=("octo/core",)))
    assert "members: read" in caught.value.next_step


@pytest.mark.attack
@pytest.mark.parametrize("status", [404, 502])
def test_an_unavailable_permission_is_a_refusal(server: GitHubServer, status: int) -> None:
    """GitHub does not answer what permission somebody has: refused, never assumed."""
    server.grant("alice", NAME, "write")
    server.fail_next("GET", "/permission$", status, times=20)
    with pytest.raises(Refused, match="could not be read") as caught:
        authorize(asked_by("alice"), forge_for(server))
    assert caught.value.next_step
    assert isinstance(caught.value.__cause__, ForgeError)
