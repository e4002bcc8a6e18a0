"""The checkboxes of the dashboard: how they are written, and what ticking one asks for.

Anyone with triage permission can edit the dashboard's text. A tick therefore counts only if the box
was there, unticked, before the edit, if the ledger knows the run and names this issue as the
dashboard, and if the person is allowed to start work.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from resolver.github.comments.markers import DASHBOARD
from resolver.github.events.payloads import Issue, Payload, RepositoryPayload, User
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.quota_ledger import RUN_ID, LedgerRun, QuotaLedger
from resolver.github.events.starting_events import ListeningPolicy
from resolver.models.run import Command, Trigger, TriggerKind
from resolver.models.trigger import TickedBox

STOP, RETRY = "stop", "retry"

_COMMANDS = {STOP: Command.STOP, RETRY: Command.CONTINUE}

_BOX = re.compile(
    r"[ ]{0,3}[-*] \[([ xX])\] "
    rf"<!-- resolver:box (stop|retry) run=({RUN_ID}) thread=(\d{{1,9}}) number=(\d{{1,9}})"
    r" pull=([01]) -->.*"
)
"""A task list item with the marker that `render_box` writes."""


@dataclass(frozen=True)
class DashboardBox:
    """A checkbox, as described by its marker."""

    action: str
    run: str
    thread: int
    number: int
    pull_request: bool


class _From(Payload):
    """The text of a field before an edit."""

    text: str = Field(alias="from", default="")


class _Changes(Payload):
    """The fields that an edit changed."""

    body: _From | None = None


class _Edited(Payload):
    """An `issues` event with the action `edited`."""

    action: str
    issue: Issue
    changes: _Changes = _Changes()
    repository: RepositoryPayload
    sender: User


def render_box(action: str, run: LedgerRun) -> str:
    """Return the marker that turns a task list item into a checkbox for a run."""
    return (
        f"<!-- resolver:box {action} run={run.run} thread={run.thread} "
        f"number={run.number or run.thread} pull={int(run.pull_request)} -->"
    )


def newly_ticked(before: str, after: str) -> list[DashboardBox]:
    """Return the boxes that are ticked after an edit and were present and unticked before it."""
    if not (before.lstrip().startswith(DASHBOARD) and after.lstrip().startswith(DASHBOARD)):
        return []
    unticked = {box for box, ticked in _boxes(before) if not ticked}
    return [box for box, ticked in _boxes(after) if ticked and box in unticked]


def trigger_from_box(payload: Mapping[str, Any], policy: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger for an edited issue, or the reason why there is none.

    The event is `issues` with the action `edited`. Authorization follows as for any trigger;
    `find_run_of_box` checks that the box is one of Resolver's own. Raises pydantic's
    ValidationError if the payload does not have the documented form.
    """
    event = _Edited.model_validate(payload)
    before = event.changes.body.text if event.changes.body else ""
    ticked = newly_ticked(before, event.issue.body or "")
    if not ticked:
        return IgnoredEvent("no box of a dashboard was ticked")
    ignored = policy.ignores(event.sender)
    if ignored:
        return ignored
    if event.sender.type != "User" or event.sender.login.endswith("[bot]"):
        return IgnoredEvent("only people can tick boxes")
    box = ticked[0]
    return Trigger(
        key=f"box:{event.issue.id}:{box.action}:{box.run}:{event.issue.updated_at.isoformat()}",
        kind=TriggerKind.BOX_TICKED,
        repository=event.repository.full_name,
        number=box.number or None,
        is_pull_request=box.pull_request,
        issue=box.thread if box.thread != box.number else None,
        actor=event.sender.actor,
        command=_COMMANDS[box.action],
        at=event.issue.updated_at,
        ticked=TickedBox(dashboard=event.issue.number, run=box.run),
    )


def find_run_of_box(ledger: QuotaLedger, trigger: Trigger) -> LedgerRun | None:
    """Return the run that a ticked box stands for, or None when the ledger has no such box."""
    ticked, dashboard = trigger.ticked, ledger.place
    if ticked is None or dashboard is None or dashboard.number != ticked.dashboard:
        return None
    runs = (run for run in ledger.runs if run.run == ticked.run)
    run = next(runs, None)
    if run is None or (run.number or run.thread) != trigger.number:
        return None
    is_same_request = run.thread == trigger.subject and run.pull_request == trigger.is_pull_request
    return run if is_same_request else None


def _boxes(text: str) -> list[tuple[DashboardBox, bool]]:
    """Return the boxes of a text, each with whether it is ticked."""
    matches = (_BOX.fullmatch(line) for line in text.splitlines())
    return [
        (
            DashboardBox(match[2], match[3], int(match[4]), int(match[5]), match[6] == "1"),
            match[1] != " ",
        )
        for match in matches
        if match is not None
    ]
