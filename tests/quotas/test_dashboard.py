"""Tests of the dashboard: it is created once, and contains nothing of other repositories."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser

from resolver.errors import WorkspaceError
from resolver.github.client.access import GitHubAccess
from resolver.github.comments.markers import DASHBOARD
from resolver.github.comments.run_comments import GitHubDashboards
from resolver.github.events.dashboard_boxes import newly_ticked
from resolver.github.events.quota_ledger import LedgerDay, LedgerPlace, QuotaLedger, read_ledger
from resolver.github.forge import DashboardForge
from resolver.github.text.markdown import markdown_parser
from resolver.runs.quotas.dashboard import (
    CLAIM_DURATION,
    Dashboard,
    dashboard_body,
    update_dashboard,
)
from tests.github.events.ledgers import a_refusal, a_run, ended, ledger, run_id
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.quotas.booking import NOW
from tests.quotas.booking import Place as At

REPOSITORY = "octo/demo"


@pytest.fixture
def at(github: GitHubServer) -> At:
    github.create_repository(REPOSITORY)
    github.add_user("bot")
    github.grant("bot", REPOSITORY, "write")
    return At(github.server_url, REPOSITORY, github.token_for("bot", REPOSITORY))


def dashboard(github: GitHubServer, at: At, number: int = 1) -> Dashboard:
    access = GitHubAccess(
        at.token, github.api_url, at.server, github.graphql_url, pause_between_writes=0.0
    )
    board: DashboardForge = GitHubDashboards(access, REPOSITORY, "bot")
    return Dashboard(board, at.ledger(), run_id(number), "@agent")


def made(github: GitHubServer) -> list[Issue]:
    issues = github.repository(REPOSITORY).issues.values()
    return [issue for issue in issues if (issue.body or "").startswith(DASHBOARD)]


def body(known: QuotaLedger) -> str:
    return dashboard_body(known, "@agent", NOW)


def test_concurrent_runs_create_one_dashboard(github: GitHubServer, at: At) -> None:
    def begin(number: int) -> None:
        dashboard(github, at, number).show(at.ledger().read())

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(begin, range(5)))
    [issue] = made(github)
    place = at.ledger().read().place
    assert place is not None
    assert place.number == issue.number


def test_the_claim_of_a_process_that_died_expires(github: GitHubServer, at: At) -> None:
    claimed = QuotaLedger(place=LedgerPlace(claimed_by=run_id(9), until=NOW + CLAIM_DURATION))
    at.ledger().change(lambda _: (claimed, None))
    dashboard(github, at).show(at.ledger().read())
    assert made(github) == []
    over = QuotaLedger(place=LedgerPlace(claimed_by=run_id(9), until=NOW))
    at.ledger().change(lambda _: (over, None))
    dashboard(github, at).show(at.ledger().read())
    assert len(made(github)) == 1


def test_a_dashboard_that_the_ledger_does_not_name_is_found(github: GitHubServer, at: At) -> None:
    dashboard(github, at).show(QuotaLedger())
    at.ledger().change(lambda _: (QuotaLedger(), None))
    dashboard(github, at).show(QuotaLedger())
    assert len(made(github)) == 1


def test_an_issue_of_somebody_else_is_not_taken_for_the_dashboard(
    github: GitHubServer, at: At
) -> None:
    persons_issue = github.create_issue(REPOSITORY, "Mine", f"{DASHBOARD}\n\nmine", author="eve")
    dashboard(github, at).show(
        QuotaLedger(place=LedgerPlace(number=persons_issue.number, until=NOW))
    )
    assert persons_issue.body == f"{DASHBOARD}\n\nmine"
    assert [issue.author.login for issue in made(github)] == ["eve", "bot"]


def test_a_deleted_dashboard_is_created_again(github: GitHubServer, at: At) -> None:
    gone = QuotaLedger(place=LedgerPlace(number=77, until=NOW))
    at.ledger().change(lambda _: (gone, None))
    dashboard(github, at).show(gone)
    assert len(made(github)) == 1


def test_a_reservation_made_during_an_update_is_shown_in_the_end(
    github: GitHubServer, at: At
) -> None:
    shown = dashboard(github, at)
    shown.show(QuotaLedger())
    stale = at.ledger().read()
    at.ledger().change(lambda known: (known.with_run(ended(1)), None))
    [issue] = made(github)
    github.edit_issue(issue, body=f"{issue.body}\n\nbuy my coins")
    shown.show(stale)
    assert "| Today | 1 |" in (issue.body or "")
    assert "coins" not in (issue.body or ""), "text that people add there is overwritten"


def test_a_ledger_that_can_not_be_written_leaves_the_dashboard(
    github: GitHubServer, at: At
) -> None:
    token = github.token_for("bot", REPOSITORY, permissions={"contents": "read", "issues": "write"})
    reading = replace(at, token=token)
    for _ in range(2):
        dashboard(github, reading).show(QuotaLedger())
    assert len(made(github)) == 1


def test_an_error_of_the_dashboard_is_a_warning(
    github: GitHubServer, at: At, caplog: pytest.LogCaptureFixture
) -> None:
    github.fail_next("*", "issues", 404, times=9)
    update_dashboard(dashboard(github, at), QuotaLedger())
    assert "the dashboard could not be written" in caplog.text


def test_the_dashboard_shows_active_ended_and_refused_runs() -> None:
    known = QuotaLedger(
        runs=(
            ended(1, ending="pull_request", opened=40, job=77, seconds=3000),
            ended(2, thread=13, ending="limit", unpriced=1),
            a_run(3, thread=14, at=NOW - timedelta(hours=5), until=NOW - timedelta(hours=1)),
            a_run(4, thread=15),
            a_run(5, thread=16, stop_by="mona"),
        ),
        refusals=(a_refusal(6),),
        days=(LedgerDay(day="2026-11-02", runs=1234, cost=1000.0),),
    )
    text = body(known).replace("\u00a0", " ")
    assert "**Stop** the run on [#15](../issues/15), requested by `ada`" in text
    assert "The run on [#16](../issues/16) is stopping, as requested by `mona`" in text
    assert "**Continue** the run on [#13](../issues/13) of 21 Nov 12:30 UTC, which reached" in text
    assert (
        "| ✅ pull request | [#12](../issues/12) | `ada` | 21 Nov 12:30 | 50 min 0 s | $0.50"
        in text
    )
    assert "| [#40](../pull/40) | [log](../actions/runs/77) |" in text
    assert (
        "| 🔴 ended unexpectedly | [#14](../issues/14) | `ada` | 21 Nov 07:30 |  | unknown |"
        in text
    )
    assert "$0.50 + unknown" in text
    assert "| [#12](../issues/12) | `ada` | 21 Nov 12:30 | daily quota of the issue or PR |" in text
    assert "| November 2026 | 1,239 | $1,001.00 | 1 |" in text
    assert "The cost does not include 1 model reply of unknown price" in text


def test_a_thread_whose_newest_run_was_good_needs_no_box() -> None:
    known = ledger(ended(1, ending="error", at=NOW - timedelta(hours=1)), ended(2))
    assert "**Continue**" not in body(known)


def test_an_empty_ledger_has_a_dashboard_too() -> None:
    assert "None." in body(QuotaLedger())
    assert "None in the last few days." in body(QuotaLedger())


def test_the_boxes_of_the_dashboard_can_be_read_back() -> None:
    before = body(ledger(a_run(1), ended(2, thread=13, ending="error")))
    ticked = newly_ticked(before, before.replace("- [ ]", "- [x]"))
    assert [(tick.action, tick.run) for tick in ticked] == [
        ("stop", run_id(1)),
        ("retry", run_id(2)),
    ]


@given(st.binary(max_size=300), st.text(max_size=50))
def test_no_content_of_the_ledger_mentions_anybody(data: bytes, login: str) -> None:
    hostile = f'{{"kind":"run","user":"{login}"}}\n'.encode("utf-8", "replace")
    known = read_ledger(data + b"\n" + hostile, NOW)
    assert "@" not in body(known).replace("`@agent`", "")


def test_a_browser_shows_the_table_and_the_boxes(chromium: Browser, tmp_path: Path) -> None:
    text = body(ledger(a_run(1), *(ended(n, thread=n, user="a" * 39) for n in range(20, 45))))
    page = tmp_path / "dashboard.html"
    page.write_text(f"<meta charset=utf-8>{markdown_parser().render(text)}", encoding="utf-8")
    shown = chromium.new_page()
    shown.goto(page.as_uri())
    assert shown.locator("table").count() == 2
    assert shown.locator("table").nth(1).locator("tbody tr").count() == 20
    assert shown.locator("li").count() == 1
    assert "resolver:box" not in shown.inner_text("body")
    shown.close()


def test_a_server_of_git_that_is_down_is_a_workspace_error(at: At) -> None:
    with pytest.raises(WorkspaceError):
        replace(at, server="http://127.0.0.1:9").ledger().read()
