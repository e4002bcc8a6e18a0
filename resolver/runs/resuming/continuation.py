"""Continues an earlier run: checks its log and describes how the new run starts from it.

The entry points find the log, on this machine's disk or in the repository
(`resolver.storage.run_refs`).
"""

import json
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from resolver.errors import LogError, Refused
from resolver.events.lifecycle import RunStarted
from resolver.events.log import read_log
from resolver.events.run_log import require_opening
from resolver.events.state import State
from resolver.models.run import (
    Command,
    Continuation,
    Extension,
    Publication,
    RunLimits,
    RunState,
    Trigger,
)
from resolver.runs.outcome_file import EarlierPublication
from resolver.runs.output import Output
from resolver.storage.earlier_runs import BUNDLE, CHANGE, MAX_OUTCOME_BYTES, EarlierRun

DECISION_COMMANDS = frozenset({Command.APPROVE, Command.DENY})
"""The commands that decide about an action that waits for approval."""

NOTHING_KEPT = "a finished change is stored if it could not be published"

NOTHING_WAITS = "an action that waits for approval is shown in a comment of its run"

MAX_EARLIER_RUNS = 20
"""Maximum number of earlier runs of a conversation that are searched for an unpublished change."""


def continue_from_log(
    trigger: Trigger, earlier: EarlierRun, source: str, output: Output
) -> Continuation:
    """Begin the log in the output folder with the earlier run's, and return how to continue it.

    source: URL that the repository is cloned from, which the log must not decide. Raises LogError
    if the earlier log is not a sound log of a run on the same issue, and Refused if there is
    nothing to approve, deny or publish.
    """
    events = list(read_log(earlier.log))
    opening = require_opening(events, earlier.log)
    logged_trigger = opening.task.trigger
    is_same_repository = logged_trigger.repository.casefold() == trigger.repository.casefold()
    if not is_same_repository or logged_trigger.subject != trigger.subject:
        raise LogError(
            f"the log of run {earlier.run} is about {logged_trigger.repository}"
            f"#{logged_trigger.subject}, not about {trigger.repository}#{trigger.subject}"
        )
    if opening.task.source.casefold() != source.casefold():
        raise LogError(
            f"the log of run {earlier.run} is about another server's {logged_trigger.repository}"
        )
    state = State.fold(events)
    is_decision = trigger.command in DECISION_COMMANDS
    is_publish = trigger.command is Command.PUBLISH
    if is_publish and not has_change(earlier):
        raise Refused("there is no finished change to publish here", NOTHING_KEPT)
    if is_decision and state.run_state is not RunState.AWAITING_CONFIRMATION:
        raise Refused("no action is waiting for approval here", NOTHING_WAITS)
    if is_publish:
        _copy_change(earlier, output.folder)
    output.begin_with(events)
    return Continuation(
        run=earlier.run,
        message="" if is_decision or is_publish else trigger.instruction,
        by=trigger.actor.login,
        extension=Extension()
        if is_publish
        else remaining_allowance(state, opening.limits, trigger.extension),
        publishes=is_publish,
        publication=read_earlier_publication(earlier.outcome),
    )


def _state_of(earlier: EarlierRun) -> State:
    """Return the state at the end of the run's log; an empty one if the log can't be read."""
    try:
        return State.fold(read_log(earlier.log))
    except LogError:
        return State()


def is_waiting_for_person(earlier: EarlierRun) -> bool:
    """Return True if the run ended while an action was waiting for approval."""
    return _state_of(earlier).run_state is RunState.AWAITING_CONFIRMATION


def has_change(earlier: EarlierRun) -> bool:
    """Return True if the run finished with a change that is stored with its log and is not
    public."""
    is_kept = all((earlier.log.parent / name).is_file() for name in (CHANGE, BUNDLE))
    return is_kept and _state_of(earlier).run_state is RunState.FINISHED


def find_unpublished_run(runs: Iterable[EarlierRun]) -> EarlierRun | None:
    """Return the newest run of a conversation whose change waits to be published; None if there is
    none.

    runs: newest first. Questions and runs without a result may have followed it, but a later run
    that published something replaces it.
    """
    for run in islice(runs, MAX_EARLIER_RUNS):
        if has_change(run):
            return run
        if _read_published(run.outcome)[0].branch:
            return None
    return None


def _copy_change(earlier: EarlierRun, folder: Path) -> None:
    """Copy the stored change. It is not trusted: publishing checks it like one that comes from a
    sandbox."""
    for name in (BUNDLE, CHANGE):
        shutil.copyfile(earlier.log.parent / name, folder / name)


def worked_until(earlier: EarlierRun) -> datetime:
    """Return when the run ended, by its log; the earliest time if its log can't be read.

    It orders the runs of several conversations: their ids are in the order of the requests, which
    is not the one in which a server starts them.
    """
    events = _state_of(earlier).events
    return events[-1].timestamp if events else datetime.min.replace(tzinfo=UTC)


def is_change_run(earlier: EarlierRun) -> bool:
    """Return True if the run was to change something, so that it was neither a review nor an
    answer."""
    first = next(iter(_state_of(earlier).events), None)
    if not isinstance(first, RunStarted):
        return False
    return first.task.trigger.command not in {Command.REVIEW, Command.QUESTION}


def remaining_allowance(state: State, new_limits: RunLimits, requested: Extension) -> Extension:
    """Return the extension to grant in addition to the limits in force.

    It has the amounts that were requested. A limit that was not named and is more than half used up
    is raised, so that as much is left as `new_limits` allow a new run.
    """
    limits = state.limits
    iterations = _needed_allowance(
        new_limits.max_iterations, limits.max_iterations - state.iterations
    )
    budget = _needed_allowance(new_limits.max_budget, limits.max_budget - state.priced)
    time = _needed_allowance(new_limits.max_time, limits.max_time - state.seconds)
    return Extension(
        iterations=requested.iterations or int(iterations),
        budget=requested.budget or budget,
        time=requested.time or time,
    )


def _needed_allowance(full: float, remaining: float) -> float:
    return full - max(0.0, remaining) if remaining < full / 2 else 0.0


def read_earlier_publication(outcome: Path) -> Publication:
    """Return what an earlier run has published, or what was public when it was itself continued."""
    published, earlier = _read_published(outcome)
    if not (published.branch and published.commit and published.pull_request):
        published = earlier
    return Publication.model_validate(published, from_attributes=True)


def _read_published(path: Path) -> tuple[EarlierPublication, EarlierPublication]:
    """Return what an earlier run has published, and what was public when it began; nothing if its
    outcome is missing or can't be read."""
    try:
        with open(path, "rb") as file:
            outcome = json.loads(file.read(MAX_OUTCOME_BYTES))
        published = EarlierPublication.model_validate(outcome, extra="ignore")
        earlier = EarlierPublication.model_validate(outcome.get("earlier", {}), extra="ignore")
        return published, earlier
    except (OSError, ValueError, RecursionError):  # the last one from what is nested too deeply
        return EarlierPublication(), EarlierPublication()
