"""The values of a run's row in the index, while the run passes its stages and when it ends."""

from typing import Any

from resolver.events.run_log import RunLog, cost_of_run
from resolver.models.run import PullRequest, Task
from resolver.runs.stages import RunResult, StageValues
from resolver.storage.run_index import DEFERRED, MAX_TITLE_LENGTH

MAX_REASON_LENGTH = 1_000


def row_of_stage(values: StageValues) -> dict[str, Any]:
    """Return what is known of the run after a stage."""
    # The pull request before the final comment names it: somebody may answer there at once.
    about = _about(values.task, values.publication.pull_request)
    return about | _cost(values.log, values.request.run)


def row_of_result(result: RunResult, ended: float) -> dict[str, Any]:
    """Return how an attempt of the run ended. ended: seconds since 1970."""
    outcome, request = result.outcome_file, result.request
    known = _about(result.report.task, result.publication.pull_request)
    known |= _cost(result.log, request.run)
    if is_deferred(result):
        what = result.failure.what if result.failure else ""
        return {"state": DEFERRED, "reason": what[:MAX_REASON_LENGTH], **known}
    pull = outcome.pull_request or outcome.earlier.pull_request
    return {
        "state": outcome.state.value,
        "reason": outcome.reason[:MAX_REASON_LENGTH],
        "ended": ended,
        "pull_request": pull.url if pull is not None else "",
        "verdict": outcome.evidence.verdict if outcome.files else "",
        **known,
    }


def is_deferred(result: RunResult) -> bool:
    """Return True if the run is repeated later, because an outage ended this attempt."""
    return bool(result.outage) and result.request.retry_until is not None


def _about(task: Task | None, pull: PullRequest | None) -> dict[str, Any]:
    about: dict[str, Any] = {}
    if task is not None:
        about |= {"title": task.title[:MAX_TITLE_LENGTH], "issue_url": task.url}
    if pull is not None and pull.number is not None:
        about["pull_number"] = pull.number
    return about


def _cost(log: RunLog | None, run: str) -> dict[str, Any]:
    """Return what the run has cost so far, without the earlier run whose log it continues."""
    if log is None:
        return {}
    cost, unpriced = cost_of_run(log.state.events, run)
    return {"cost": cost, "unpriced": unpriced}
