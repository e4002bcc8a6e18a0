"""`resolver sweep`: a dry run on the test GitHub, and the fate of each issue on a forge in memory.

test_request_counts.py has a whole sweep.
"""

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
from resolver.github.comments.report import RunFailure
from resolver.github.context.labeled_issues import Labeling
from resolver.github.events import payloads
from resolver.models.run import Publication, RunState, Trigger
from resolver.runs.conversation.comments import Conclusion, conclude
from resolver.runs.stages import ExecutedRun, PublishedRun, RunResult
from tests.github import reports
from tests.parts.github_server.state import Issue
from tests.parts.memory_forge import MemoryForge
from tests.parts.runs import Ended
from tests.runs.plain_values import PULL, executed_values, run_request
from tests.runs.scenario import REPOSITORY, Scenario


class SweepScenario(Scenario):
    """A repository whose labeled issues are swept."""

    def labeled(self, title: str, by: str = "mona") -> Issue:
        """A labeled issue, which is a moment older than the next."""
        issue: Issue = self.github.create_issue(REPOSITORY, title, "It is wrong.", author="zoe")
        self.github.add_label(issue, "agent", by)
        self.github.advance(2)
        return issue

    def sweep(self, *options: str, **environment: str) -> Ended:
        pace = {"RESOLVER_PACE": '{"command_interval": 0, "write_interval": 0}'}
        return self.line.call("sweep", REPOSITORY, *options, **pace, **environment)


SCENARIO = SweepScenario


def test_a_dry_run_changes_nothing_and_says_what_would_be_done(scenario: SweepScenario) -> None:
    """A whole run: the story of the command. Text from outside stays in its cell of the summary."""
    scenario.github.grant("tom", REPOSITORY, "triage")
    first = scenario.labeled("a | b ](x) @octo #1 <img src=x> \x1b[31m" + scenario.token)
    refused = scenario.labeled("Two", by="tom")
    writes = len(scenario.github.writes())
    output, summary = scenario.line.folder / "swept", scenario.line.folder / "summary.md"
    options = ("--dry-run", "--output", str(output))
    done = scenario.sweep(*options, LLM_MODEL="", GITHUB_STEP_SUMMARY=str(summary))
    assert done.exit_code == 0, done.stderr
    assert f"#{first.number}  would start" in done.stdout
    assert f"#{refused.number}  skipped: tom has no write access" in done.stdout
    assert (len(scenario.github.writes()), scenario.endpoint.requests) == (writes, [])
    assert not output.exists()
    row, _ = [line for line in summary.read_text().splitlines() if line.startswith("| [")]
    assert row.count("|") == 5 and "<img" not in row and "`@octo`" in row
    assert scenario.token not in done.stdout + summary.read_text()


AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LABELING = Labeling(
    label="agent",
    by=payloads.User(login="mona", id=9),
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
        return SimpleNamespace(close_killed_runs=lambda *_: None)

    def labeled(self, label: str) -> "LabeledForge":
        assert label == "agent"
        return self

    def oldest_first(self) -> list[payloads.Issue]:
        return [
            payloads.Issue(number=n, id=n, title=f"Fault {n}", created_at=AT, updated_at=AT)
            for n in self.numbers
        ]

    def labeling(self, issue: payloads.Issue) -> Labeling:
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

    def _start_run(self, trigger: Trigger, issue: payloads.Issue) -> None:
        if trigger.number == self.stops_at:
            raise RunStopped("the run was stopped by SIGTERM", "start it again")
        self.started_runs += 1
        self._add_row(issue, SweepFate.DONE, cost=1.0)


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


LOST = ForgeError("could not read the events of #1", "try again")
TAKEN = replace(LABELING, pull_request="https://x/pull/7", pull_request_by="carl")
ANSWERED = {1: Publication(comment_url=PAGE), 2: Publication(branch="agent/2")}
ACTIVE = {1: AT, 2: AT - timedelta(days=2)}
STOPPED = "the run was stopped by SIGTERM"


@pytest.mark.parametrize(
    ("of_forge", "of_sweep", "expected"),
    [
        ({}, {"runs": 2}, ["done", "done", "not started a sweep starts at most 2 runs"]),
        ({}, {"runs": 2, "is_dry_run": True}, ["would start", "would start", "not started a"]),
        ({}, {"cost": 2.1}, ["done", "done", "not started $2.00 of $2.10 are spent (--max-total)"]),
        ({"labelings": {1: LOST}}, {}, [f"failed {LOST.what}", "done", "done"]),
        ({"labelings": {1: TAKEN}}, {}, ["skipped an open pull request of carl", "done", "done"]),
        ({"published": ANSWERED}, {}, ["done before", "done", "done"]),  # 2 lacks its comment
        ({"active": ACTIVE}, {}, ["skipped a run that started at 03:04 UTC", "done", "done"]),
        ({}, {"stops_at": 2}, ["done", f"not started {STOPPED}", "not started the sweep was"]),
    ],
)
def test_each_issue_has_its_fate_and_the_reason(
    tmp_path: Path, of_forge: dict[str, Any], of_sweep: dict[str, Any], expected: list[str]
) -> None:
    made = sweep(forge_with(tmp_path, 1, 2, 3, **of_forge), tmp_path, **of_sweep)
    made.run()
    found = [f"{row.fate.value} {row.reason}" for row in made.rows]
    assert all(map(str.startswith, found, expected)), found
    assert made.stopping.is_set() == ("stops_at" in of_sweep)
    done = sum(row.fate is SweepFate.DONE for row in made.rows)
    assert f"${done}.00 of $" in render_sweep(made, "sweep.txt.j2", "").splitlines()[-1]


def test_a_label_of_somebody_without_write_access_is_refused_by_its_run_and_counts_as_none(
    tmp_path: Path,
) -> None:
    refused: list[RunResult] = []
    made = sweep(
        forge_with(tmp_path, 1, level="triage"), tmp_path, kind=Sweep, on_result=refused.append
    )
    made.rows.append(SweepRow(9, "Earlier", SweepFate.DONE, cost=18.75))
    _, row = made.run()
    assert (row.fate, made.started_runs) == (SweepFate.SKIPPED, 0)
    assert row.reason.startswith("mona has no write access")
    [result] = refused
    assert result.exit_code == 5
    assert result.request.budget == 1.25, "what the runs before it have left"
    assert (result.request.trigger.number, result.request.output.folder.name) == (1, "issue-1")


def result(
    folder: Path, conclusion: Conclusion, publication: Publication, state: RunState
) -> RunResult:
    values = replace(executed_values(run_request(folder)), published=PublishedRun(publication))
    values = replace(
        values,
        executed=ExecutedRun(
            reports.outcome(state=state, reason="no more replies"), reports.patch()
        ),
    )
    return conclude(values, conclusion, MemoryForge(folder / "issue.md", "main"))


REPEATED = Publication(comment_url=PAGE, repeated=True)
NOTHING = Publication()
ERROR = RunFailure(kind="error", what="it broke")
REFUSED = RunFailure(kind="refused", what="mona may not")


@pytest.mark.parametrize(
    ("conclusion", "publication", "state", "expected"),
    [
        (Conclusion(), PUBLISHED, RunState.FINISHED, "done "),
        (Conclusion(), REPEATED, RunState.FINISHED, "done before "),
        (Conclusion(ERROR, 1), REPEATED, RunState.FINISHED, "failed it broke"),
        (Conclusion(REFUSED, 5), NOTHING, RunState.FINISHED, "skipped mona may not"),
        (Conclusion(exit_code=4), NOTHING, RunState.LIMIT, "failed no more replies"),
    ],
)
def test_the_end_of_a_run_decides_the_fate_of_its_issue(
    tmp_path: Path,
    conclusion: Conclusion,
    publication: Publication,
    state: RunState,
    expected: str,
) -> None:
    fate, reason = _fate_of_result(result(tmp_path, conclusion, publication, state))
    assert f"{fate.value} {reason or ''}" == expected
