"""Parses events about failed checks into triggers.

Checks count on the default branch and on branches that Resolver created. GitHub reports workflows
of GitHub Actions with `workflow_run`, any other check with `check_suite` (and with `check_run`,
which counts when it is the last of its suite), and commit statuses with `status`. All checks that
fail on one commit are one request.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from resolver.config.templates import render
from resolver.github.events.payloads import Payload, RepositoryPayload, User, UtcDatetime
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.starting_events import ListeningPolicy
from resolver.github.text.markdown import single_line
from resolver.models.run import Trigger, TriggerKind

CHECK_EVENTS = frozenset({"workflow_run", "check_suite", "check_run", "status"})
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


class CheckPlace(Payload):
    """The repository that a checked branch belongs to."""

    full_name: str | None = None


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
    name: str = ""


class CheckTarget(Payload):
    """Fields that check suites and workflow runs share.

    `conclusion` is None while the check runs.
    """

    head_sha: str = Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")
    head_branch: str | None = None
    conclusion: str | None = None
    updated_at: UtcDatetime
    pull_requests: tuple[CheckedPull, ...] | None = None


class CheckSuite(CheckTarget):
    """A check suite."""

    status: str | None = None
    app: CheckApp | None = None


class CheckRun(Payload):
    """A check run and the suite it belongs to."""

    name: str
    conclusion: str | None = None
    check_suite: CheckSuite


class WorkflowPayload(CheckTarget):
    """A workflow run of GitHub Actions. `event` is the event that started it."""

    name: str | None = None
    event: str
    head_repository: CheckPlace | None = None


class CheckEvent(Payload):
    """Fields that all check events share."""

    action: str
    repository: CheckedRepository
    sender: User


class WorkflowRunEvent(CheckEvent):
    """A `workflow_run` event.

    Source: https://docs.github.com/en/webhooks/webhook-events-and-payloads#workflow_run
    """

    workflow_run: WorkflowPayload


class SuiteEvent(CheckEvent):
    """A `check_suite` event.

    Source: https://docs.github.com/en/webhooks/webhook-events-and-payloads#check_suite
    """

    check_suite: CheckSuite


class CheckRunEvent(CheckEvent):
    """A `check_run` event.

    Source: https://docs.github.com/en/webhooks/webhook-events-and-payloads#check_run
    """

    check_run: CheckRun


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


@dataclass(frozen=True)
class _FailedCheck:
    """A check with its display name and its conclusion."""

    name: str
    target: CheckTarget
    conclusion: str | None


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
    event: CheckEvent
    if name == "workflow_run":
        event = run = WorkflowRunEvent.model_validate(payload)
        check = _read_workflow_run(run)
    elif name == "check_suite":
        event = suite_event = SuiteEvent.model_validate(payload)
        suite = suite_event.check_suite
        check = _read_suite(suite, "", suite.conclusion, policy.bot_login)
    else:
        event = run_event = CheckRunEvent.model_validate(payload)
        suite = run_event.check_run.check_suite
        conclusion = run_event.check_run.conclusion
        check = _read_suite(suite, run_event.check_run.name, conclusion, policy.bot_login)
        if suite.status != "completed" and event.action == "completed":
            return IgnoredEvent("other checks of its suite have not completed")
    if event.action != "completed":
        return IgnoredEvent(f"the check was {event.action}, only a completed one starts work")
    if isinstance(check, IgnoredEvent):
        return check
    if check.conclusion not in FAILED_CONCLUSIONS:
        return IgnoredEvent(f"the check's conclusion is {check.conclusion}")
    return _make_trigger(event, check, policy)


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
    check_event = CheckEvent(action="completed", repository=event.repository, sender=event.sender)
    return _make_trigger(
        check_event, _FailedCheck(event.context or "status", target, event.state), policy
    )


def _read_workflow_run(event: WorkflowRunEvent) -> _FailedCheck | IgnoredEvent:
    """Return the check of a workflow run, or the reason to ignore it."""
    run = event.workflow_run
    if run.event not in CHANGE_EVENTS:
        return IgnoredEvent(f"the workflow was started by {run.event}, which checks no change")
    head_repository = run.head_repository.full_name if run.head_repository else None
    if (head_repository or "").casefold() != event.repository.full_name.casefold():
        return IgnoredEvent("the branch belongs to a fork")
    return _FailedCheck(run.name or "workflow", run, run.conclusion)


def _read_suite(
    suite: CheckSuite, name: str, conclusion: str | None, bot_login: str
) -> _FailedCheck | IgnoredEvent:
    """Return the check of a suite, or the reason to ignore it.

    `name` is the name of the single check, "" for the suite as a whole.
    """
    app = suite.app or CheckApp()
    if bot_login and f"{app.slug}[bot]".casefold() == bot_login.casefold():
        return IgnoredEvent("it was made by Resolver itself")
    if app.slug == ACTIONS_APP_SLUG:
        return IgnoredEvent("workflows of GitHub Actions are handled by workflow_run")
    return _FailedCheck(name or app.name or "check", suite, conclusion)


def _make_trigger(
    event: CheckEvent, check: _FailedCheck, policy: ListeningPolicy
) -> Trigger | IgnoredEvent:
    """Return the trigger for a failed check if its branch and the settings allow it."""
    branch = check.target.head_branch
    if not branch:
        return IgnoredEvent("the check belongs to no branch")
    is_default = branch == event.repository.default_branch
    if not is_default and not branch.startswith(OWN_BRANCH_PREFIX):
        return IgnoredEvent("the branch is neither the default branch nor one of Resolver's")
    if policy.fix_failing_checks not in {"all", "default-branch" if is_default else "own"}:
        return IgnoredEvent("checks of this branch start no work here (fix_failing_checks)")
    pull_requests = [pull for pull in check.target.pull_requests or () if pull.head.ref == branch]
    sha = check.target.head_sha
    name = single_line(check.name, 100)
    return Trigger(
        key=check_key(event.repository.full_name, sha),
        kind=TriggerKind.CHECK_FAILED,
        repository=event.repository.full_name,
        number=None if is_default or not pull_requests else pull_requests[0].number,
        is_pull_request=not is_default,
        actor=event.sender.actor,
        instruction=render("run/check_failed.md.j2", check=name, commit=sha, branch=branch).strip(),
        at=check.target.updated_at,
        head=sha,
        check=name,
        branch=branch,
    )
