"""outcome.json: the result of a run for programs. Field names are stable."""

from collections.abc import Mapping, Sequence
from typing import Any

from resolver.events.lifecycle import ReplayDiverged
from resolver.events.state import ModelMetrics, State
from resolver.forge.report import Failure
from resolver.model import Evidence, Outcome, Patch, Publication, RunState, Trigger

FORMAT = 1

_EARLIER = {"branch", "commit", "tree", "pull_request"}

_STATES = {
    "refused": RunState.REFUSED,
    "policy": RunState.REFUSED,
    "over_budget": RunState.REFUSED,
    "ceiling": RunState.REFUSED,
    "limit": RunState.LIMIT,
    "stopped": RunState.STOPPED,
}


def outcome_json(
    *,
    run: str,
    trigger: Trigger,
    model: str,
    base: str | None,
    outcome: Outcome | None,
    patch: Patch | None,
    publication: Publication,
    earlier: Publication,
    evidence: Evidence,
    failure: Failure | None,
    exit_code: int,
    divergences: Sequence[ReplayDiverged],
    spent: State | None,
) -> dict[str, Any]:
    """Every field is always there; null or empty where a run did not come so far.

    earlier: what was public already of the work that the run went on with.
    spent: for what each model and each service cost.
    """
    state, reason = _state(outcome, failure, publication)
    published = publication.model_dump(mode="json")
    return {
        "format": FORMAT,
        "run": run,
        "state": state.value,
        "reason": reason,
        "next_step": failure.next_step if failure else outcome.next_step if outcome else "",
        "limit": outcome.limit if outcome else None,
        "exit_code": exit_code,
        "key": trigger.key,
        "repository": trigger.repository,
        "number": trigger.number,
        "issue": trigger.subject,
        "model": model,
        "base": base,
        "commit": publication.commit,
        "tree": patch.tree if patch else None,
        "branch": publication.branch,
        "pull_request": published["pull_request"],
        "comment_url": publication.comment_url,
        "review": published["review"],
        "repeated": publication.repeated,
        "earlier": earlier.model_dump(mode="json", include=_EARLIER),
        "iterations": outcome.iterations if outcome else 0,
        "cost": outcome.cost if outcome else 0.0,
        "tokens": (outcome.tokens if outcome else Outcome(state=state).tokens).model_dump(),
        "models": _metrics(spent.metrics if spent else {}),
        "services": _metrics(spent.services if spent else {}),
        "seconds": outcome.seconds if outcome else 0.0,
        "task_completed": outcome.task_completed if outcome else False,
        "message": outcome.message if outcome else "",
        "places": [p.model_dump() for p in outcome.places] if outcome else [],
        "files": [f.model_dump() for f in patch.files] if patch else [],
        "evidence": evidence.model_dump(mode="json"),
        "divergences": [
            d.model_dump(include={"recorded_id", "field", "recorded", "found"}) for d in divergences
        ],
    }


def _metrics(metrics: Mapping[str, ModelMetrics]) -> dict[str, dict[str, Any]]:
    """By name; `cost` is null when the price of one of the replies is not known."""
    return {
        name: {
            "calls": each.calls,
            "cost": None if each.unpriced else each.priced,
            "priced": each.priced,
            "tokens": each.tokens.model_dump(),
            "seconds": each.seconds,
        }
        for name, each in metrics.items()
    }


def _state(
    outcome: Outcome | None, failure: Failure | None, publication: Publication
) -> tuple[RunState, str]:
    """State and reason; a failure outweighs how the agent ended."""
    if failure is not None:
        return _STATES.get(failure.kind, RunState.ERROR), failure.what
    if outcome is None:
        return RunState.FINISHED, "an earlier run of the same request did it"
    reason = outcome.reason or ("" if publication.pull_request else "finished without a change")
    return outcome.state, reason or "finished"
