"""Reports of an evaluation: markdown, JSON, and a page that needs nothing else."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from resolver.config.templates import render
from resolver.evaluation.results import (
    OUTPUT_FOLDER,
    REFERENCE_FILE,
    AttemptResult,
    Evaluation,
    attempt_folder,
)
from resolver.evaluation.statistics import Distribution, PairedComparison
from resolver.models.rate import Rate
from resolver.runs.output import PATCH, read_diff

MAX_DIFF_BYTES = 50_000
"""Number of bytes of a diff that are part of the page."""

VERDICTS = ("verified", "checked", "not_verified")


@dataclass(frozen=True)
class ModelSummary:
    """The results of one model.

    false_claims: of the changes that Resolver called verified, those that are not resolved.
    cost: US dollars of all runs; None if a price is unknown.
    by_verdict: resolved and all results, by Resolver's own verdict.
    causes: number of results that are not resolved, by cause, the most frequent first.
    distributions: of the cost, the steps and the seconds of a run; without unknown costs.
    """

    model: str
    resolved: Rate
    false_claims: Rate
    cost: float | None
    median_seconds: float
    median_iterations: float
    tokens: int
    by_verdict: dict[str, Rate]
    causes: tuple[tuple[str, int], ...]
    distributions: dict[str, Distribution | None]

    @property
    def cost_per_resolved(self) -> float | None:
        """US dollars of all runs by resolved task; None if there is none, or a price is unknown."""
        return (
            self.cost / self.resolved.count
            if self.cost is not None and self.resolved.count
            else None
        )


@dataclass(frozen=True)
class EvaluationSummary:
    """An evaluation with what its results add up to. missing: attempts without a result."""

    evaluation: Evaluation
    models: tuple[ModelSummary, ...]
    comparisons: tuple[PairedComparison, ...]
    missing: int


def summarize(evaluation: Evaluation, other: Evaluation | None = None) -> EvaluationSummary:
    """Return the summary. other: results that each model is compared with, task by task.

    Without it, each model is compared with the first one.
    """
    names = evaluation.file.models
    groups = {name: evaluation.of_model(name) for name in names}
    comparisons: list[PairedComparison] = []
    if other is not None:
        for name in names:
            for against in other.file.models:
                if against == name or len(other.file.models) == 1:
                    label = f"{against} in {other.folder}"
                    comparisons.append(
                        compare_paired(name, groups[name], label, other.of_model(against))
                    )
    else:
        comparisons = [
            compare_paired(names[0], groups[names[0]], name, groups[name]) for name in names[1:]
        ]
    return EvaluationSummary(
        evaluation=evaluation,
        models=tuple(summarize_model(name, groups[name]) for name in names),
        comparisons=tuple(comparisons),
        missing=len(evaluation.file.tasks) * len(names) - len(evaluation.results),
    )


def summarize_model(model: str, results: Sequence[AttemptResult]) -> ModelSummary:
    """Return the summary of a model's results."""
    costs = [result.cost for result in results]
    known = [cost for cost in costs if cost is not None]
    verdicts = {v: [r for r in results if r.verdict == v] for v in VERDICTS}
    causes = Counter(result.cause for result in results if not result.resolved)
    claims = verdicts["verified"]
    return ModelSummary(
        model=model,
        resolved=_resolved(results),
        false_claims=Rate(sum(result.is_false_claim for result in claims), len(claims)),
        cost=sum(known) if len(known) == len(costs) else None,
        median_seconds=median(result.seconds for result in results) if results else 0.0,
        median_iterations=median(result.iterations for result in results) if results else 0.0,
        tokens=sum(result.tokens.input + result.tokens.output for result in results),
        by_verdict={verdict: _resolved(group) for verdict, group in verdicts.items()},
        distributions={
            "cost": Distribution.of(known),
            "steps": Distribution.of([result.iterations for result in results]),
            "seconds": Distribution.of([result.seconds for result in results]),
        },
        causes=tuple(sorted(causes.items(), key=lambda item: (-item[1], item[0]))),
    )


def compare_paired(
    first: str, results: Sequence[AttemptResult], second: str, others: Sequence[AttemptResult]
) -> PairedComparison:
    """Return the comparison of the tasks that have a result in both."""
    a = {result.task: result.resolved for result in results}
    b = {result.task: result.resolved for result in others}
    tasks = sorted(a.keys() & b.keys())
    return PairedComparison(
        first=first,
        second=second,
        both=sum(a[task] and b[task] for task in tasks),
        neither=sum(not a[task] and not b[task] for task in tasks),
        only_first=tuple(task for task in tasks if a[task] and not b[task]),
        only_second=tuple(task for task in tasks if b[task] and not a[task]),
    )


@dataclass(frozen=True)
class RegressionLimits:
    """When fewer resolved tasks are a regression, and not chance.

    p_value: largest p-value of the paired test. drop: share of the common tasks by which the
    resolved ones may fall, however few they are.
    """

    p_value: float = 0.05
    drop: float = 0.2


def find_regressions(
    summary: EvaluationSummary, limits: RegressionLimits
) -> tuple[PairedComparison, ...]:
    """Return the comparisons with an earlier run in which fewer tasks are resolved now."""
    return tuple(
        comparison
        for comparison in summary.comparisons
        if (lost := len(comparison.only_second) - len(comparison.only_first)) > 0
        and (comparison.p_value <= limits.p_value or lost > limits.drop * comparison.total)
    )


def render_regression(
    summary: EvaluationSummary, regressions: Sequence[PairedComparison], page: str
) -> str:
    """Return the text of an issue about regressions. page: URL of the run, "" if unknown."""
    return render("eval/regression.md.j2", summary, regressions=regressions, page=page)


def render_report_markdown(summary: EvaluationSummary) -> str:
    """Return the report as markdown."""
    return render("eval/report.md.j2", summary)


def render_report_json(summary: EvaluationSummary) -> str:
    """Return the report as JSON. Its field names are stable."""
    data: dict[str, Any] = {
        "format": 1,
        **summary.evaluation.file.model_dump(mode="json", exclude={"format"}),
        "missing": summary.missing,
        "summary": [_model_data(model) for model in summary.models],
        "comparisons": [
            {**vars(comparison), "total": comparison.total, "p_value": comparison.p_value}
            for comparison in summary.comparisons
        ],
        "results": [
            {**result.model_dump(mode="json"), "false_claim": result.is_false_claim}
            for result in summary.evaluation.results
        ],
    }
    return json.dumps(data, indent=2)


def render_report_html(summary: EvaluationSummary) -> str:
    """Return the report as one page, with the diffs in it and links to the traces next to it."""
    rows = [_row(summary.evaluation, result) for result in summary.evaluation.results]
    return render("eval/report.html.j2", summary, rows=rows)


@dataclass(frozen=True)
class ResultRow:
    """A result in the page. trace, patch_path: paths relative to the results folder."""

    result: AttemptResult
    trace: str
    patch_path: str
    patch: str
    reference: str


def _row(evaluation: Evaluation, result: AttemptResult) -> ResultRow:
    folder = attempt_folder(evaluation.folder, result.model, result.task)
    trace = folder / OUTPUT_FOLDER / "trace.html"
    return ResultRow(
        result=result,
        trace=trace.relative_to(evaluation.folder).as_posix() if trace.is_file() else "",
        patch_path=(folder / OUTPUT_FOLDER / PATCH).relative_to(evaluation.folder).as_posix(),
        patch=read_diff(folder / OUTPUT_FOLDER / PATCH, MAX_DIFF_BYTES),
        reference=read_diff(folder / REFERENCE_FILE, MAX_DIFF_BYTES),
    )


def _resolved(results: Sequence[AttemptResult]) -> Rate:
    return Rate(sum(result.resolved for result in results), len(results))


def _model_data(model: ModelSummary) -> dict[str, Any]:
    return {
        **vars(model),
        "resolved": _rate_data(model.resolved),
        "false_claims": _rate_data(model.false_claims),
        "cost_per_resolved": model.cost_per_resolved,
        "by_verdict": {name: _rate_data(rate) for name, rate in model.by_verdict.items()},
        "causes": dict(model.causes),
        "distributions": {
            name: vars(distribution) if distribution else None
            for name, distribution in model.distributions.items()
        },
    }


def _rate_data(rate: Rate) -> dict[str, Any]:
    return {
        "count": rate.count,
        "total": rate.total,
        "share": rate.share,
        "interval_95": list(rate.interval),
    }
