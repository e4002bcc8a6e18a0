"""Tests of pinning the commit of a pull request that the requester saw."""

import pytest

from resolver.errors import Refused
from resolver.github.context.pinning import NOT_KNOWN
from resolver.github.events.parse import parse_github_event
from resolver.github.events.starting_events import ListeningPolicy
from resolver.models.run import Trigger
from tests.github.test_github_pulls import TEXT, pull, read
from tests.github.test_github_reading import BOT, NAME, ask, forge_for, triggered
from tests.parts.events import Events
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue

__all__ = ["pull"]


def forked(github: GitHubServer, owner: str = "zoe") -> Issue:
    """A pull request of `owner` from a fork of their own."""
    github.create_repository(NAME, {"a.py": TEXT})
    github.grant("alice", NAME, "write")
    fork = f"{owner}/demo"
    github.create_repository(fork, parent=NAME)
    github.commit(fork, "work", {"a.py": "seen\n"})
    return github.create_pull(NAME, f"{owner}:work", author=owner)


@pytest.mark.attack
def test_later_pushes_are_never_used(github: GitHubServer) -> None:
    """Code is pushed to a pull request after the request: the requested commit is used."""
    made = forked(github)
    seen = github.repository("zoe/demo").git.tip("work")
    trigger = ask(github, made, "@agent fix")
    github.advance(10)
    for n in range(99):
        github.commit("zoe/demo", "work", {"a.py": f"evil {n}\n"})
    _, found = read(github, trigger)
    assert found.head == seen
    assert seen is not None
    assert seen[:12] in found.moved


@pytest.mark.attack
@pytest.mark.parametrize("status", [404, 403])
def test_a_fork_whose_pushes_are_invisible_is_refused(github: GitHubServer, status: int) -> None:
    """A fork does not show when it was pushed to: the request is refused."""
    made = forked(github)
    trigger = triggered(github, github.add_comment(made, "@agent fix", "alice"))
    github.commit("zoe/demo", "work", {"a.py": "evil\n"})
    github.fail_next("GET", r"/activity$", status, body={"message": "no"}, times=9)
    with pytest.raises(Refused, match="not known which commit") as refused:
        forge_for(github).read(trigger)
    assert "review" in refused.value.next_step


@pytest.mark.attack
def test_a_fork_with_too_many_pushes_is_refused(github: GitHubServer) -> None:
    """So much is pushed after the request that its time is not reached: it is refused."""
    made = forked(github)
    trigger = triggered(github, github.add_comment(made, "@agent fix", "alice"))
    for n in range(100):
        github.commit("zoe/demo", "work", {"a.py": f"evil {n}\n"})
    with pytest.raises(Refused, match="not known which commit"):
        forge_for(github).read(trigger)


def test_the_requesters_own_fork_is_used_as_it_is(github: GitHubServer) -> None:
    made = forked(github, "alice")
    trigger = triggered(github, github.add_comment(made, "@agent fix", "alice"))
    github.fail_next("GET", r"/activity$", 404, body={"message": "no"}, times=9)
    assert read(github, trigger)[1].moved == NOT_KNOWN


def test_a_comment_on_the_code_pins_its_commit(github: GitHubServer, pull: Issue) -> None:
    seen = github.repository(NAME).git.tip("work")
    github.commit(NAME, "work", {"a.py": "pushed while alice was writing\n"})
    on_line = github.add_review_comment(pull, "a.py", 1, "@agent rename it", "alice")
    payload = Events(github, NAME).review_comment(on_line)
    payload["comment"]["commit_id"] = seen
    trigger = parse_github_event(
        "pull_request_review_comment",
        payload,
        ListeningPolicy(mention="@agent", label="agent", bot_login=BOT),
    )
    assert isinstance(trigger, Trigger)
    _, found = read(github, trigger)
    assert found.head == seen
    assert "newer commits than the one asked about" in found.moved
