"""Parses events about failed checks into triggers.

Checks count on the default branch and on branches that Resolver created. GitHub reports workflows
of GitHub Actions with `workflow_run`, any other check with `check_suite`, and commit statuses with
`status`. All checks that fail on one commit are one request.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import AliasChoices, Field

from resolver.config.templates import render
from resolver.github.events.payloads import Payload, RepositoryPayload, User, UtcDatetime
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


class PullBranch(Payload):
    """The head branch of a pull request."""

    ref: str


class CheckedPull(Payload):
    """A pull request that contains the checked commit."""

    number: int = Field(gt=0)
    head: PullBranch


class CheckApp(Payload):
    """The GitHub App that reported the check."""

    slug: str | None = None
    name: str | None = None


class HeadRepository(Payload):
    """The repository that a checked branch belongs to."""

    full_name: str | None = None


class CheckTarget(Payload):
    """A check suite or a workflow run.

    Attributes:
        conclusion: None while the check runs.
        app: The App that reported the suite.
        name: The name of the workflow.
        event: The event that started the workflow.
        head_repository: The repository of the workflow's branch.
    """

    head_sha: str = Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")
    head_branch: str | None = None
    conclusion: str | None = None
    updated_at: UtcDatetime
    pull_requests: tuple[CheckedPull, ...] | None = None
    app: CheckApp | None = None
    name: str | None = None
    event: str | None = None
    head_repository: HeadRepository | None = None


class CheckEvent(Payload):
    """A `workflow_run` or `check_suite` event.

    Source: https://docs.github.com/en/webhooks/webhook-events-and-payloads#workflow_run
    """

    action: str
    repository: CheckedRepository
    sender: User
    check: CheckTarget = Field(validation_alias=AliasChoices("workflow_run", "check_suite"))


class Commit(Payload):
    """A commit id."""

    sha: str


class StatusBranch(Payload):
    """A branch that contains the commit, not necessarily as its newest one."""

    name: str
    commit: Commit


class StatusEvent(Payload):
    """A `status` event.

    Source: https://docs.github.com/en/webhooks/webhook-events-and-payloads#status
    """

    sha: str
    state: str
    context: str = ""
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
    app = check.app or CheckApp()
    if name == "workflow_run":
        if check.event not in CHANGE_EVENTS:
            return IgnoredEvent(
                f"the workflow was started by {check.event}, which checks no change"
            )
        head = check.head_repository.full_name if check.head_repository else None
        if (head or "").casefold() != event.repository.full_name.casefold():
            return IgnoredEvent("the branch belongs to a fork")
    elif policy.bot_login and f"{app.slug}[bot]".casefold() == policy.bot_login.casefold():
        return IgnoredEvent("it was made by Resolver itself")
    elif app.slug == ACTIONS_APP_SLUG:
        return IgnoredEvent("workflows of GitHub Actions are handled by workflow_run")
    if check.conclusion not in FAILED_CONCLUSIONS:
        return IgnoredEvent(f"the check's conclusion is {check.conclusion}")
    return _make_trigger(event, check.name or app.name or "check", policy)


def _from_status(event: StatusEvent, policy: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger for a failed commit status on the newest commit of a branch."""
    if event.state not in FAILED_STATUSES:
        return IgnoredEvent(f"the commit status is {event.state}")
    if policy.bot_login and event.sender.login.casefold() == policy.bot_login.casefold():
        return IgnoredEvent("it was made by Resolver itself")
    branch_names = [branch.name for branch in event.branches if branch.commit.sha == event.sha]
    if not branch_names:
        return IgnoredEvent("the commit is not the newest of a branch")
    default = event.repository.default_branch
    own_branches = (name for name in branch_names if name.startswith(OWN_BRANCH_PREFIX))
    # A status names every branch with the commit: the default branch is preferred, then one of
    # Resolver's.
    target = CheckTarget(
        head_sha=event.sha,
        head_branch=default if default in branch_names else next(own_branches, branch_names[0]),
        conclusion=event.state,
        updated_at=event.updated_at,
    )
    check_event = CheckEvent(
        action="completed", repository=event.repository, sender=event.sender, check_suite=target
    )
    return _make_trigger(check_event, event.context or "status", policy)


def _make_trigger(event: CheckEvent, name: str, policy: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger for a failed check if its branch and the settings allow it."""
    branch = event.check.head_branch
    if not branch:
        return IgnoredEvent("the check belongs to no branch")
    is_default = branch == event.repository.default_branch
    if not is_default and not branch.startswith(OWN_BRANCH_PREFIX):
        return IgnoredEvent("the branch is neither the default branch nor one of Resolver's")
    if policy.fix_failing_checks not in {"all", "default-branch" if is_default else "own"}:
        return IgnoredEvent("checks of this branch start no work here (fix_failing_checks)")
    pull_requests = [pull for pull in event.check.pull_requests or () if pull.head.ref == branch]
    sha = event.check.head_sha
    name = single_line(name, 100)
    return Trigger(
        key=check_key(event.repository.full_name, sha),
        kind=TriggerKind.CHECK_FAILED,
        repository=event.repository.full_name,
        number=None if is_default or not pull_requests else pull_requests[0].number,
        is_pull_request=not is_default,
        actor=event.sender.actor,
        instruction=render("run/check_failed.md.j2", check=name, commit=sha, branch=branch).strip(),
        at=event.check.updated_at,
        head=sha,
        check=name,
        branch=branch,
    )
