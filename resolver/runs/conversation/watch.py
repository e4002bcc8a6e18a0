"""Polls for comments that steer an active run where no webhook delivers them: in a job of GitHub
Actions and on the command line.

Comments are translated to requests to the run, after a check of who may send them.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from resolver.config.access_policy import AccessPolicy
from resolver.config.settings import Settings
from resolver.controller.control import (
    Approve,
    Control,
    Deny,
    Extend,
    Pause,
    Request,
    Resume,
    Say,
    Stop,
)
from resolver.errors import Refused, ResolverError
from resolver.github.context.read_task import NewComment, ThreadNews
from resolver.github.events.parse import command_of
from resolver.github.events.permission import PermissionReader, authorize
from resolver.github.github_forge import GitHubForge
from resolver.models.approval import split_decision_number
from resolver.models.run import Actor, Command, Extension, Trigger, TriggerKind
from resolver.runs.common import background_poll

STEERS = frozenset(
    {Command.STOP, Command.PAUSE, Command.RESUME, Command.CONTINUE, Command.APPROVE, Command.DENY}
)
"""The commands that are addressed to an active run, if there is one."""

STARTS = frozenset({Command.FIX, Command.QUESTION, Command.REVIEW, Command.UPDATE})
"""The commands that start a run of their own."""


def authorize_steering(
    asking: Trigger, running: Trigger | None, reader: PermissionReader, allowed: AccessPolicy
) -> None:
    """Raise Refused unless the person may send this command to the run that `running` has started.

    The same people may steer a run as may start one. In addition, the person who asked for a run
    may always stop it. A bot never decides about an action that waits for approval.
    """
    own = running is not None and running.actor.login.casefold() == asking.actor.login.casefold()
    if asking.command is Command.STOP and own and asking.actor.login:
        return
    if asking.command in {Command.APPROVE, Command.DENY} and asking.actor.is_bot:
        raise Refused(
            f"{asking.actor.login} is a bot, and only a person can approve an action",
            "ask a person with write access to decide",
        )
    authorize(asking, reader, allowed)


def send_control_requests(control: Control, asking: Trigger) -> None:
    """Queue the requests of the comment for the run, without waiting for it."""
    for request in control_requests(asking):
        control.send(request)


def control_requests(asking: Trigger) -> list[Request]:
    """Return the requests that a comment in the conversation of an active run stands for."""
    by = asking.actor.login
    match asking.command:
        case Command.STOP:
            return [Stop(by=by, reason=asking.instruction)]
        case Command.PAUSE:
            return [Pause(by=by)]
        case Command.RESUME:
            return [Resume(by=by), *_said(asking.instruction, by)]
        case Command.CONTINUE:
            granted = [Extend(asking.extension, by)] if asking.extension != Extension() else []
            # "continue" sent to a paused run means the same as "resume"
            return [*granted, *_said(asking.instruction, by), Resume(by=by)]
        case Command.APPROVE:
            number, words = split_decision_number(asking.instruction)
            return [Approve(by=by, at=asking.at, number=number), *_said(words, by)]
        case Command.DENY:
            number, words = split_decision_number(asking.instruction)
            return [Deny(by=by, at=asking.at, reason=words, number=number)]
        case _:
            return []  # new work


def _said(words: str, by: str) -> list[Request]:
    return [Say(words, by)] if words else []


logger = logging.getLogger("resolver.runs.conversation.watch")

MOST_REQUESTS = 100
"""Maximum number of requests that one run accepts from comments."""


@dataclass(frozen=True)
class CommentWatch:
    """Watches the conversations of one run.

    forge: creates a client for the watching thread; clients are not shared between threads.
    numbers: the issues and pull requests that are watched.
    seconds: between two polls.
    """

    trigger: Trigger
    control: Control
    forge: Callable[[], GitHubForge]
    numbers: Sequence[int]
    settings: Settings
    seconds: float

    def run(self, ended: threading.Event) -> None:
        """Poll until `ended` is set. Errors are logged, and the next poll tries again."""
        forge = self.forge()
        news = {number: forge.news(number, self.trigger.at) for number in self.numbers}
        taken, waiting = 0, list[Trigger]()
        over = False
        while not over and taken < MOST_REQUESTS:
            over = ended.wait(self.seconds)
            for number, thread in news.items() if not over else ():
                sent = self._look(forge, number, thread)
                taken += len(sent)
                waiting += sent
            if self.control.is_empty:
                # The reaction that confirms a command is set only once the controller has taken the
                # request. A command that arrives too late stays unconfirmed, so that the job that
                # its comment started handles it as a new run.
                for asked in waiting:
                    forge.confirm(asked)
                waiting = []

    def _look(self, forge: GitHubForge, number: int, news: ThreadNews) -> list[Trigger]:
        """Send the new commands of a conversation to the run. Return those that are not confirmed
        yet."""
        try:
            found = [self._asked(number, comment) for comment in news.read()]
            return [each for each in found if each is not None and self._sent(forge, each)]
        except ResolverError as error:
            logger.warning("comments that steer the run could not be read: %s", error.what)
            return []

    def _asked(self, number: int, comment: NewComment) -> Trigger | None:
        """Return the trigger for a comment; None if it is not addressed to an active run."""
        asked_here = self.trigger.kind is TriggerKind.ISSUE_COMMENT
        first = self.trigger.comment_id or 0 if asked_here else 0
        if comment.id <= first or comment.created_at < self.trigger.at:
            return None
        asked = command_of(
            comment.body,
            login=comment.author,
            type=comment.author_type,
            mention=self.settings.mention,
            bot_login=self.settings.bot_login,
            allowed_users=self.settings.allowed_users,
            denied_users=self.settings.denied_users,
        )
        if asked is None or asked.command not in STEERS:
            return None
        return Trigger(
            key=f"issue_comment:{comment.id}",
            kind=TriggerKind.ISSUE_COMMENT,
            repository=self.trigger.repository,
            number=number,
            issue=self.trigger.subject if number != self.trigger.subject else None,
            actor=Actor(
                login=comment.author,
                id=comment.author_id,
                is_bot=comment.author_type == "Bot",
            ),
            instruction=asked.text,
            command=asked.command,
            extension=asked.extension,
            at=comment.created_at,
            comment_id=comment.id,
        )

    def _sent(self, forge: GitHubForge, asked: Trigger) -> bool:
        """Send the command to the run. Return True if it is to be confirmed later."""
        try:
            authorize_steering(asked, self.trigger, forge, self.settings.access_policy)
        except Refused as refused:
            # the job that this comment started answers it; here it is only ignored
            logger.warning("%s", refused.what)
            return False
        logger.info("%s says %s", asked.actor.login, asked.command.value)
        if asked.command is Command.STOP:
            forge.confirm(asked)  # first, because the stop may end this process
            send_control_requests(self.control, asked)
            return False
        send_control_requests(self.control, asked)
        return True


@contextmanager
def watch_comments(watch: CommentWatch) -> Iterator[None]:
    """Watch while the block runs; do nothing if `seconds` is 0."""
    if watch.seconds <= 0:
        yield
        return
    with background_poll(watch.run, "watch"):
        yield
