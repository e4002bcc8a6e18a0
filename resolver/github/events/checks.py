"""From a check that has failed to a Trigger: on the default branch, or on a branch of our own.

A workflow of GitHub Actions is told of by `workflow_run`, every other check by its suite (and by
`check_run`, which counts when it is the suite's last), a commit status by `status`. One commit is
one request, however many checks fail on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from resolver.config.templates import render
from resolver.github.events.ignored import IgnoredEvent, ListeningPolicy
from resolver.github.events.payloads import Moment, Payload, RepositoryPayload, User
from resolver.github.text.escape import single_line
from resolver.models.run import Actor, Trigger, TriggerKind

CHECK_EVENTS = frozenset({"workflow_run", "check_suite", "check_run", "status"})

OWN_BRANCHES = "agent/"
"""What the names of our branches begin with."""

FAILED = frozenset({"failure", "timed_out"})
"""Conclusions that somebody can do something about by a change."""

FAILED_STATES = frozenset({"failure", "error"})
"""The same, of commit statuses."""

OF_CHANGES = frozenset({"push", "pull_request", "merge_group"})
"""What starts the workflows that check changes. Others fail for other reasons; our own workflow is
one of those."""

ACTIONS = "github-actions"


class CheckedRepository(RepositoryPayload):
    default_branch: str


class CheckPlace(Payload):
    full_name: str | None = None


class PullBranch(Payload):
    ref: str


class CheckedPull(Payload):
    """A pull request that the checked commit belongs to."""

    number: int = Field(gt=0)
    head: PullBranch


class CheckApp(Payload):
    slug: str | None = None
    name: str = ""


class CheckTarget(Payload):
    """What a suite and a workflow's run have. conclusion: None while it runs."""

    head_sha: str = Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")
    head_branch: str | None = None
    conclusion: str | None = None
    updated_at: Moment
    pull_requests: tuple[CheckedPull, ...] | None = None


class CheckSuite(CheckTarget):
    status: str | None = None
    app: CheckApp | None = None


class CheckRun(Payload):
    name: str
    conclusion: str | None = None
    check_suite: CheckSuite


class WorkflowPayload(CheckTarget):
    name: str | None = None
    event: str
    head_repository: CheckPlace | None = None


class CheckEvent(Payload):
    action: str
    repository: CheckedRepository
    sender: User


class WorkflowRunEvent(CheckEvent):
    workflow_run: WorkflowPayload


class SuiteEvent(CheckEvent):
    check_suite: CheckSuite


class CheckRunEvent(CheckEvent):
    check_run: CheckRun


class Commit(Payload):
    sha: str


class StatusBranch(Payload):
    """A branch that has the commit, maybe not as its newest."""

    name: str
    commit: Commit


class StatusEvent(Payload):
    """Source: https://docs.github.com/en/webhooks/webhook-events-and-payloads#status"""

    sha: str
    state: str
    context: str = ""
    branches: tuple[StatusBranch, ...] = ()
    updated_at: Moment
    repository: CheckedRepository
    sender: User


@dataclass(frozen=True)
class _Failed:
    name: str
    checked: CheckTarget
    conclusion: str | None


def check_key(repository: str, commit: str) -> str:
    """The key of all that fails on a commit."""
    return f"check_failed:{repository.casefold()}:{commit}"


def from_check(
    name: str, payload: Mapping[str, Any], listening: ListeningPolicy
) -> Trigger | IgnoredEvent:
    """What the event asks for. Raises pydantic's ValidationError for a payload that is none.

    Whether a pull request of our own stands behind the branch, and how often it was tried before,
    is asked of the forge later; `number` is None where the event does not name it.
    """
    if listening.checks == "none":
        return IgnoredEvent("failing checks start no work here (fix_failing_checks)")
    if name == "status":
        return _from_status(StatusEvent.model_validate(payload), listening)
    event: CheckEvent
    if name == "workflow_run":
        event = run = WorkflowRunEvent.model_validate(payload)
        failed = _of_workflow(run)
    elif name == "check_suite":
        event = suited = SuiteEvent.model_validate(payload)
        suite = suited.check_suite
        failed = _of_suite(suite, "", suite.conclusion, listening.bot_login)
    else:
        event = single = CheckRunEvent.model_validate(payload)
        suite = single.check_run.check_suite
        ended = single.check_run.conclusion
        failed = _of_suite(suite, single.check_run.name, ended, listening.bot_login)
        if suite.status != "completed" and event.action == "completed":
            return IgnoredEvent("other checks of its suite are not through")
    if event.action != "completed":
        return IgnoredEvent(f"the check was {event.action}, only one that is through starts work")
    if isinstance(failed, IgnoredEvent):
        return failed
    if failed.conclusion not in FAILED:
        return IgnoredEvent(f"the check's conclusion is {failed.conclusion}")
    return _on_branch(event, failed, listening)


def _from_status(event: StatusEvent, listening: ListeningPolicy) -> Trigger | IgnoredEvent:
    if event.state not in FAILED_STATES:
        return IgnoredEvent(f"the commit status is {event.state}")
    if listening.bot_login and event.sender.login.casefold() == listening.bot_login.casefold():
        return IgnoredEvent("it's our own")
    heads = [each.name for each in event.branches if each.commit.sha == event.sha]
    if not heads:
        return IgnoredEvent("the commit is no branch's newest")
    default = event.repository.default_branch
    own = (name for name in heads if name.startswith(OWN_BRANCHES))
    checked = CheckTarget(
        head_sha=event.sha,
        head_branch=default if default in heads else next(own, heads[0]),
        conclusion=event.state,
        updated_at=event.updated_at,
    )
    told = CheckEvent(action="completed", repository=event.repository, sender=event.sender)
    return _on_branch(told, _Failed(event.context or "status", checked, event.state), listening)


def _of_workflow(event: WorkflowRunEvent) -> _Failed | IgnoredEvent:
    run = event.workflow_run
    if run.event not in OF_CHANGES:
        return IgnoredEvent(f"the workflow was started by {run.event}, which checks no change")
    place = run.head_repository.full_name if run.head_repository else None
    if (place or "").casefold() != event.repository.full_name.casefold():
        return IgnoredEvent("the branch is a fork's")
    return _Failed(run.name or "workflow", run, run.conclusion)


def _of_suite(
    suite: CheckSuite, name: str, conclusion: str | None, bot_login: str
) -> _Failed | IgnoredEvent:
    app = suite.app or CheckApp()
    if bot_login and f"{app.slug}[bot]".casefold() == bot_login.casefold():
        return IgnoredEvent("it's our own")
    if app.slug == ACTIONS:
        return IgnoredEvent("what a workflow of GitHub Actions came to is told by workflow_run")
    return _Failed(name or app.name or "check", suite, conclusion)


def _on_branch(
    event: CheckEvent, failed: _Failed, listening: ListeningPolicy
) -> Trigger | IgnoredEvent:
    branch = failed.checked.head_branch
    if not branch:
        return IgnoredEvent("the check is of no branch")
    is_default = branch == event.repository.default_branch
    if not is_default and not branch.startswith(OWN_BRANCHES):
        return IgnoredEvent("the branch is neither the default branch nor one of ours")
    if listening.checks not in {"all", "default-branch" if is_default else "own"}:
        return IgnoredEvent("checks of this branch start no work here (fix_failing_checks)")
    pulls = [p for p in failed.checked.pull_requests or () if p.head.ref == branch]
    sender, sha = event.sender, failed.checked.head_sha
    name = single_line(failed.name, 100)
    return Trigger(
        key=check_key(event.repository.full_name, sha),
        kind=TriggerKind.CHECK_FAILED,
        repository=event.repository.full_name,
        number=None if is_default or not pulls else pulls[0].number,
        is_pull_request=not is_default,
        actor=Actor(login=sender.login, id=sender.id, is_bot=sender.type == "Bot"),
        instruction=render("run/check_failed.md.j2", check=name, commit=sha, branch=branch).strip(),
        at=failed.checked.updated_at,
        head=sha,
        check=name,
        branch=branch,
    )
