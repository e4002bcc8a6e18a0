"""Which of its issues a sweep starts, and what its report says about each."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.entrypoints.sweep import (
    Sweep,
    SweepFate,
    SweepLimits,
    SweepRow,
    _fate_of_result,
    render_sweep,
)
from resolver.errors import ForgeError, RunStopped
from resolver.events.lifecycle import ModelReplied
from resolver.github.comments.report import RunFailure
from resolver.github.context.labeled_issues import Labeling
from resolver.github.events.payloads import Issue, User
from resolver.models.run import Completion, Publication, RunState, Trigger
from resolver.runs.conversation.comments import Conclusion, conclude
from resolver.runs.stages import ExecutedRun, PublishedRun, RunResult
from tests.github import reports
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import PULL, executed_values, run_log, run_request
from tests.trace import sample

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LABELING = Labeling(
    label="agent",
    by=User(login="mona", id=9),
    at=AT,
    edited_at=None,
    is_open=True,
)
PUBLISHED = Publication(branch="agent/1", commit="d" * 40, pull_request=PULL)
PAGE = "https://github.com/octo/calc/issues/1#issuecomment-9"


@dataclass
class LabeledForge(MemoryForge):
    """A forge with labeled issues, and with what GitHub would say about each, by its number.

    labelings: an error is raised. published: what earlier runs have published. active: since when
    a run may be at work.
    """

    numbers: tuple[int, ...] = ()
    labelings: Mapping[int, Labeling | Exception] = field(default_factory=dict)
    published: Mapping[int, Publication] = field(default_factory=dict)
    active: Mapping[int, datetime] = field(default_factory=dict)

    @property
    def run_comments(self) -> Any:
        return SimpleNamespace(close_comments_of_killed_runs=lambda *_: None)

    def labeled(self, label: str) -> "LabeledForge":
        assert label == "agent"
        return self

    def oldest_first(self) -> list[Issue]:
        return [
            Issue(number=n, id=n, title=f"Fault {n}", created_at=AT, updated_at=AT)
            for n in self.numbers
        ]

    def labeling(self, issue: Issue) -> Labeling:
        found = self.labelings.get(issue.number, LABELING)
        if isinstance(found, Exception):
            raise found
        return found

    def find_publication(self, trigger: Trigger) -> Publication | None:
        return self.published.get(trigger.number or 0)

    def active_since(self, *triggers: Trigger) -> datetime | None:
        return self.active.get(triggers[0].number or 0)


@dataclass
class PlainSweep(Sweep):
    """A sweep whose runs cost a dollar and do nothing. stops_at: the run that a signal ends."""

    stops_at: int = 0

    def _start_run(self, trigger: Trigger, issue: Issue) -> None:
        if trigger.number == self.stops_at:
            raise RunStopped("the run was stopped by SIGTERM", "start it again")
        self.started_runs += 1
        self._add_row(SweepRow(issue.number, issue.title, SweepFate.DONE, cost=1.0))


def sweep(
    forge: LabeledForge,
    folder: Path,
    runs: int = 10,
    cost: float = 20.0,
    kind: type[Sweep] = PlainSweep,
    **more: Any,
) -> Sweep:
    # This forge has no comments that a run could wait for.
    settings = load_settings({"max_budget": 1.6}, {"RESOLVER_PACE": '{"command_interval": 0}'})
    values: dict[str, Any] = {
        "repository": "octo/calc",
        "forge": forge,
        "settings": settings,
        "load": lambda _: settings,
        "host": run_request(folder).host,
        "folder": folder,
        "limits": SweepLimits(runs, cost),
        "now": lambda: AT + timedelta(minutes=5),
    }
    return kind(**{**values, **more})


def forge_with(folder: Path, *numbers: int, **more: Any) -> LabeledForge:
    return LabeledForge(folder / "issue.md", "main", numbers=numbers, **more)


def fates(made: Sweep) -> list[tuple[int, str, str]]:
    return [(row.number, row.fate.value, row.reason) for row in made.run()]


@pytest.mark.parametrize(("is_dry_run", "started"), [(False, "done"), (True, "would start")])
def test_the_oldest_issues_are_started_up_to_the_number_of_runs(
    tmp_path: Path, is_dry_run: bool, started: str
) -> None:
    made = sweep(forge_with(tmp_path, 3, 5, 8, 9), tmp_path, runs=2, is_dry_run=is_dry_run)
    why = "a sweep starts at most 2 runs (--max-issues)"
    assert fates(made) == [
        (3, started, ""), (5, started, ""), (8, "not started", why), (9, "not started", why),
    ]  # fmt: skip


def test_no_run_is_started_with_too_little_of_the_money(tmp_path: Path) -> None:
    made = sweep(forge_with(tmp_path, 1, 2, 3), tmp_path, cost=2.1)
    assert fates(made)[2] == (3, "not started", "$2.00 of $2.10 are spent (--max-total)")
    text = render_sweep(made, "sweep.txt.j2", "").splitlines()
    assert text[0] == "#1  done  ($1.00)"
    assert text[-1] == "2 done, 1 not started; $2.00 of $2.10 spent"


def test_an_issue_that_cannot_be_read_is_named_and_the_others_are_done(tmp_path: Path) -> None:
    lost = ForgeError("could not read the events of #1", "try again")
    made = sweep(forge_with(tmp_path, 1, 2, labelings={1: lost}), tmp_path)
    assert fates(made) == [(1, "failed", lost.what), (2, "done", "")]


def test_an_ignored_labeling_is_skipped_with_the_pull_request_that_is_there(
    tmp_path: Path,
) -> None:
    taken = replace(LABELING, pull_request="https://x/pull/7", pull_request_by="carl")
    made = sweep(forge_with(tmp_path, 1, 2, labelings={1: taken}), tmp_path)
    reason = "an open pull request of carl closes it"
    assert fates(made) == [(1, "skipped", reason), (2, "done", "")]
    assert made.rows[0].url == "https://x/pull/7"
    assert made.started_runs == 1


def test_a_label_of_somebody_without_write_access_is_refused_by_its_run_and_counts_as_none(
    tmp_path: Path,
) -> None:
    refused: list[RunResult] = []
    made = sweep(
        forge_with(tmp_path, 1, level="triage"), tmp_path, kind=Sweep, on_result=refused.append
    )
    [(_, fate, reason)] = fates(made)
    assert (fate, made.started_runs) == ("skipped", 0)
    assert reason.startswith("mona has no write access")
    [result] = refused
    assert result.exit_code == 5
    assert (result.request.trigger.number, result.request.output.folder.name) == (1, "issue-1")


def test_a_run_may_spend_what_the_runs_before_it_have_left(tmp_path: Path) -> None:
    results: list[RunResult] = []
    made = sweep(
        forge_with(tmp_path, 1, level="triage"), tmp_path, kind=Sweep, on_result=results.append
    )
    made.rows.append(SweepRow(9, "Earlier", SweepFate.DONE, cost=18.75))
    made.run()
    [result] = results
    assert result.request.budget == 1.25
    made.rows.append(SweepRow(8, "Later", SweepFate.DONE, cost=1.0))
    assert result.request.budget == 1.25, "it is known when the run starts"


def test_what_was_answered_before_is_not_started_again(tmp_path: Path) -> None:
    answered = {1: Publication(comment_url=PAGE), 2: Publication(branch="agent/2")}
    made = sweep(forge_with(tmp_path, 1, 2, published=answered), tmp_path)
    assert fates(made) == [(1, "done before", ""), (2, "done", "")], "2 lacks its comment"
    assert made.rows[0].url == PAGE
    dry = sweep(forge_with(tmp_path, 1, 2, published=answered), tmp_path, is_dry_run=True)
    assert [fate for _, fate, _ in fates(dry)] == ["done before", "done before"]


def test_an_issue_that_a_run_is_at_work_on_is_left_to_it(tmp_path: Path) -> None:
    active = {1: AT, 2: AT - timedelta(days=2)}
    made = sweep(forge_with(tmp_path, 1, 2, active=active), tmp_path)
    working = "a run that started at 03:04 UTC may still be working on it"
    assert fates(made) == [(1, "skipped", working), (2, "done", "")], "2 was killed"


def test_a_signal_leaves_a_row_for_each_issue_that_was_not_begun(tmp_path: Path) -> None:
    made = sweep(forge_with(tmp_path, 1, 2, 3), tmp_path, stops_at=2)
    stopped = "the run was stopped by SIGTERM"
    assert fates(made) == [
        (1, "done", ""),
        (2, "not started", stopped),
        (3, "not started", stopped),
    ]
    assert made.stopping.is_set()
    made = sweep(forge_with(tmp_path, 1), tmp_path)
    made.stopping.set()
    assert fates(made) == [(1, "not started", "the sweep was stopped")]


def result(
    folder: Path, conclusion: Conclusion, publication: Publication, state: RunState
) -> RunResult:
    values = executed_values(run_request(folder)).with_value(PublishedRun(publication))
    values = values.with_value(
        ExecutedRun(reports.outcome(state=state, reason="no more replies"), reports.patch())
    )
    return conclude(values, conclusion, MemoryForge(folder / "issue.md", "main"))


REPEATED = Publication(comment_url=PAGE, repeated=True)
ERROR = RunFailure(kind="error", what="it broke")


@pytest.mark.parametrize(
    ("conclusion", "publication", "state", "fate", "reason"),
    [
        (Conclusion(), PUBLISHED, RunState.FINISHED, SweepFate.DONE, ""),
        (Conclusion(), REPEATED, RunState.FINISHED, SweepFate.DONE_BEFORE, ""),
        (Conclusion(ERROR, 1), REPEATED, RunState.FINISHED, SweepFate.FAILED, "it broke"),
        (Conclusion(ERROR, 1), PUBLISHED, RunState.FINISHED, SweepFate.FAILED, "it broke"),
        (
            Conclusion(RunFailure(kind="refused", what="mona may not"), 5),
            Publication(), RunState.FINISHED, SweepFate.SKIPPED, "mona may not",
        ),
        (
            Conclusion(RunFailure(kind="ceiling", what="no more today"), 5),
            Publication(), RunState.FINISHED, SweepFate.SKIPPED, "no more today",
        ),
        (
            Conclusion(exit_code=3),
            Publication(), RunState.FINISHED, SweepFate.DONE, "no more replies",
        ),
        (
            Conclusion(exit_code=4),
            Publication(), RunState.LIMIT, SweepFate.FAILED, "no more replies",
        ),
    ],
)  # fmt: skip
def test_the_end_of_a_run_decides_the_fate_of_its_issue(
    tmp_path: Path,
    conclusion: Conclusion,
    publication: Publication,
    state: RunState,
    fate: SweepFate,
    reason: str,
) -> None:
    assert _fate_of_result(result(tmp_path, conclusion, publication, state)) == (fate, reason)


def test_the_row_of_a_run_has_its_page_and_what_it_cost(tmp_path: Path) -> None:
    made = sweep(forge_with(tmp_path, 1), tmp_path)
    [issue] = made.forge.labeled("agent").oldest_first()
    row = made._row_of_result(result(tmp_path, Conclusion(), PUBLISHED, RunState.FINISHED), issue)
    assert (row.number, row.url, row.cost) == (1, PULL.url, 0.0)
    opening = sample.started().model_copy(update={"run": "run-1"})
    reply = ModelReplied(completion=Completion(model="m", cost=0.5))
    unpriced = ModelReplied(completion=Completion(model="m", cost=None))
    with run_log(tmp_path / "events.jsonl") as log:
        for event in (opening, reply, reply, unpriced):
            log.stream.add(event)
        ended = replace(result(tmp_path, Conclusion(), PUBLISHED, RunState.FINISHED), log=log)
        row = made._row_of_result(ended, issue)
    assert (row.cost, row.unpriced) == (1.0, 1)
