"""Follows the request of a run: whether it still stands, and comments that steer the run.

A run takes minutes to hours. Meanwhile the comment may be deleted or edited, the issue closed or
locked, the label removed, or the requester may lose write access. This is checked before a run
costs anything, and before its result is published.

Comments that steer an active run are polled where no webhook delivers them: in a job of GitHub
Actions and on the command line. They are translated to requests to the run, after a check of who
may send them.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from resolver.config.background import call_in_background
from resolver.config.github_settings import AccessPolicy
from resolver.config.settings import Settings
from resolver.config.templates import render
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
from resolver.errors import NotAllowed, Refused, ResolverError, RunStopped
from resolver.github.context.read_task import NewComments
from resolver.github.events.comments import command_of
from resolver.github.events.payloads import IssueComment
from resolver.github.events.permission import PermissionReader, authorize
from resolver.github.events.starting_events import ListeningPolicy, find_event_of
from resolver.github.github_forge import GitHubForge
from resolver.models.approval import split_decision_number
from resolver.models.request_status import RequestStatus
from resolver.models.run import Command, Extension, Trigger, TriggerKind
from resolver.runs.common import github_forge, listening_policy
from resolver.runs.stages import RunRequest

STEERING_COMMANDS = frozenset(
    {
        Command.STOP,
        Command.PAUSE,
        Command.RESUME,
        Command.CONTINUE,
        Command.MESSAGE,
        Command.APPROVE,
        Command.DENY,
    }
)
"""The commands that are addressed to an active run, if there is one."""

STARTING_COMMANDS = frozenset({Command.FIX, Command.QUESTION, Command.REVIEW, Command.UPDATE})
"""The commands that start a run of their own."""

_ASKING_FOR_WORK = frozenset({Command.CONTINUE, Command.APPROVE, Command.DENY})


def as_request(trigger: Trigger, command: Command) -> Trigger:
    """Return the trigger as a request for a run by this command."""
    return trigger.model_copy(update={"command": command})


def request_of_late_command(trigger: Trigger) -> Trigger | None:
    """Return the request for a run that a command becomes which came too late for the active one;
    None if it asks for no more work."""
    if trigger.command is Command.MESSAGE:
        return as_request(trigger, Command.CONTINUE)
    return trigger if trigger.command in _ASKING_FOR_WORK else None


POLL_END_SECONDS = 5.0
"""Seconds that the end of the block waits for a poll that is under way."""


def authorize_steering(
    trigger: Trigger,
    running_trigger: Trigger | None,
    reader: PermissionReader,
    access_policy: AccessPolicy,
) -> None:
    """Raise Refused unless the person may send this command to the run of `running_trigger`.

    The same people may steer a run as may start one. In addition, the person who asked for a run
    may always stop it. A bot never decides about an action that waits for approval.
    """
    is_own_run = (
        running_trigger is not None
        and running_trigger.actor.login.casefold() == trigger.actor.login.casefold()
    )
    if trigger.command is Command.STOP and is_own_run and trigger.actor.login:
        return
    if trigger.command in {Command.APPROVE, Command.DENY} and trigger.actor.is_bot:
        raise Refused(
            f"{trigger.actor.login} is a bot, and only a person can approve an action",
            "ask a person with write access to decide",
        )
    authorize(trigger, reader, access_policy)


def control_requests(trigger: Trigger) -> list[Request]:
    """Return the requests that a comment in the conversation of an active run stands for."""
    by = trigger.actor.login
    match trigger.command:
        case Command.STOP:
            return [Stop(by=by, reason=trigger.instruction or None)]
        case Command.PAUSE:
            # The message comes first, because any other request ends a pause.
            return [*_message_requests(trigger.instruction, by), Pause(by=by)]
        case Command.MESSAGE:
            return _message_requests(trigger.instruction, by)
        case Command.RESUME:
            return [Resume(by=by), *_message_requests(trigger.instruction, by)]
        case Command.CONTINUE:
            extensions = [Extend(trigger.extension, by)] if trigger.extension != Extension() else []
            # "continue" sent to a paused run means the same as "resume"
            return [*extensions, *_message_requests(trigger.instruction, by), Resume(by=by)]
        case Command.APPROVE:
            number, text = split_decision_number(trigger.instruction)
            return [Approve(by=by, at=trigger.at, number=number), *_message_requests(text, by)]
        case Command.DENY:
            number, text = split_decision_number(trigger.instruction)
            return [Deny(by=by, at=trigger.at, reason=text or None, number=number)]
        case _:
            return []  # new work


def _message_requests(text: str, by: str) -> list[Request]:
    return [MessageToAgent(text, by)] if text else []


logger = logging.getLogger("resolver.runs.conversation.watch")

MAX_REQUESTS = 100
"""Maximum number of requests that one run accepts from comments."""


@dataclass(frozen=True)
class CommentWatch:
    """Watches the conversations of one run: its issue, and the pull request if it was asked there.

    forge: creates a client for the watching thread; clients are not shared between threads.
    """

    trigger: Trigger
    control: Control
    forge: Callable[[], GitHubForge]
    settings: Settings

    def run(self, ended: threading.Event) -> None:
        """Poll until `ended` is set. Errors are logged, and the next poll tries again."""
        forge, trigger = self.forge(), self.trigger
        numbers = {n for n in (trigger.subject, trigger.number) if n is not None}
        conversations = {number: forge.new_comments(number, trigger.at) for number in numbers}
        sent_count, unconfirmed = 0, list[Trigger]()
        is_over = False
        while not is_over and sent_count < MAX_REQUESTS:
            is_over = ended.wait(self.settings.pace.command_interval)
            for number, conversation in conversations.items() if not is_over else ():
                commands = self._send_new_commands(forge, number, conversation)
                sent_count += len(commands)
                unconfirmed += commands
            if self.control.is_empty:
                # The reaction that confirms a command is set only once the controller has taken the
                # request. A command that arrives too late stays unconfirmed, so that the job that
                # its comment started handles it as a new run.
                for command in unconfirmed:
                    forge.confirm(command)
                unconfirmed = []

    def _send_new_commands(
        self, forge: GitHubForge, number: int, news: NewComments
    ) -> list[Trigger]:
        """Send the new commands of a conversation to the run. Return those that are not confirmed
        yet."""
        try:
            commands = [self._parse_command(number, comment) for comment in news.read()]
            self._stop_if_withdrawn(forge, news)
            return [
                command
                for command in commands
                if command is not None and self._send(forge, command)
            ]
        except ResolverError as error:
            logger.warning("comments that steer the run could not be read: %s", error.what)
            return []

    def _stop_if_withdrawn(self, forge: GitHubForge, news: NewComments) -> None:
        """Stop the run if the comment that asked for it was deleted or no longer asks."""
        is_comment = self.trigger.kind is TriggerKind.ISSUE_COMMENT
        if not is_comment or self.trigger.comment_id not in news.changed:
            return
        status = forge.request_status(self.trigger)
        policy = _policy_for_trigger(self.trigger, self.settings, forge)
        withdrawal = find_withdrawal(self.trigger, status, policy)
        if withdrawal:
            logger.warning("the run is stopped: %s", withdrawal)
            what = f"{withdrawal} while the run was working"
            self.control.send(Stop(error=RunStopped(what, withdrawn=True)))

    def _parse_command(self, number: int, comment: IssueComment) -> Trigger | None:
        """Return the trigger for a comment; None if it is not addressed to an active run."""
        if comment.user is None:  # a deleted account
            return None
        has_request_comment = self.trigger.kind is TriggerKind.ISSUE_COMMENT
        request_comment_id = self.trigger.comment_id or 0 if has_request_comment else 0
        if comment.id <= request_comment_id or comment.created_at < self.trigger.at:
            return None
        policy = listening_policy(self.settings)
        command = command_of(comment.body or "", comment.user, policy)
        if command is None or command.command not in STEERING_COMMANDS:
            return None
        return Trigger(
            key=f"issue_comment:{comment.id}",
            kind=TriggerKind.ISSUE_COMMENT,
            repository=self.trigger.repository,
            number=number,
            issue=self.trigger.subject if number != self.trigger.subject else None,
            actor=comment.user.actor,
            instruction=command.text,
            command=command.command,
            extension=command.extension,
            at=comment.created_at,
            comment_id=comment.id,
        )

    def _send(self, forge: GitHubForge, trigger: Trigger) -> bool:
        """Send the command to the run. Return True if it is to be confirmed later."""
        try:
            authorize_steering(trigger, self.trigger, forge, self.settings.access_policy)
        except Refused as refused:
            # the job that this comment started answers it; here it is only ignored
            logger.warning("%s", refused.what)
            return False
        logger.info("%s says %s", trigger.actor.login, trigger.command.value)
        if trigger.command is Command.STOP:
            forge.confirm(trigger)  # first, because the stop may end this process
        for request in control_requests(trigger):
            self.control.send(request)
        return trigger.command is not Command.STOP


@contextmanager
def watch_comments(request: RunRequest, settings: Settings) -> Iterator[None]:
    """Watch for comments that steer this run, in a thread while the block runs.

    A run that publishes nothing is not watched, and none is if the settings say so.
    """
    ended, polling = threading.Event(), list[Future[None]]()
    trigger = request.trigger
    if request.publish and not request.is_local and settings.pace.command_interval > 0:
        forge = partial(github_forge, settings, trigger.repository, request.host)
        watch = CommentWatch(trigger, request.control, forge, settings)
        polling = [call_in_background(partial(watch.run, ended), "watch")]
    try:
        yield
    finally:
        ended.set()
        for future in wait(polling, POLL_END_SECONDS).done:
            if error := future.exception():
                logger.error("comments that steer the run were not read", exc_info=error)


def find_withdrawal(trigger: Trigger, status: RequestStatus, policy: ListeningPolicy) -> str | None:
    """Return how the request was taken back since it was made, None if it still stands."""
    number = trigger.subject
    if not status.exists:
        return f"#{number} was deleted or moved"
    if status.locked:
        return f"the conversation of #{number} was locked"
    if status.has_comment and status.comment is None:
        return "the comment that asked for it was deleted"
    event = find_event_of(trigger.kind)
    if event is None or event.withdrawal is None or event.stands(status, policy):
        return None
    return event.withdrawal.format_map({"number": number, **dict(policy)})


PUBLISH_ANYWAY = "anyway"
"""What is written after "publish" to publish for an issue that is closed."""


def is_closed_for(trigger: Trigger, status: RequestStatus) -> bool:
    """Return True if nothing is done for the request because its issue is closed.

    A question is answered all the same.
    """
    is_insisting = (
        trigger.command is Command.PUBLISH and trigger.instruction.lower() == PUBLISH_ANYWAY
    )
    return status.closed and trigger.command is not Command.QUESTION and not is_insisting


def _policy_for_trigger(
    trigger: Trigger, settings: Settings, forge: GitHubForge
) -> ListeningPolicy:
    """Return the policy for the trigger. GitHub is asked for Resolver's login only if the trigger
    needs it."""
    policy = listening_policy(settings)
    event = find_event_of(trigger.kind)
    if event is None or not event.needs_own_login:
        return policy
    return policy.model_copy(update={"bot_login": forge.whoami()})


def require_open_request(request: RunRequest, settings: Settings, forge: GitHubForge) -> None:
    """Raise Refused if the request was taken back, or its issue closed, before its run starts.

    Called before anything that costs. A request that was taken back is refused silently: nobody is
    waiting for an answer to it.
    """
    trigger = request.trigger
    if not _has_request(request):
        return
    status = forge.request_status_at_start(trigger)
    withdrawal = find_withdrawal(trigger, status, _policy_for_trigger(trigger, settings, forge))
    if withdrawal:
        logger.warning("run %s is not started: %s", request.run, withdrawal)
        refused = Refused(f"{withdrawal} before the run started", "make the request again")
        refused.is_silent = True
        raise refused
    if is_closed_for(trigger, status):
        raise Refused(f"#{trigger.subject} is closed", _step_for_closed(trigger, settings))


def require_standing_request(
    request: RunRequest, settings: Settings, forge: GitHubForge | None
) -> tuple[str, ...]:
    """Raise RunStopped if the request was taken back, its issue closed, or its requester lost the
    permission to start work, during the run.

    Called immediately before the first public write of a result. A finished change is kept. Returns
    notices about how the request differs by now from the one that the run followed.

    If GitHub has become unavailable during the work, this waits for it as long as a write does,
    because the result would else have to be published by a later run. Raises ForgeError if GitHub
    can't be asked by then.
    """
    trigger = request.trigger
    if forge is None or not _has_request(request):
        return ()
    status, stopped = settings.pace.retries.call(
        lambda: _read_present_state(trigger, settings, forge),
        lambda error: 0.0 if error.cause == "forge_down" else None,
    )
    if stopped is not None:
        logger.warning("run %s publishes nothing: %s", request.run, stopped.what)
        raise stopped
    text = status.comment if status.has_comment else status.issue
    is_text_of_request = status.has_comment or trigger.kind is TriggerKind.ISSUE_OPENED
    if text is None or not is_text_of_request or (text.edited_at or trigger.at) <= trigger.at:
        return ()
    return (render("run/request_edited.md.j2", has_comment=status.has_comment).strip(),)


def _read_present_state(
    trigger: Trigger, settings: Settings, forge: GitHubForge
) -> tuple[RequestStatus, RunStopped | None]:
    """Return the state of the request, and what ends the run if the request does not stand."""
    status = forge.request_status(trigger)
    withdrawal = find_withdrawal(trigger, status, _policy_for_trigger(trigger, settings, forge))
    if withdrawal:
        return status, RunStopped(f"{withdrawal} while the run was working", withdrawn=True)
    if is_closed_for(trigger, status):
        what = f"#{trigger.subject} was closed while the run was working"
        next_step = _step_for_closed(as_request(trigger, Command.PUBLISH), settings)
        return status, RunStopped(what, next_step, withdrawn=True)
    try:
        authorize(trigger, forge, settings.access_policy)
    except NotAllowed as refused:
        return status, RunStopped(f"{refused.what} while the run was working")
    return status, None


def _has_request(request: RunRequest) -> bool:
    """Return True if somebody's request in a conversation has started the run."""
    return request.publish and not request.by_operator and request.trigger.number is not None


def _step_for_closed(trigger: Trigger, settings: Settings) -> str:
    """Return what a person can do to get the result for a closed issue."""
    if trigger.command is not Command.PUBLISH:
        return f"reopen #{trigger.subject}, then ask again"
    command = f"{settings.mention} {trigger.command.value}"
    return (
        f"reopen #{trigger.subject} and comment `{command}`, or comment "
        f"`{command} {PUBLISH_ANYWAY}`"
    )
