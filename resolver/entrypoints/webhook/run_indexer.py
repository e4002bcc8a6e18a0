"""Writes the rows of the index of runs while runs start, pass their stages and end."""

import logging
from collections.abc import Mapping
from typing import Any

from resolver.events.run_log import RunLog, start_position
from resolver.events.state import State
from resolver.events.stream import Clock, utc_now
from resolver.models.run import RunState, Trigger
from resolver.runs.stages import RunRequest, RunResult, StageValues
from resolver.storage.database import DatabaseError
from resolver.storage.run_index import DEFERRED, MAX_TITLE_LENGTH, RunIndex

logger = logging.getLogger("resolver.entrypoints.webhook")

SUCCESSES = frozenset(
    {
        RunState.FINISHED.value,
        RunState.AWAITING_USER_INPUT.value,
        RunState.AWAITING_CONFIRMATION.value,
    }
)
"""The final states that are not failures."""

MAX_REASON_LENGTH = 1_000


class RunIndexer:
    """Writes the rows of the runs that this process executes. Never raises.

    executor: names this process.
    """

    def __init__(self, index: RunIndex, executor: str | None = None, now: Clock = utc_now) -> None:
        self.index, self._executor, self._now = index, executor, now

    def record_start(self, request: RunRequest) -> None:
        """Record that an attempt of the run begins."""
        self._write(
            request.run,
            request.trigger,
            {
                "state": RunState.RUNNING.value, "reason": "", "cause": "", "ended": None,
                "executor": self._executor or "",
            },
        )  # fmt: skip

    def record_stage(self, values: StageValues) -> None:
        """Record what is known of the run after a stage."""
        task, request, pull = values.task, values.request, values.publication.pull_request
        changes: dict[str, Any] = {"model": values.current_settings.model}
        if task is not None:
            changes |= {"title": task.title[:MAX_TITLE_LENGTH], "issue_url": task.url}
        if pull is not None and pull.number is not None:
            # Before the final comment names it: somebody may answer there at once.
            changes["pull_number"] = pull.number
        self._write(request.run, request.trigger, changes | _usage(values.log, request.run))

    def record_end(self, result: RunResult) -> None:
        """Record how the attempt ended."""
        self._write(result.request.run, result.request.trigger, self._ended(result))

    def _ended(self, result: RunResult) -> dict[str, Any]:
        outcome = result.outcome_file
        if result.outage and result.request.retry_until is not None:
            what = result.failure.what if result.failure else ""
            reason = {"reason": what[:MAX_REASON_LENGTH], "cause": result.outage}
            return {"state": DEFERRED, **reason, **_usage(result.log, result.request.run)}
        pull = outcome.pull_request or outcome.earlier.pull_request
        values: dict[str, Any] = {
            "state": outcome.state.value,
            "reason": outcome.reason[:MAX_REASON_LENGTH],
            "cause": _cause(result) or "",
            "model": outcome.model,
            "ended": self._now().timestamp(),
            "branch": outcome.branch or outcome.earlier.branch or "",
            "pull_request": pull.url if pull is not None else "",
            "verdict": outcome.evidence.verdict if outcome.files else "",
        }
        values |= _usage(result.log, result.request.run)
        if result.report.task is not None:
            task = result.report.task
            values |= {"title": task.title[:MAX_TITLE_LENGTH], "issue_url": task.url}
        return values

    def _write(self, run: str, trigger: Trigger, changes: Mapping[str, Any]) -> None:
        try:
            self.index.put(run, trigger, changes)
        except DatabaseError as error:
            logger.warning("the index of runs can't be written: %s", error.what)


def _usage(log: RunLog | None, run: str) -> dict[str, Any]:
    """Return what the run has used so far, without the earlier run whose log it continues."""
    if log is None:
        return {}
    events = log.state.events
    state, earlier = log.state, State.fold(events[: start_position(events, run)])
    return {
        "cost": state.priced - earlier.priced,
        "unpriced": state.unpriced - earlier.unpriced,
        "tokens_in": state.tokens.input - earlier.tokens.input,
        "tokens_out": state.tokens.output - earlier.tokens.output,
    }


def _cause(result: RunResult) -> str | None:
    """Return the cause of a failure in a word or two; None if the run succeeded."""
    outcome = result.outcome_file
    if outcome.state.value in SUCCESSES:
        return None
    if result.outage:
        return result.outage
    if outcome.limit:
        return f"limit: {outcome.limit}"
    failure = result.failure
    if failure is not None:
        return failure.cause or failure.kind
    because = result.outcome.because if result.outcome else None
    return because or outcome.state.value
