"""When a pull request is no draft: by what is on record."""

import pytest

from resolver.models.check_history import CheckHistory, ObservedCheck, Verdict
from resolver.models.run import Outcome, RunState
from resolver.verification.claims import checks_of_agent
from resolver.verification.readiness import missing_verification
from tests.verification.test_course import Log, verified

DONE = Outcome(state=RunState.FINISHED, task_completed=True)


def course(*verdicts: Verdict, stale: bool = False) -> CheckHistory:
    checks = (
        ObservedCheck(command=f"pytest {n}", verdict=verdict, stale=stale)
        for n, verdict in enumerate(verdicts)
    )
    return CheckHistory(edited=True, checks=tuple(checks))


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        (course("passed"), ""),
        (course("unknown", "passed"), ""),
        (CheckHistory(), "unchecked"),
        (course("failed", stale=True), "unchecked"),
        (course("passed", stale=True), "edited"),
        (course("failed", "passed"), "failed"),
        (course("passed", "failed"), "failed"),
        (course("passed", "unfinished"), "unended"),
        (course("unknown"), "hidden"),
        (CheckHistory(unclear=True), "unclear"),
        (CheckHistory(unclear=True, unclear_after_edit=True), "unclear"),
    ],
)
def test_what_the_log_shows_decides(shown: CheckHistory, missing: str) -> None:
    assert missing_verification(DONE, shown) == missing


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        Outcome(state=RunState.FINISHED),
        Outcome(state=RunState.LIMIT, task_completed=True),
        Outcome(state=RunState.REJECTED),
    ],
)
def test_work_that_is_not_done_is_not(outcome: Outcome | None) -> None:
    assert missing_verification(outcome, course("passed")) == "unfinished"


def test_a_linter_that_passes_outdoes_no_test_that_fails() -> None:
    log = Log()
    log.edited()
    log.ran("pytest -q", 1, "1 failed")
    assert missing_verification(DONE, log.ran("ruff check .")) == "failed"


@pytest.mark.parametrize("edit", ["", "sed -i s/a/b/ a.py", "git stash pop", "make fmt"])
def test_an_edit_after_the_check_is_seen_however_it_is_made(edit: str) -> None:
    log = Log()
    log.ran("pytest -q")
    assert missing_verification(DONE, log.ran(edit) if edit else log.edited()) == "edited"


RUNS = [
    [("pytest -q", 0, "")],
    [("pytest -q", 1, ""), ("ruff check .", 0, "")],
    [("pytest -q | tail", 0, "3 passed")],
    [("pytest -q | tail", 0, "1 failed, 3 passed")],
    [("pytest -q", 5, "no tests ran in 0.1s")],
    [("pytest -q", 0, ""), ("sed -i s/a/b/ b.py", 0, "")],
    [("pytest -q", None, "")],
    [("pip install x && pytest -q", 0, "")],
    [("pytest -q", 0, ""), ("git commit -am x", 0, "")],
]


@pytest.mark.parametrize("runs", RUNS)
def test_checklist_draft_and_evidence_agree(runs: list[tuple[str, int | None, str]]) -> None:
    log = Log()
    log.edited()
    for command, exit_code, output in runs:
        log.ran(command, exit_code, output)
    ready = missing_verification(DONE, log.course) == ""
    assert ready == verified(log.course)
    told = checks_of_agent(log.course)
    fails = [each for each in told if each.verdict == "failed" and not each.stale]
    assert ready == (not fails and any(c.verdict == "passed" and not c.stale for c in told))
