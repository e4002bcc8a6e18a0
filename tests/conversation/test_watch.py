"""Tests of what comments ask of a run at work, read from a GitHub over a real socket."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from resolver.config.github_settings import AccessPolicy
from resolver.config.settings import load_settings
from resolver.controller.control import (
    Approve,
    Control,
    Deny,
    Extend,
    MessageToAgent,
    Pause,
    Request,
    Resume,
    Stop,
)
from resolver.errors import NotAllowed, Refused
from resolver.models.run import Actor, Command, Extension, Trigger
from resolver.runs.conversation.watch import (
    STEERING_COMMANDS,
    CommentWatch,
    authorize_steering,
    control_requests,
)
from tests.github import reports
from tests.github.test_github_reading import forge_for, issue, triggered
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Comment, Issue
from tests.parts.memory_forge import MemoryForge
from tests.parts.waiting import Steps

__all__ = ["issue"]


class Watched:
    """A run that alice has asked for in a comment on the issue, and that is at work."""

    def __init__(self, github: GitHubServer, issue: Issue) -> None:
        self.github, self.issue, self.control = github, issue, Control()
        self.trigger: Trigger = triggered(github, github.add_comment(issue, "@agent fix", "alice"))
        self.said: list[Comment] = []

    def say(self, text: str, author: str = "alice") -> Callable[[], object]:
        def act() -> None:
            self.github.advance(2)
            self.said.append(self.github.add_comment(self.issue, text, author))

        return act

    def poll(self, *steps: Callable[[], object]) -> None:
        watch = CommentWatch(
            trigger=self.trigger,
            control=self.control,
            forge=lambda: forge_for(self.github),
            settings=load_settings({}, {}),
        )
        watch.run(Steps(*steps))

    def take_all(self) -> list[Request]:
        return list(iter(self.control.take, None))

    def reactions(self) -> list[list[str]]:
        return [[reaction.content for reaction in comment.reactions] for comment in self.said]


@pytest.fixture
def watched(github: GitHubServer, issue: Issue) -> Watched:
    return Watched(github, issue)


def test_comments_pause_a_run_and_continue_it_with_more_and_a_message(watched: Watched) -> None:
    watched.poll(
        watched.say("@agent pause"),
        watched.say("@agent continue +5 iterations, and use pytest -x"),
        lambda: None,
    )
    assert watched.take_all() == [
        Pause(by="alice"),
        Extend(Extension(iterations=5), "alice"),
        MessageToAgent("use pytest -x", "alice"),
        Resume(by="alice"),
    ]


def test_a_command_is_confirmed_when_the_run_has_taken_it(watched: Watched) -> None:
    """One that comes too late is left to the job that its comment has started."""
    watched.poll(watched.say("@agent pause"), watched.take_all, watched.say("@agent resume"))
    assert watched.reactions() == [["+1"], []]
    watched.poll(watched.say("@agent pause"), lambda: None)
    assert watched.reactions() == [["+1"], [], []]


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        (Command.STOP, "wrong file", [Stop(by="alice", reason="wrong file")]),
        (Command.PAUSE, "Wait", [MessageToAgent("Wait", "alice"), Pause(by="alice")]),
        (Command.RESUME, "", [Resume(by="alice")]),
        (Command.APPROVE, "", [Approve(by="alice", at=reports.WHEN)]),
        (Command.DENY, "leave it", [Deny(by="alice", at=reports.WHEN, reason="leave it")]),
        (Command.FIX, "more", []),
    ],
)
def test_a_command_stands_for_requests_to_the_run(
    command: Command, text: str, expected: list[Request]
) -> None:
    trigger = sent_by("alice", command).model_copy(update={"instruction": text})
    assert control_requests(trigger) == expected


def test_the_request_itself_commands_nothing_when_it_is_edited(watched: Watched) -> None:
    [request] = watched.issue.comments

    def edit() -> None:
        watched.github.advance(2)
        watched.github.edit_comment(request, "@agent pause")

    watched.poll(lambda: None, edit, lambda: None)
    assert watched.take_all() == []


@pytest.mark.attack
def test_a_stranger_stops_nothing(watched: Watched) -> None:
    """Somebody without write access stops or pauses the run of another person: it is ignored."""
    watched.github.add_user("eve")
    watched.poll(watched.say("@agent stop", "eve"), watched.say("@agent pause", "eve"), int)
    assert watched.take_all() == [] and watched.reactions() == [[], []]


@pytest.mark.attack
def test_the_poll_of_comments_stops_the_run_of_a_deleted_request(watched: Watched) -> None:
    """The request is deleted while the agent works: the run stops."""
    watched.poll(lambda: None, watched.issue.comments.clear, lambda: None)
    [stop] = watched.take_all()
    assert isinstance(stop, Stop) and stop.as_error().withdrawn
    assert "the comment that asked for it was deleted" in stop.as_error().what


def sent_by(login: str, command: Command, *, is_bot: bool = False) -> Trigger:
    return reports.trigger(actor=Actor(login=login, is_bot=is_bot), command=command)


READERS = MemoryForge(level="read")
BOTS_ALLOWED = AccessPolicy(users=("ci[bot]",))


@pytest.mark.attack
@pytest.mark.parametrize("command", [Command.APPROVE, Command.DENY])
def test_a_bot_decides_about_no_action(command: Command) -> None:
    """A bot that may start work approves an action that waits for a person: refused."""
    decision = sent_by("ci[bot]", command, is_bot=True)
    with pytest.raises(Refused, match="only a person can approve an action"):
        authorize_steering(decision, sent_by("alice", Command.FIX), READERS, BOTS_ALLOWED)


@pytest.mark.parametrize("command", sorted(STEERING_COMMANDS - {Command.APPROVE, Command.DENY}))
def test_a_bot_that_may_start_work_may_steer_a_run(command: Command) -> None:
    steering = sent_by("ci[bot]", command, is_bot=True)
    authorize_steering(steering, None, READERS, BOTS_ALLOWED)


@pytest.mark.parametrize(
    ("running", "login", "command", "is_allowed"),
    [
        (sent_by("Alice", Command.FIX), "alice", Command.STOP, True),
        (sent_by("alice", Command.FIX), "alice", Command.PAUSE, False),
        (sent_by("mona", Command.FIX), "alice", Command.STOP, False),
        (None, "alice", Command.STOP, False),
        (sent_by("", Command.FIX), "", Command.STOP, False),  # accounts that were deleted
    ],
)
def test_the_requester_alone_may_stop_a_run_without_write_access(
    running: Trigger | None, login: str, command: Command, is_allowed: bool
) -> None:
    with nullcontext() if is_allowed else pytest.raises(NotAllowed):
        authorize_steering(sent_by(login, command), running, READERS, AccessPolicy())
