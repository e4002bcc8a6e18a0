"""Tests of reserving a run's quota in the ledger and of recording its cost there, on a test GitHub
with git over HTTP."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import Settings, load_settings
from resolver.errors import QuotaReached
from resolver.events.run_log import RunLog
from resolver.github.client.access import FixedToken, GitHubAccess
from resolver.github.events.quota_decision import QuotaBound, QuotaLimits
from resolver.github.events.quota_ledger import LedgerRun, QuotaLedger
from resolver.github.github_forge import GitHubForge
from resolver.github.text.markers import Ending, run_marker
from resolver.models.run import Actor, RunState
from resolver.runs.quotas.admission import (
    RecordedCost,
    ledger_key,
    read_refs,
    record_cost,
    reserve_quota,
)
from resolver.runs.stages import AcceptedRun, RunRequest, StageValues
from resolver.storage.ledger_ref import REF
from resolver.storage.run_refs import RUNS
from tests.github import reports
from tests.github.events.ledgers import NOW
from tests.parts.github import GitHubServer
from tests.quotas.booking import Place
from tests.runs.plain_values import PULL, executed_values, published_values, run_log, run_request
from tests.trace import sample

REPOSITORY = "octo/demo"
RUN = "20261121-120000-000001"
OTHER_RUN = "20261121-120000-000002"
SECONDS = 90
CALM = nullcontext()
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
        return GitHubForge(GitHubAccess(FixedToken(self.place.token), *urls), REPOSITORY)

    def accepted(self) -> AcceptedRun:
        snapshot = read_refs(self.request, self.forge)
        return reserve_quota(self.request, self.settings, self.forge, snapshot)

    def reserve(
        self, limits: QuotaLimits | None = None, token: str = "", **changes: Any
    ) -> AcceptedRun:
        """Reserve the quota of the request with these changes, without reading refs before."""
        request, settings = replace(self.request, **changes), self.settings_with(token)
        return reserve_quota(request, settings, self.forge, limits=limits)

    def reader(self) -> str:
        """Return a token that may not push."""
        return self.github.token_for("octo", REPOSITORY, permissions={"contents": "read"})

    def put(self, run: LedgerRun) -> None:
        self.place.ledger().change(lambda ledger: (ledger.with_run(run), None))

    def values(self, accepted: AcceptedRun | None, *, has_log: bool = True) -> StageValues:
        request = replace(self.request, now=lambda: NOW + timedelta(seconds=SECONDS))
        values = executed_values(replace(request, load_settings=lambda _: self.settings))
        values = published_values(values)
        if has_log:
            values = replace(values, log=self.log)
        return replace(values, accepted=accepted) if accepted else values

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


def test_a_request_that_is_delivered_again_has_one_entry(recording: Recording) -> None:
    quotas = QuotaLimits(thread=QuotaBound(runs=1), user=QuotaBound(cost=0.5))
    for _ in range(2):
        accepted, entry = recording.reserve(quotas), recording.entry
        assert entry == accepted.reservation
        assert (entry.reserved, accepted.quota_left) == (0.5, 0.5)
        assert (entry.thread, entry.user, entry.ending) == (12, "alice", "")
        assert entry.until == NOW + recording.settings.longest_run
    with pytest.raises(QuotaReached, match="has had 1 run today"):
        recording.reserve(quotas, trigger=reports.trigger(key="issue_comment:78"))


@pytest.mark.parametrize(
    ("changes", "days", "cost"),
    [
        ({"run": OTHER_RUN}, 0, 0.25),
        ({"resume": True}, 0, 0.0),
        ({"run": OTHER_RUN, "resume": True}, 0, 0.25),
        ({}, 1, 0.25),
    ],
)
def test_a_request_that_is_started_again_keeps_the_cost_of_earlier_attempts(
    recording: Recording, changes: dict[str, Any], days: int, cost: float
) -> None:
    """A resumed run counts its whole cost itself. An attempt counts for the day of its start."""
    recording.reserve()
    recording.put(recording.entry.model_copy(update={"cost": 0.25, "unpriced": 2}))
    later = NOW + timedelta(days=days, minutes=5)
    reserved = recording.reserve(now=lambda: later, **changes).reservation
    assert reserved is not None
    assert (reserved.cost, reserved.unpriced) == (cost, 2 if cost else 0)
    assert reserved.at == (later if days else NOW)


def test_a_dry_run_and_one_that_may_not_push_have_no_entry(
    recording: Recording, caplog: pytest.LogCaptureFixture
) -> None:
    assert recording.reserve(publish=False) == AcceptedRun()
    assert recording.reserve(token=recording.reader()).reservation is None
    assert recording.ledger == QuotaLedger()
    assert "the quota ledger could not be updated" in caplog.text


@pytest.mark.attack
@pytest.mark.parametrize(
    ("authors", "is_refused"),
    [
        (("octo", "ci[bot]", "octo", "ci[bot]", "octo"), True),
        (("octo", "ci[bot]", "mona", "octo", "ci[bot]", "octo"), False),
        (("mona", "octo", "ci[bot]", "octo", "ci[bot]", "octo"), True),
        (("ci[bot]", "ci[bot]", "ci[bot]", "ci[bot]"), False),
    ],
)
def test_our_comments_since_a_person_wrote_count_in_a_chain_of_bots(
    recording: Recording, authors: tuple[str, ...], is_refused: bool
) -> None:
    """Two bots answer each other: the chain is stopped until a person takes part."""
    github = recording.github
    github.add_user("ci[bot]", type="Bot")
    issue = github.create_issue(REPOSITORY, "It breaks", "x", author="mona")
    for author in authors:
        github.advance(1)
        github.add_comment(issue, "Well.", author)
    by_bot = reports.trigger(number=issue.number, actor=Actor(login="ci[bot]", is_bot=True))
    with pytest.raises(QuotaReached, match="answered each other 3 times") if is_refused else CALM:
        recording.reserve(trigger=by_bot)


@pytest.mark.parametrize(
    ("author", "days", "text", "is_silent"),
    [
        ("octo", 0, "quota", True),
        ("octo", 1, "quota", False),
        ("mona", 0, "quota", False),
        ("octo", 0, "Hello", False),
    ],
)
def test_the_comment_of_today_shows_that_a_refusal_was_said(
    recording: Recording, author: str, days: int, text: str, is_silent: bool
) -> None:
    quotas, github = QuotaLimits(repository=QuotaBound(runs=1)), recording.github
    recording.reserve(quotas)
    issue = github.create_issue(REPOSITORY, "It breaks", "x", author="mona")
    told = f"{run_marker('issue_comment:70', Ending.CEILING)}\n\nIt was too much."
    github.add_comment(issue, told if text == "quota" else text, author)
    trigger = reports.trigger(number=issue.number, key="issue_comment:78")
    now = github.world.now() + timedelta(days=days)
    recording.put(recording.entry.model_copy(update={"at": now}))  # the first run of that day
    with pytest.raises(QuotaReached) as reached:
        recording.reserve(quotas, recording.reader(), trigger=trigger, now=lambda: now)
    assert reached.value.is_silent is is_silent


@pytest.mark.attack
@pytest.mark.parametrize("is_bot", [True, False])
@pytest.mark.parametrize("is_damaged", [True, False])
def test_a_ledger_that_can_not_be_read_stops_bots_and_no_person(
    recording: Recording, is_bot: bool, is_damaged: bool
) -> None:
    """Somebody destroys the quota ledger: bots start nothing until a person does."""
    token, repository = "", recording.github.repository(REPOSITORY)
    if is_damaged:
        repository.git.git("update-ref", REF, "refs/heads/main")
    else:
        repository.private = True
        recording.github.add_user("eve")
        token = recording.github.token_for("eve")
    actor = Actor(login="ci[bot]" if is_bot else "mona", is_bot=is_bot)
    trigger = reports.trigger(actor=actor, number=None)
    with pytest.raises(QuotaReached, match="can't be read") if is_bot else CALM:
        accepted = recording.reserve(token=token, trigger=trigger)
        assert (accepted.reservation is not None) is is_damaged
        assert len(recording.ledger.runs) == is_damaged


def test_a_run_that_ended_has_its_cost_once_in_place_of_what_was_reserved(
    recording: Recording,
) -> None:
    """The record is repeated, because the answer to the first push may have been lost."""
    accepted = recording.accepted()
    assert recording.entry.reserved > 0
    for _ in range(2):
        use = recording.record(recording.values(accepted)).quota_use
    entry = recording.entry
    assert (entry.cost, entry.unpriced, entry.reserved) == (0.25, 1, 0.0)
    assert entry.ending == "pull_request"
    assert [(quota.name, quota.runs, quota.cost) for quota in use] == [
        ("#12", 1, 0.25),
        ("alice", 1, 0.25),
        ("this repository", 1, 0.25),
    ]
    assert [(quota.max_runs, quota.max_cost) for quota in use] == [(20, 50), (50, 100), (200, 250)]


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
    recording.settings = recording.settings_with(recording.reader())
    assert recording.record(recording.values(accepted)) == RecordedCost()
    assert f"the cost of run {RUN} could not be recorded in the quota ledger" in caplog.text
    assert recording.entry.ending == ""
