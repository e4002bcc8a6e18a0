"""Parses events about failed checks into triggers.

Checks count on the default branch and on branches that Resolver created. GitHub reports workflows
of GitHub Actions with `workflow_run`, any other check with `check_suite`, and commit statuses with
`status`. All checks that fail on one commit are one request.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import AliasChoices, AliasPath, Field

from resolver.config.templates import render
from resolver.github.events.payloads import (
    CommitId,
    Payload,
    RepositoryPayload,
    User,
    UtcDatetime,
)
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.starting_events import ListeningPolicy
from resolver.github.text.markdown import single_line
from resolver.models.run import Trigger, TriggerKind

CHECK_EVENTS = frozenset({"workflow_run", "check_suite", "status"})
"""Names of the webhook events that report checks."""

OWN_BRANCH_PREFIX = "agent/"
"""Prefix of the branches that Resolver creates."""

FAILED_CONCLUSIONS = frozenset({"failure", "timed_out"})
"""Check conclusions that a change to the code can fix."""

FAILED_STATUSES = frozenset({"failure", "error"})
"""The same for commit statuses."""

CHANGE_EVENTS = frozenset({"push", "pull_request", "merge_group"})
"""Events whose workflows check changes.

Workflows started by other events fail for other reasons; Resolver's own workflow is one of those.
"""

ACTIONS_APP_SLUG = "github-actions"
"""Slug of the GitHub App that reports GitHub Actions workflows."""


class CheckedRepository(RepositoryPayload):
    """The repository of a check event."""

    default_branch: str


class CheckedPull(Payload):
    """A pull request that contains the checked commit."""

    number: int = Field(gt=0)
    branch: str = Field(validation_alias=AliasPath("head", "ref"))


class CheckTarget(Payload):
    """A check suite or a workflow run.

    Attributes:
        conclusion: None while the check runs.
        app_slug, app_name: The GitHub App that reported the suite.
        name: The name of the workflow.
        event: The event that started the workflow.
        head_repository: OWNER/NAME of the repository of the workflow's branch.
    """

    head_sha: CommitId
    head_branch: str | None = None
    conclusion: str | None = None
    updated_at: UtcDatetime
    pull_requests: tuple[CheckedPull, ...] | None = None
    app_slug: str | None = Field(default=None, validation_alias=AliasPath("app", "slug"))
    app_name: str | None = Field(default=None, validation_alias=AliasPath("app", "name"))
    name: str | None = None
    event: str | None = None
    head_repository: str | None = Field(
        default=None, validation_alias=AliasPath("head_repository", "full_name")
    )


class CheckEvent(Payload):
    """A `workflow_run` or `check_suite` event.

    Source: https://docs.github.com/en/webhooks/webhook-events-and-payloads#workflow_run
    """

    action: str
    repository: CheckedRepository
    sender: User
    check: CheckTarget = Field(validation_alias=AliasChoices("workflow_run", "check_suite"))


class StatusBranch(Payload):
    """A branch that contains the commit, not necessarily as its newest one."""

    name: str
    tip: str = Field(validation_alias=AliasPath("commit", "sha"))


class StatusEvent(Payload):
    """A `status` event.

    Source: https://docs.github.com/en/webhooks/webhook-events-and-payloads#status
    """

    sha: CommitId
    state: str
    context: str | None = None
    branches: tuple[StatusBranch, ...] = ()
    updated_at: UtcDatetime
    repository: CheckedRepository
    sender: User


def check_key(repository: str, commit: str) -> str:
    """Return the trigger key shared by all checks that fail on a commit."""
    return f"check_failed:{repository.casefold()}:{commit}"


def trigger_from_check(
    name: str, payload: Mapping[str, Any], policy: ListeningPolicy
) -> Trigger | IgnoredEvent:
    """Return the trigger for a check event, or the reason why there is none.

    Whether the branch belongs to one of Resolver's own pull requests, and how often a fix was tried
    before, is read from GitHub later. `number` is None where the event does not name the pull
    request.

    Raises pydantic's ValidationError if the payload does not have the documented form.
    """
    if policy.fix_failing_checks == "none":
        return IgnoredEvent("failing checks start no work here (fix_failing_checks)")
    if name == "status":
        return _from_status(StatusEvent.model_validate(payload), policy)
    event = CheckEvent.model_validate(payload)
    check = event.check
    if event.action != "completed":
        return IgnoredEvent(f"the check was {event.action}, only a completed one starts work")
    if name == "workflow_run":
        if check.event not in CHANGE_EVENTS:
            return IgnoredEvent(
                f"the workflow was started by {check.event}, which checks no change"
            )
        if (check.head_repository or "").casefold() != event.repository.full_name.casefold():
            return IgnoredEvent("the branch belongs to a fork")
    elif policy.is_own_login(f"{check.app_slug}[bot]"):
        return IgnoredEvent("it was made by Resolver itself")
    elif check.app_slug == ACTIONS_APP_SLUG:
        return IgnoredEvent("workflows of GitHub Actions are handled by workflow_run")
    if check.conclusion not in FAILED_CONCLUSIONS:
        return IgnoredEvent(f"the check's conclusion is {check.conclusion}")
    name, branch = check.name or check.app_name or "check", check.head_branch
    trigger = _make_trigger(event, policy, name, branch, check.head_sha, check.updated_at)
    if isinstance(trigger, IgnoredEvent) or not trigger.is_pull_request:
        return trigger
    pulls = (pull.number for pull in check.pull_requests or () if pull.branch == branch)
    return trigger.model_copy(update={"number": next(pulls, None)})


def _from_status(event: StatusEvent, policy: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger for a failed commit status on the newest commit of a branch."""
    if event.state not in FAILED_STATUSES:
        return IgnoredEvent(f"the commit status is {event.state}")
    if policy.is_own_login(event.sender.login):
        return IgnoredEvent("it was made by Resolver itself")
    names = [branch.name for branch in event.branches if branch.tip == event.sha]
    if not names:
        return IgnoredEvent("the commit is not the newest of a branch")
    default = event.repository.default_branch
    own = (name for name in names if name.startswith(OWN_BRANCH_PREFIX))
    # A status names every branch with the commit: the default branch is preferred, then one of
    # Resolver's.
    branch = default if default in names else next(own, names[0])
    name = event.context or "status"
    return _make_trigger(event, policy, name, branch, event.sha, event.updated_at)


def _make_trigger(
    event: CheckEvent | StatusEvent,
    policy: ListeningPolicy,
    name: str,
    branch: str | None,
    commit: str,
    at: datetime,
) -> Trigger | IgnoredEvent:
    """Return the trigger for a failed check if its branch and the settings allow it."""
    if not branch:
        return IgnoredEvent("the check belongs to no branch")
    is_default = branch == event.repository.default_branch
    if not is_default and not branch.startswith(OWN_BRANCH_PREFIX):
        return IgnoredEvent("the branch is neither the default branch nor one of Resolver's")
    if policy.fix_failing_checks not in {"all", "default-branch" if is_default else "own"}:
        return IgnoredEvent("checks of this branch start no work here (fix_failing_checks)")
    name = single_line(name, 100)
    values = {"check": name, "commit": commit, "branch": branch}
    return Trigger(
        key=check_key(event.repository.full_name, commit),
        kind=TriggerKind.CHECK_FAILED,
        repository=event.repository.full_name,
        is_pull_request=not is_default,
        actor=event.sender.actor,
        instruction=render("run/check_failed.md.j2", **values).strip(),
        at=at,
        head=commit,
        check=name,
        branch=branch,
    )
