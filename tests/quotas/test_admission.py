"""Tests of reserving a run's quota in the ledger, on a test GitHub with git over HTTP."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.errors import QuotaReached
from resolver.github.client.access import GitHubAccess
from resolver.github.events.quota_decision import QuotaBound, QuotaLimits
from resolver.github.events.quota_ledger import QuotaLedger
from resolver.github.github_forge import GitHubForge
from resolver.github.text.markers import Ending, run_marker
from resolver.models.run import Actor
from resolver.runs.quotas.admission import (
    read_refs,
    reserve_quota,
)
from resolver.runs.stages import AcceptedRun, RunRequest
from tests.github import reports
from tests.parts.github import GitHubServer
from tests.quotas.booking import NOW, Place
from tests.runs.plain_values import run_request

REPOSITORY = "octo/demo"
CALM = nullcontext()
RUN = "20261121-120000-000001"


@pytest.fixture
def place(github: GitHubServer) -> Place:
    github.create_repository(REPOSITORY)
    return Place(github.server_url, REPOSITORY, github.token_for("octo", REPOSITORY))


@pytest.fixture
def request_for_run(tmp_path: Path) -> RunRequest:
    return replace(run_request(tmp_path), run=RUN, now=lambda: NOW)


def reserve(
    github: GitHubServer,
    place: Place,
    request: RunRequest,
    limits: QuotaLimits | None = None,
    *,
    fetches_refs: bool = False,
) -> tuple[AcceptedRun, QuotaLedger]:
    """Return the accepted run, and the ledger as others read it afterwards.

    fetches_refs: read the repository's refs before, as a run does.
    """
    environment = {
        **github.addresses,
        "GITHUB_TOKEN": place.token,
    }
    settings = load_settings({}, environment, {})
    access = GitHubAccess(place.token, github.api_url, place.server, github.graphql_url)
    forge = GitHubForge(access, REPOSITORY)
    snapshot = read_refs(request, forge) if fetches_refs else None
    accepted = reserve_quota(request, settings, forge, snapshot, limits)
    return accepted, place.ledger().read()


def test_a_request_that_is_delivered_again_has_one_entry(
    github: GitHubServer, place: Place, request_for_run: RunRequest
) -> None:
    quotas = QuotaLimits(thread=QuotaBound(runs=1), user=QuotaBound(cost=0.5))
    for _ in range(2):
        accepted, ledger = reserve(github, place, request_for_run, quotas)
        [entry] = ledger.runs
        assert entry == accepted.reservation
        assert (entry.reserved, accepted.quota_left) == (0.5, 0.5)
        assert (entry.thread, entry.user, entry.ending) == (12, "alice", "")
        assert entry.until == NOW + load_settings({}, {}, {}).longest_run
    other = replace(request_for_run, trigger=reports.trigger(key="issue_comment:78"))
    with pytest.raises(QuotaReached, match="has had 1 run today"):
        reserve(github, place, other, quotas)


@pytest.mark.parametrize(
    ("changes", "days", "cost"),
    [
        ({"run": "20261121-120000-000002"}, 0, 0.25),
        ({"resume": True}, 0, 0.0),
        ({"run": "20261121-120000-000002", "resume": True}, 0, 0.25),
        ({}, 1, 0.25),
    ],
)
def test_a_request_that_is_started_again_keeps_the_cost_of_earlier_attempts(
    github: GitHubServer,
    place: Place,
    request_for_run: RunRequest,
    changes: dict[str, Any],
    days: int,
    cost: float,
) -> None:
    """A resumed run counts its whole cost itself. An attempt counts for the day of its start."""
    accepted, _ = reserve(github, place, request_for_run)
    first = accepted.reservation
    assert first is not None
    spent = first.model_copy(update={"cost": 0.25, "unpriced": 2})
    place.ledger().change(lambda ledger: (ledger.with_run(spent), None))
    later = NOW + timedelta(days=days, minutes=5)
    again = replace(request_for_run, now=lambda: later, **changes)
    reserved = reserve(github, place, again)[0].reservation
    assert reserved is not None
    assert (reserved.cost, reserved.unpriced) == (cost, 2 if cost else 0)
    assert reserved.at == (later if days else NOW)


def test_a_dry_run_has_no_entry(
    github: GitHubServer, place: Place, request_for_run: RunRequest
) -> None:
    accepted, ledger = reserve(github, place, replace(request_for_run, publish=False))
    assert (accepted, ledger) == (AcceptedRun(), QuotaLedger())
    assert github.writes() == []


def test_a_run_whose_token_may_not_push_starts_without_an_entry(
    github: GitHubServer,
    place: Place,
    request_for_run: RunRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    token = github.token_for("octo", REPOSITORY, permissions={"contents": "read"})
    accepted, ledger = reserve(github, replace(place, token=token), request_for_run)
    assert (accepted.reservation, ledger) == (None, QuotaLedger())
    assert "the quota ledger could not be updated" in caplog.text


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
    github: GitHubServer,
    place: Place,
    request_for_run: RunRequest,
    authors: tuple[str, ...],
    is_refused: bool,
) -> None:
    github.add_user("ci[bot]", type="Bot")
    issue = github.create_issue(REPOSITORY, "It breaks", "x", author="mona")
    for author in authors:
        github.advance(1)
        github.add_comment(issue, "Well.", author)
    by_bot = reports.trigger(number=issue.number, actor=Actor(login="ci[bot]", is_bot=True))
    request = replace(request_for_run, trigger=by_bot)
    with pytest.raises(QuotaReached, match="answered each other 3 times") if is_refused else CALM:
        reserve(github, place, request)


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
    github: GitHubServer,
    place: Place,
    request_for_run: RunRequest,
    author: str,
    days: int,
    text: str,
    is_silent: bool,
) -> None:
    quotas = QuotaLimits(repository=QuotaBound(runs=1))
    reserve(github, place, request_for_run, quotas)
    issue = github.create_issue(REPOSITORY, "It breaks", "x", author="mona")
    told = f"{run_marker('issue_comment:70', Ending.CEILING)}\n\nIt was too much."
    github.add_comment(issue, told if text == "quota" else text, author)
    trigger = reports.trigger(number=issue.number, key="issue_comment:78")
    now = github.world.now() + timedelta(days=days)
    late = replace(request_for_run, trigger=trigger, now=lambda: now)
    # The first run was on that day.
    entry = place.ledger().read().runs[0].model_copy(update={"at": now})
    place.ledger().change(lambda ledger: (ledger.with_run(entry), None))
    reader = github.token_for("octo", REPOSITORY, permissions={"contents": "read"})
    with pytest.raises(QuotaReached) as reached:
        reserve(github, replace(place, token=reader), late, quotas)
    assert reached.value.is_silent is is_silent


@pytest.mark.parametrize("is_bot", [True, False])
def test_a_ledger_that_can_not_be_reached_stops_bots_and_no_person(
    github: GitHubServer, place: Place, request_for_run: RunRequest, is_bot: bool
) -> None:
    github.repository(REPOSITORY).private = True
    github.add_user("eve")
    shut_out = replace(place, token=github.token_for("eve"))
    actor = Actor(login="ci[bot]" if is_bot else "mona", is_bot=is_bot)
    trigger = reports.trigger(actor=actor, number=None)
    request = replace(request_for_run, trigger=trigger)
    settings = load_settings(
        {},
        {
            "GITHUB_SERVER_URL": github.server_url,
            "GITHUB_TOKEN": shut_out.token,
        },
        {},
    )
    access = GitHubAccess(shut_out.token, github.api_url, place.server, github.graphql_url)
    with pytest.raises(QuotaReached, match="can't be read") if is_bot else CALM:
        accepted = reserve_quota(request, settings, GitHubForge(access, REPOSITORY))
        assert accepted.reservation is None
