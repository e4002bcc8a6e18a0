"""Finds the conversation that an event is about, and the earlier run that it continues.

Two kinds of events don't name their conversation: a dispatch, which has only a number, and a failed
check.
"""

import heapq
import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.config.temporary_directory import temporary_directory
from resolver.controller.control import Control, Deny
from resolver.errors import ForgeError, LogError, Refused, RunStopped, WorkspaceError
from resolver.events.lifecycle import ConfirmationAnswered
from resolver.events.log import innermost
from resolver.events.run_log import RunLog
from resolver.git.push import issue_branch_prefix
from resolver.github.events.checks import check_key
from resolver.github.events.permission import IgnoredEvent
from resolver.github.github_forge import GitHubForge
from resolver.models.run import Command, Continuation, RunState, Trigger, TriggerKind
from resolver.runs.conversation.watch import control_requests
from resolver.runs.resuming.continuation import (
    DECISION_COMMANDS,
    NOTHING_KEPT,
    NOTHING_WAITS,
    continue_from_log,
    find_unpublished_run,
    is_change_run,
    worked_until,
)
from resolver.runs.stages import RunRequest, RunResult
from resolver.runs.wiring.sandbox import RunHost
from resolver.storage.earlier_runs import EarlierRun, EarlierRuns
from resolver.storage.run_refs import RunRefs, archive_log

MAX_CHECK_FIXES = 2
"""Runs for the failing checks of one pull request, or of one issue about the default branch."""

logger = logging.getLogger("resolver.runs.conversation.commands")


def locate_dispatch(
    trigger: Trigger,
    forge: GitHubForge,
    *,
    is_rerun: bool = False,
) -> Trigger | IgnoredEvent:
    """Return the trigger with its issue or pull request, or the reason why there is nothing to do.

    A trigger that names its conversation is returned unchanged. is_rerun: True if an earlier run of
    this trigger was interrupted; it may have pushed to the branch, so the conditions are not
    checked again. Raises ForgeError if the conversation for a check can't be determined: nobody
    waits for such a run, so it may fail without a comment.
    """
    if trigger.kind is TriggerKind.DISPATCHED and trigger.number is not None:
        try:
            pull = forge.is_pull_request(trigger.number)
        except ForgeError as error:
            logger.warning("%s", error.what)  # the run will meet the same error and report it
            return trigger
        return trigger.model_copy(update={"is_pull_request": pull})
    if trigger.kind is TriggerKind.CHECK_FAILED:
        number = conversation_for_dispatch(trigger, forge)
        skip_reason = None if is_rerun else _find_reason_to_skip(trigger, number, forge)
        if skip_reason or (number is None and trigger.is_pull_request):
            return IgnoredEvent(
                skip_reason or f"Resolver has no open pull request from {trigger.branch}"
            )
        if number is None:
            check = trigger.check
            number = forge.check_conversations().open_issue(check, trigger.branch, trigger.head)
        return trigger.model_copy(update={"number": number})
    return trigger


def conversation_for_dispatch(trigger: Trigger, forge: GitHubForge) -> int | None:
    """Return the number of the pull request, or of the open issue about this check; None if there
    is none yet. Raises ForgeError."""
    if trigger.is_pull_request:
        return forge.heads().open_from(trigger.branch)
    return forge.check_conversations().find_issue(trigger.check)


def _find_reason_to_skip(trigger: Trigger, number: int | None, forge: GitHubForge) -> str | None:
    """Return why no run is started for the check, None if one is."""
    conversations = forge.check_conversations()
    if conversations.branch_tip(trigger.branch) != trigger.head:
        return "the branch has a newer commit: its own checks count"
    if not trigger.is_pull_request:
        run_issue = conversations.find_issue_of_run(trigger.key)
        if run_issue is not None and run_issue != number:
            return f"all failures on this commit are handled in #{run_issue}"
        fixing_pull = number and forge.heads().open_for(number, issue_branch_prefix(number))
        if fixing_pull:
            return f"#{fixing_pull} is open and fixes it"
    if number is not None:
        key_of = partial(check_key, trigger.repository)
        attempt_count = conversations.count_attempts(number, trigger.branch, key_of)
        if attempt_count >= MAX_CHECK_FIXES:
            return f"it was tried {attempt_count} times on #{number}, the most without a person"
    return None


RESUMING_COMMANDS = frozenset({Command.CONTINUE, Command.RESUME, Command.PUBLISH})
"""The commands that start a run if none is active."""

LOG_COMMANDS = RESUMING_COMMANDS | DECISION_COMMANDS
"""The commands that continue from an earlier run's log."""


def issue_of_command(trigger: Trigger, forge: GitHubForge, issue: int | None = None) -> Trigger:
    """Return the trigger, about its issue if it was asked on a pull request of Resolver's.

    issue: if it is known. The event's text of the pull request is dropped, because it is not the
    text of the issue.
    """
    if not trigger.is_pull_request or trigger.number is None:
        return trigger
    if issue is None:
        try:
            origin = forge.heads().find_origin(trigger.number)
        except ForgeError as error:
            logger.warning("%s", error.what)  # the run will meet the same error and report it
            return trigger
        if origin is None:
            return trigger
        issue = origin[0]
    if issue == trigger.number:
        return trigger  # the last run worked on the pull request itself
    return trigger.model_copy(update={"issue": issue, "snapshot": None})


def find_archived_work(
    trigger: Trigger, run: str, settings: Settings, host: RunHost, folder: Path
) -> tuple[Trigger, EarlierRun | None]:
    """Return the result of `find_run_to_continue` for the runs archived in the repository.

    folder: gets the files of the runs that are searched. Raises WorkspaceError, LogError or
    ForgeError.
    """
    url = settings.clone_url(trigger.repository)
    credential = host.tokens.credential(settings, trigger.repository)
    return find_run_to_continue(trigger, run, RunRefs(url, credential, folder))


def find_run_to_continue(
    trigger: Trigger, run: str, store: EarlierRuns
) -> tuple[Trigger, EarlierRun | None]:
    """Return the run from before `run` to continue from, and the request as it applies to that run.

    For a pull request of Resolver's, the last work was either on its issue or on the pull request
    itself, so both conversations are searched. To publish, the newest run with a change that is not
    public is returned, unless a later run of either conversation has published.

    store: of the repository. Its errors are passed on.
    """
    as_new = as_new_request(trigger)
    is_publish = trigger.command is Command.PUBLISH
    trigger_by_run: dict[str, Trigger] = {}

    def relevant_runs(request: Trigger) -> Iterator[EarlierRun]:
        if request.subject is None:
            return
        for earlier in store.runs_before(request.subject, run):
            # "continue" on a pull request continues work on it, not a review of it
            if is_publish or request is trigger or is_change_run(earlier):
                trigger_by_run[earlier.run] = request
                yield earlier

    requests = [trigger] if as_new == trigger else [trigger, as_new]
    merged = heapq.merge(*map(relevant_runs, requests), key=worked_until, reverse=True)
    newest = find_unpublished_run(merged) if is_publish else next(merged, None)
    return (trigger_by_run[newest.run] if newest else trigger), newest


def continue_earlier_run(
    request: RunRequest, trigger: Trigger, earlier: EarlierRun | None, settings: Settings
) -> RunRequest:
    """Return the request as one that continues an earlier run. The log in the output folder then
    begins with that run's log.

    trigger: the request as it applies to that run. Without an earlier log, or with one that can't
    be used, a notice says that this is a new run. Raises Refused if there is nothing to approve,
    deny or publish: those commands never start work.
    """
    if earlier is None and trigger.command in DECISION_COMMANDS:
        raise Refused("no action is waiting for approval here", NOTHING_WAITS)
    if earlier is None and trigger.command is Command.PUBLISH:
        raise Refused("there is no finished change to publish here", NOTHING_KEPT)
    if earlier is None:
        return _start_over(request, trigger)
    try:
        source = settings.clone_url(trigger.repository)
        continuation = continue_from_log(trigger, earlier, source, request.output)
    except LogError as error:
        if trigger.command in DECISION_COMMANDS:
            raise Refused(f"the decision can't be followed: {error.what}", NOTHING_WAITS) from error
        if trigger.command is Command.PUBLISH:
            raise Refused(f"the change can't be published: {error.what}", NOTHING_KEPT) from error
        return _start_over(request, trigger, error.what)
    return replace(request, trigger=trigger, continuation=continuation)


def _start_over(request: RunRequest, trigger: Trigger, why: str = "") -> RunRequest:
    """Return the request for a new run, with a notice. why: the earlier log can't be used."""
    notice = render("run/no_log.md.j2", why=why).strip()
    return replace(request, trigger=as_new_request(trigger), notices=(notice,))


def continue_from_archive(request: RunRequest, settings: Settings) -> RunRequest:
    """Return the request, continuing the last archived run if it asks for that.

    If there is no archived run, the returned request has a notice about it. Raises WorkspaceError,
    LogError or ForgeError if a change is to be published and can't be fetched, and Refused if there
    is nothing to approve, deny or publish.
    """
    if request.trigger.command not in LOG_COMMANDS:
        return request
    with temporary_directory() as folder:
        try:
            trigger, earlier = find_archived_work(
                request.trigger, request.run, settings, request.host, Path(folder)
            )
        except (WorkspaceError, LogError, ForgeError) as error:
            if request.trigger.command is Command.PUBLISH:
                raise
            logger.warning("%s", error.what)
            return _start_over(request, request.trigger, error.what)
        return continue_earlier_run(request, trigger, earlier, settings)


def as_new_request(trigger: Trigger) -> Trigger:
    """Return the request for a run without an earlier log.

    On a pull request it is then work on that pull request, and not a new start on the issue that
    the pull request came from.
    """
    return trigger.model_copy(update={"issue": None}) if trigger.is_pull_request else trigger


def apply_approvals(
    log: RunLog, run: str, trigger: Trigger, continuation: Continuation | None, control: Control
) -> None:
    """Send the run a person's decision about the action that waits for approval, unless the log has
    the answer already. A message without a decision denies the action."""
    if continuation is None or log.state.run_state is not RunState.AWAITING_CONFIRMATION:
        return
    events = map(innermost, log.state.events[log.start_index(run) :])
    if any(isinstance(event, ConfirmationAnswered) for event in events):
        return
    if trigger.command in DECISION_COMMANDS:
        for request in control_requests(trigger):
            control.send(request)
    elif text := continuation.message.strip():
        control.send(Deny(by=continuation.by, reason=text))


def archive_run_log(result: RunResult, settings: Settings) -> None:
    """Archive the run's log in the repository. An error is logged as a warning and never fails the
    run."""
    request = result.request
    if result.log is None or result.archived or request.trigger.subject is None:
        return
    url = settings.clone_url(request.trigger.repository)
    try:
        credential = request.host.tokens.credential(settings, request.trigger.repository)
        archive_log(request.output.folder, url, credential, request.trigger.subject, request.run)
    except (WorkspaceError, LogError, ForgeError, RunStopped) as error:
        logger.warning("the log could not be stored in the repository: %s", error.what)
