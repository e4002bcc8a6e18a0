"""Tests of who may start work."""

from dataclasses import dataclass, field

import pytest

from resolver.config.github_settings import AccessPolicy
from resolver.errors import ForgeError, NotAllowed, Refused
from resolver.github.events.permission import authorize
from resolver.models.run import Actor, Trigger, TriggerKind
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


def asked_by(login: str, kind: TriggerKind = TriggerKind.ISSUE_COMMENT) -> Trigger:
    return reports.trigger(actor=Actor(login=login), kind=kind)


@pytest.mark.parametrize(
    ("kind", "reader", "policy", "asked"),
    [
        ("issue_comment", Permissions("write"), TEAMS, ["carol"]),
        ("issue_labeled", Permissions("admin"), None, ["carol"]),
        ("dispatched", Permissions(), AccessPolicy(users=("dave", "Carol")), []),
        (
            "review_comment",
            Permissions("read", teams=("octo/core",)),
            TEAMS,
            ["carol", "octo/docs", "octo/core"],
        ),
        ("check_failed", Permissions(), None, []),
        ("local", Permissions(), None, []),
        ("command_line", Permissions(may_push=True), None, []),
    ],
)
def test_writers_and_people_on_the_lists_may_start_work(
    kind: str, reader: Permissions, policy: AccessPolicy | None, asked: list[str]
) -> None:
    authorize(asked_by("carol", TriggerKind(kind)), reader, policy)
    assert reader.asked == asked


@pytest.mark.parametrize(
    ("kind", "reader", "why"),
    [
        ("issue_comment", Permissions("none"), "eve has no write access.*permission: none"),
        ("dispatched", Permissions("read"), "eve has no write access.*permission: read"),
        ("command_line", Permissions("admin"), "may not push"),
    ],
)
def test_others_may_start_nothing(kind: str, reader: Permissions, why: str) -> None:
    with pytest.raises(NotAllowed, match=why) as caught:
        authorize(asked_by("eve", TriggerKind(kind)), reader, TEAMS)
    assert caught.value.next_step


# What GitHub answers


@pytest.fixture
def server(github: GitHubServer) -> GitHubServer:
    github.create_repository(NAME)
    return github


@pytest.mark.attack
@pytest.mark.parametrize("role", ["triage", "read", None])
def test_people_without_write_access_may_not_start_work(
    server: GitHubServer, role: str | None
) -> None:
    """Somebody with read or triage access asks for work: refused."""
    server.grant("mallory", NAME, role, association="OWNER")
    server.grant("mona", NAME, "maintain")
    authorize(asked_by("mona"), forge_for(server))
    with pytest.raises(Refused, match="mallory has no write access"):
        authorize(asked_by("mallory"), forge_for(server))


def test_active_members_of_teams_are_known(server: GitHubServer) -> None:
    server.add_member("octo/Core", "carol")
    server.add_member("octo/core", "dave", "pending")
    server.grant("mona", NAME, "write")
    forge = forge_for(server, server.token_for("mona"))
    members = [name for name in ("Carol", "dave", "eve") if forge.is_member("octo/core", name)]
    assert members == ["Carol"]
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
