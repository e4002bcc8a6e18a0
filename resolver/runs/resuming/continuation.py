"""Continues an earlier run: checks its log and describes how the new run starts from it.

The entry points find the log, on this machine's disk or in the repository
(`resolver.runs.resuming.archive`).
"""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from resolver.errors import LogError, Refused
from resolver.events.log import read_log
from resolver.events.run_log import require_opening
from resolver.events.state import State
from resolver.models.approval import ApprovalDecision, split_decision_number
from resolver.models.run import (
    Command,
    Continuation,
    Extension,
    Publication,
    PullRequest,
    RunLimits,
    RunState,
    Trigger,
)
from resolver.runs.output import BUNDLE, CHANGE

DECIDES = frozenset({Command.APPROVE, Command.DENY})
"""The commands that decide about an action that waits for approval."""

NOTHING_KEPT = "a finished change is stored if it could not be published"

NOTHING_WAITS = "an action that waits for approval is shown in a comment of its run"

MOST_EARLIER = 20
"""Maximum number of earlier runs of a conversation that are searched for an unpublished change."""

MOST_OUTCOME = 5_000_000
"""Maximum size in bytes of an outcome.json that is read."""


@dataclass(frozen=True)
class EarlierRun:
    """The files of an earlier run. The outcome is missing if the run was killed."""

    run: str
    log: Path
    outcome: Path


class _Published(BaseModel):
    """The fields of outcome.json about what was published."""

    model_config = ConfigDict(extra="ignore")

    branch: str | None = None
    commit: str | None = None
    tree: str | None = None
    pull_request: PullRequest | None = None


class _Outcome(_Published):
    """The fields of outcome.json that are read."""

    earlier: _Published = _Published()


def continue_from_log(
    trigger: Trigger, earlier: EarlierRun, source: str, log: Path
) -> Continuation:
    """Copy the earlier run's log to `log` and return how to continue from there.

    source: URL that the repository is cloned from, which the log must not decide. Raises LogError
    if the earlier log is not a sound log of a run on the same issue, and Refused if there is
    nothing to approve, deny or publish.
    """
    events = list(read_log(earlier.log))
    opening = require_opening(events, earlier.log)
    about = opening.task.trigger
    same = about.repository.casefold() == trigger.repository.casefold()
    if not same or about.subject != trigger.subject:
        raise LogError(
            f"the log of run {earlier.run} is about {about.repository}#{about.subject}, "
            f"not about {trigger.repository}#{trigger.subject}"
        )
    if opening.task.source.casefold() != source.casefold():
        raise LogError(f"the log of run {earlier.run} is about another server's {about.repository}")
    state = State.fold(events)
    decides, publishes = trigger.command in DECIDES, trigger.command is Command.PUBLISH
    if publishes and not has_change(earlier):
        raise Refused("there is no finished change to publish here", NOTHING_KEPT)
    if decides and state.run_state is not RunState.AWAITING_CONFIRMATION:
        raise Refused("no action is waiting for approval here", NOTHING_WAITS)
    if publishes:
        _copy_change(earlier, log.parent)
    _copy_whole_lines(earlier.log, log, len(events))
    return Continuation(
        run=earlier.run,
        words="" if decides or publishes else trigger.instruction,
        by=trigger.actor.login,
        decision=_decision(trigger) if decides else None,
        extension=Extension()
        if publishes
        else remaining_allowance(state, opening.limits, trigger.extension),
        publishes=publishes,
        publication=published_earlier(earlier.outcome),
    )


def _decision(trigger: Trigger) -> ApprovalDecision:
    number, words = split_decision_number(trigger.instruction)
    return ApprovalDecision(
        approved=trigger.command is Command.APPROVE,
        by=trigger.actor.login,
        at=trigger.at,
        reason=words,
        number=number,
    )


def is_waiting_for_person(earlier: EarlierRun) -> bool:
    """Return True if the run ended while an action was waiting for approval."""
    try:
        state = State.fold(read_log(earlier.log))
    except LogError:
        return False
    return state.run_state is RunState.AWAITING_CONFIRMATION


def has_change(earlier: EarlierRun) -> bool:
    """Return True if the run finished with a change that is stored with its log and is not
    public."""
    folder = earlier.log.parent
    if not all((folder / name).is_file() for name in (CHANGE, BUNDLE)):
        return False
    try:
        state = State.fold(read_log(earlier.log))
    except LogError:
        return False
    return state.run_state is RunState.FINISHED


def newest_unpublished(runs: Iterable[EarlierRun]) -> EarlierRun | None:
    """Return the newest run of a conversation whose change waits to be published; None if there is
    none.

    runs: newest first. Questions and runs without a result may have followed it, but a later run
    that published something replaces it.
    """
    for each in islice(runs, MOST_EARLIER):
        if has_change(each):
            return each
        if _outcome(each.outcome).branch:
            return None
    return None


def _copy_change(earlier: EarlierRun, folder: Path) -> None:
    """Copy the stored change. It is not trusted: publishing checks it like one that comes from a
    sandbox."""
    for name in (BUNDLE, CHANGE):
        shutil.copyfile(earlier.log.parent / name, folder / name)


def is_running(earlier: EarlierRun) -> bool:
    """Return True if the run was to change something, so that it was neither a review nor an
    answer."""
    try:
        opening = require_opening(list(read_log(earlier.log)), earlier.log)
    except LogError:
        return False
    return opening.task.trigger.command not in {Command.REVIEW, Command.QUESTION}


def remaining_allowance(state: State, new: RunLimits, asked: Extension) -> Extension:
    """Return what is granted in addition to the limits in force.

    These are the amounts that were asked for. A limit that was not named and is more than half used
    up is raised so that a run with the limits `new` is left.
    """
    limits = state.limits
    iterations = _missing(new.max_iterations, limits.max_iterations - state.iterations)
    budget = _missing(new.max_budget, limits.max_budget - state.priced)
    time = _missing(new.max_time, limits.max_time - state.seconds)
    return Extension(
        iterations=asked.iterations or int(iterations),
        budget=asked.budget or budget,
        time=asked.time or time,
    )


def _missing(new: float, left: float) -> float:
    return new - max(0.0, left) if left < new / 2 else 0.0


def published_earlier(outcome: Path) -> Publication:
    """Return what an earlier run has published, or what was public when it was itself continued."""
    found = _outcome(outcome)
    own = found if found.branch and found.commit and found.pull_request else found.earlier
    return Publication(
        branch=own.branch, commit=own.commit, tree=own.tree or "", pull_request=own.pull_request
    )


def _outcome(path: Path) -> _Outcome:
    """Return the earlier outcome; an empty one if it is missing or can't be read."""
    try:
        with open(path, "rb") as file:
            return _Outcome.model_validate_json(file.read(MOST_OUTCOME))
    except (OSError, ValidationError):
        return _Outcome()


def _copy_whole_lines(source: Path, target: Path, lines: int) -> None:
    """Copy the first `lines` lines, atomically: `target` is written completely or not at all."""
    temporary = target.with_name(f".{target.name}.new")
    with open(source, "rb") as old, open(temporary, "wb") as new:
        for _ in range(lines):
            new.write(old.readline())
        new.flush()
        os.fsync(new.fileno())
    temporary.replace(target)
