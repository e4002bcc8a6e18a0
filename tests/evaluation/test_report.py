"""Tests of the results folder, the shared budget and the reports."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from resolver.errors import OverBudget, UsageError
from resolver.evaluation.evaluate import SharedBudget
from resolver.evaluation.report import (
    render_report_html,
    render_report_json,
    render_report_markdown,
    summarize,
)
from resolver.evaluation.results import (
    AttemptResult,
    Evaluation,
    EvaluationFile,
    attempt_folder,
    model_slug,
    read_evaluation,
    write_evaluation,
    write_result,
)


def result(task: str, model: str = "a/b", **values: Any) -> AttemptResult:
    given = {"resolved": True, "cause": "", "verdict": "verified", "cost": 0.5, **values}
    return AttemptResult(task=task, model=model, **given)


def make_results(folder: Path, *results: AttemptResult) -> Evaluation:
    tasks = tuple(dict.fromkeys(result.task for result in results))
    models = tuple(dict.fromkeys(result.model for result in results))
    write_evaluation(folder, EvaluationFile(suite="suite", tasks=tasks, models=models))
    for result in results:
        target = attempt_folder(folder, result.model, result.task)
        target.mkdir(parents=True)
        write_result(target, result)
    return read_evaluation(folder)


def example(folder: Path) -> Evaluation:
    return make_results(
        folder,
        result("one"),
        result("two", resolved=False, cause="tests_failed", detail="<b>1 failed</b>"),
        result("three", resolved=False, cause="no_change", verdict="not_verified", cost=0.0),
        result("one", "c", verdict="checked", cost=None),
        result("two", "c"),
        result("three", "c"),
    )


def test_the_summary_counts_resolved_tasks_and_false_claims(tmp_path: Path) -> None:
    first, second = summarize(example(tmp_path)).models
    assert (first.resolved.count, first.resolved.total) == (1, 3)
    assert (first.false_claims.count, first.false_claims.total) == (1, 2)
    assert (first.cost, first.cost_per_resolved) == (1.0, 1.0)
    assert first.causes == (("no_change", 1), ("tests_failed", 1))
    assert (second.cost, second.cost_per_resolved) == (None, None)
    assert second.by_verdict["checked"].count == 1


def test_models_are_compared_task_by_task(tmp_path: Path) -> None:
    (comparison,) = summarize(example(tmp_path)).comparisons
    assert comparison.only_second == ("three", "two")
    assert comparison.both == 1
    assert comparison.p_value == 0.5


def test_two_runs_are_compared_model_by_model(tmp_path: Path) -> None:
    earlier = make_results(tmp_path / "a", result("one", resolved=False, cause="limit"))
    later = make_results(tmp_path / "b", result("one"))
    (comparison,) = summarize(later, earlier).comparisons
    assert comparison.only_first == ("one",)
    assert str(tmp_path / "a") in comparison.second


def test_the_reports_have_the_same_numbers(tmp_path: Path) -> None:
    summary = summarize(example(tmp_path))
    markdown = render_report_markdown(summary)
    assert "| a/b | 1 of 3 (33 %, 6-79 %) | 1 of 2 (50 %, 9-91 %) | $1.0000 | $1.0000 |" in markdown
    assert "| hidden tests fail | 1 |" in markdown
    data = json.loads(render_report_json(summary))
    assert data["summary"][0]["resolved"]["count"] == 1
    assert data["results"][1]["false_claim"] is True
    assert render_report_json(summarize(read_evaluation(tmp_path))) == render_report_json(summary)


@pytest.mark.attack
def test_the_page_escapes_what_tests_print_and_loads_nothing(tmp_path: Path) -> None:
    """The output of a test contains markup: the page shows it as text."""
    page = render_report_html(summarize(example(tmp_path)))
    assert "&lt;b&gt;1 failed&lt;/b&gt;" in page
    assert "<b>" not in page
    assert "http://" not in page and "https://" not in page and "<script" not in page


def test_results_of_other_tasks_are_not_mixed(tmp_path: Path) -> None:
    make_results(tmp_path / "a", result("one"))
    with pytest.raises(UsageError, match="results of other tasks"):
        write_evaluation(tmp_path / "a", EvaluationFile(suite="s", tasks=("x",), models=("m",)))
    with pytest.raises(UsageError, match="has no results"):
        read_evaluation(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("model", "folder"), [("openai/gpt", "openai-gpt"), ("../x", "x"), ("..", "model")]
)
def test_the_folder_of_a_model_is_inside_the_results(model: str, folder: str) -> None:
    assert model_slug(model) == folder


def test_runs_share_a_budget_that_is_never_exceeded() -> None:
    budget = SharedBudget(4.5, spent=0.5)
    assert budget.reserve(2.0) == 2.0
    assert budget.reserve(2.0) == 2.0
    budget.release(1.0)
    budget.release(0.5)
    # 1.5 are left, which is less than a run may spend, and no other run is active.
    with pytest.raises(OverBudget, match="used up"):
        budget.reserve(2.0)
    assert budget.reserve(1.5) == 1.5


def test_a_run_waits_for_what_an_active_one_may_leave() -> None:
    budget = SharedBudget(2.0)
    assert budget.reserve(5.0) == 2.0
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(budget.reserve, 2.0)
        budget.release(2.0)
        assert waiting.result(timeout=60) == 2.0
