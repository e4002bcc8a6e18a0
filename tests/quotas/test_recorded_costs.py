"""Tests of what the quota ledger has of a run that has ended, on a test GitHub with git over
HTTP."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from resolver.config.settings import Settings, load_settings
from resolver.events.run_log import RunLog
from resolver.github.client.access import GitHubAccess
from resolver.github.events.quota_ledger import LedgerRun, QuotaLedger
from resolver.github.github_forge import GitHubForge
from resolver.github.text.markers import Ending
from resolver.models.run import RunState
from resolver.runs.quotas.admission import (
    RecordedCost,
    ledger_key,
    read_refs,
    record_cost,
    reserve_quota,
)
from resolver.runs.stages import AcceptedRun, OpenedLog, RunRequest, StageValues
from resolver.storage.run_refs import RUNS
from tests.github import reports
from tests.parts.github import GitHubServer
from tests.quotas.booking import NOW, Place
from tests.runs.plain_values import PULL, executed_values, published_values, run_log, run_request
from tests.trace import sample

REPOSITORY = "octo/demo"
RUN = "20261121-120000-000001"
OTHER_RUN = "20261121-120000-000002"
SECONDS = 90
REPORTED: dict[Ending, dict[str, object]] = {
    Ending.PULL_REQUEST: {"pull_request": PULL},
    Ending.STOPPED: {"outcome": reports.outcome(state=RunState.STOPPED)},
    Ending.ERROR: {"outcome": None},
}
"""What a report of a run that ended so contains."""


class Recording:
    """A run on an issue that reserves its quota, works for 90 seconds, and records its cost."""

    def __init__(self, github: GitHubServer, folder: Path) -> None:
        github.create_repository(REPOSITORY, {"a.py": "1\n"})
        self.github = github
        self.place = Place(github.server_url, REPOSITORY, github.token_for("octo", REPOSITORY))
        self.settings = self.settings_with()
        request = replace(run_request(folder), run=RUN, now=lambda: NOW, archives_log=True)
        self.request: RunRequest = request
        self.log: RunLog = run_log(request.output.log)
        opening = sample.started().model_copy(update={"run": RUN})
        for event in (opening, sample.reply("Fixed", 0.25), sample.reply("Done", None)):
            self.log.stream.add(event)
        (request.output.folder / "outcome.json").write_text("{}")

    def settings_with(self, token: str = "") -> Settings:
        environment = {
            **self.github.addresses,
            "GITHUB_TOKEN": token or self.place.token,
        }
        return load_settings({}, environment, {})

    @property
    def forge(self) -> GitHubForge:
        urls = (self.github.api_url, self.github.server_url, self.github.graphql_url)
        return GitHubForge(GitHubAccess(self.place.token, *urls), REPOSITORY)

    def accepted(self) -> AcceptedRun:
        snapshot = read_refs(self.request, self.forge)
        return reserve_quota(self.request, self.settings, self.forge, snapshot)

    def values(self, accepted: AcceptedRun | None, *, has_log: bool = True) -> StageValues:
        request = replace(self.request, now=lambda: NOW + timedelta(seconds=SECONDS))
        values = executed_values(replace(request, load_settings=lambda _: self.settings))
        values = published_values(values)
        if has_log:
            values = values.with_value(OpenedLog(self.log))
        return values.with_value(accepted) if accepted else values

    def record(self, values: StageValues, ending: Ending = Ending.PULL_REQUEST) -> RecordedCost:
        report = reports.report(**REPORTED[ending])
        assert report.ending is ending
        return record_cost(values, report)

    @property
    def ledger(self) -> QuotaLedger:
        return self.place.ledger().read()

    @property
    def entry(self) -> LedgerRun:
        [entry] = self.ledger.runs
        return entry

    @property
    def archived(self) -> list[str]:
        refs = self.github.repository(REPOSITORY).git.text("for-each-ref", "--format=%(refname)")
        return [ref for ref in refs.split() if ref.startswith(RUNS)]


@pytest.fixture
def recording(github: GitHubServer, tmp_path: Path) -> Iterator[Recording]:
    made = Recording(github, tmp_path)
    yield made
    made.log.close()


def test_a_run_that_ended_has_its_cost_in_place_of_what_was_reserved(recording: Recording) -> None:
    accepted = recording.accepted()
    assert recording.entry.reserved > 0
    recording.record(recording.values(accepted))
    entry = recording.entry
    assert (entry.cost, entry.unpriced, entry.reserved) == (0.25, 1, 0.0)
    assert entry.ending == "pull_request"


def test_what_today_has_used_of_the_quotas_is_returned(recording: Recording) -> None:
    use = recording.record(recording.values(recording.accepted())).quota_use
    assert [(quota.name, quota.runs, quota.cost) for quota in use] == [
        ("#12", 1, 0.25),
        ("alice", 1, 0.25),
        ("this repository", 1, 0.25),
    ]
    assert [(quota.max_runs, quota.max_cost) for quota in use] == [(20, 50), (50, 100), (200, 250)]


def test_a_record_that_is_repeated_counts_once(recording: Recording) -> None:
    """The answer to the first push may have been lost."""
    accepted = recording.accepted()
    for _ in range(2):
        recording.record(recording.values(accepted))
    assert (recording.entry.cost, recording.entry.unpriced) == (0.25, 1)


@pytest.mark.parametrize("run", [RUN, OTHER_RUN])
def test_a_run_that_was_stopped_while_it_reserved_ends_its_own_entry(
    recording: Recording, run: str
) -> None:
    """The reservation was pushed, and the signal came before its answer."""
    recording.request = replace(recording.request, run=run)
    recording.accepted()
    recording.request = replace(recording.request, run=RUN)
    recording.record(recording.values(None), Ending.STOPPED)
    assert recording.entry.key == ledger_key(recording.request.trigger.key)
    assert recording.entry.ending == ("stopped" if run == RUN else "")


def test_the_log_is_archived_in_the_push_of_the_ledger(recording: Recording) -> None:
    accepted = recording.accepted()
    before = len(recording.github.requests)
    assert recording.record(recording.values(accepted)).is_log_archived
    assert recording.archived == [f"{RUNS}/12/{RUN}"]
    made = [request for request in recording.github.requests[before:] if request.kind == "git"]
    pushes = [request for request in made if "receive-pack" in f"{request.path}{request.query}"]
    assert [request.method for request in pushes] == ["GET", "POST"]


@pytest.mark.parametrize("lacks", ["permission", "refs", "log"])
def test_a_log_that_is_not_to_be_kept_is_not_archived(recording: Recording, lacks: str) -> None:
    accepted = recording.accepted()
    if lacks == "permission":
        recording.request = replace(recording.request, archives_log=False)
    if lacks == "refs":
        accepted = replace(accepted, snapshot=None)
    values = recording.values(accepted, has_log=lacks != "log")
    assert not recording.record(values).is_log_archived
    assert recording.archived == []
    assert recording.entry.ending == "pull_request"


def test_a_cost_that_can_not_be_written_is_a_warning(
    recording: Recording, caplog: pytest.LogCaptureFixture
) -> None:
    accepted = recording.accepted()
    token = recording.github.token_for("octo", REPOSITORY, permissions={"contents": "read"})
    recording.settings = recording.settings_with(token)
    assert recording.record(recording.values(accepted)) == RecordedCost()
    assert f"the cost of run {RUN} could not be recorded in the quota ledger" in caplog.text
    assert recording.entry.ending == ""
