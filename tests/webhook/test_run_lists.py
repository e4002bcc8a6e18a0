"""The list of runs and the sums of their cost, as a person sees them, and what is stored of a
run."""

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from resolver.entrypoints.webhook.request_queue import (
    QueuedRequest,
    RequestKind,
    RequestQueue,
    RequestState,
)
from resolver.entrypoints.webhook.run_indexer import row_of_result, row_of_stage
from resolver.entrypoints.webhook.run_lists import RUNS_PER_PAGE, RunLists, parse_filter
from resolver.entrypoints.webhook.server import UNREACHABLE_SERVER, setup_app, setup_page
from resolver.github.comments.report import RunFailure
from resolver.models.run import Publication, RunState
from resolver.runs.stages import PublishedRun
from resolver.storage.database import parse_database_url
from resolver.storage.run_index import RunFilter, RunIndex
from tests.github import reports
from tests.runs.plain_values import PULL, executed_values, run_request
from tests.storage.test_run_index import trigger_at
from tests.webhook.test_metrics import result_of

NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)
CALC, WEB = frozenset({"octo/calc"}), frozenset({"octo/web"})
BOTH = CALC | WEB
BASE = "https://r.example.org"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[RunIndex]:
    made = RunIndex(parse_database_url(f"sqlite:///{tmp_path}/resolver.db"), lambda: NOW)
    yield made
    made.close()


def put(index: RunIndex, number: int, **changes: Any) -> str:
    run = f"20260304-{number // 3600:02}{number // 60 % 60:02}{number % 60:02}-0a1b2c"
    trigger = trigger_at(0, 1).model_copy(update={"number": number})
    index.put(run, trigger, {"title": f"Issue {number}", "state": "finished", **changes})
    return run


def list_page(index: RunIndex, before: str | None = None, **query: str) -> str:
    return RunLists(index, BASE).render_runs("mona", parse_filter(query, BOTH), before)


def test_runs_are_listed_by_page_and_filter(index: RunIndex) -> None:
    runs = [put(index, n, cost=n / 10, state="finished" if n % 2 else "stuck") for n in range(5)]
    other = put(index, 7, repository="octo/web", person="hubot", state="error", cost=9.0)
    every = RunFilter(BOTH)
    assert [row.run for row in index.runs(every, None, 2)] == [other, runs[4]]
    assert [row.run for row in index.runs(every, runs[4], 2)] == [runs[3], runs[2]]
    for query in ({"repository": "Octo/Web"}, {"person": "HUBOT"}, {"state": "error"}):
        assert [row.run for row in index.runs(parse_filter(query, BOTH), None, 9)] == [other]
    assert [row.run for row in index.runs(RunFilter(WEB), None, 9)] == [other]
    for nothing in (RunFilter(BOTH, month="2026-02"), RunFilter(frozenset())):
        assert index.runs(nothing, None, 9) == index.totals_by("month", nothing, 9) == []
    [web, calc] = index.totals_by("repository", every, 9)
    assert (web.name, calc.name) == ("octo/web", "octo/calc")
    assert (calc.runs, calc.failed, round(calc.cost, 2)) == (5, 3, 1.0)
    assert [group.name for group in index.totals_by("month", every, 9)] == ["2026-03"]


@pytest.mark.attack
@pytest.mark.parametrize(
    "text", ["' OR '1'='1", "octo/calc'; DROP TABLE resolver_runs; --", "%", "_", "\\", "\0"]
)
def test_a_filter_is_a_value_and_never_a_statement(index: RunIndex, text: str) -> None:
    """Somebody puts SQL into the filters of the list of runs: it is compared as text."""
    put(index, 1)
    for name in ("repository", "person", "state"):
        assert index.runs(RunFilter(CALC, **{name: text}), None, 9) == []
    everything = index.runs(RunFilter(CALC), None, 9)
    assert index.runs(RunFilter(CALC), text, 9) in ([], everything) and len(everything) == 1


def test_stages_and_end_of_a_run_are_recorded(tmp_path: Path, index: RunIndex) -> None:
    request = run_request(tmp_path)
    publication = Publication(branch="agent/12", pull_request=PULL)
    values = replace(executed_values(request), published=PublishedRun(publication))
    index.put("run-1", request.trigger, row_of_stage(values))
    row = index.get("run-1")
    assert row is not None and row.state == "running" and row.ended is None
    assert row.repository == row.repository.lower() and row.month == "2026-03"
    assert index.issue_of(row.repository, PULL.number or 0) == request.trigger.subject
    plain = result_of(tmp_path / "result", publication)
    task = reports.task(request.trigger).model_copy(update={"url": "https://x/issues/12"})
    report = plain.report.model_copy(update={"task": task})
    files = plain.outcome_file.model_copy(update={"files": reports.patch().files})
    result = replace(plain, request=request, log=None, report=report, outcome_file=files)
    index.put("run-1", request.trigger, row_of_result(result, 5.0))
    row = index.get("run-1")
    assert row is not None and (row.state, row.ended) == ("finished", 5.0)
    assert row.pull_request == PULL.url and row.issue_url == "https://x/issues/12"
    assert row.verdict == "not_verified"


def test_an_outage_that_is_waited_for_is_no_end(tmp_path: Path) -> None:
    plain = replace(result_of(tmp_path, Publication()), log=None)
    failed = plain.outcome_file.model_copy(update={"state": RunState.ERROR, "reason": "no answer"})
    failure = RunFailure(kind="error", what="no answer", cause="provider_down")
    ended = replace(plain, outcome_file=failed, failure=failure, outage="provider_down")
    waits = replace(ended, request=replace(ended.request, retry_until=NOW))
    assert row_of_result(ended, 5.0).items() >= {"state": "error", "ended": 5.0}.items()
    assert row_of_result(waits, 5.0) == {"state": "deferred", "reason": "no answer"}


def test_a_run_is_listed_with_its_issue_its_pull_request_and_the_verdict(index: RunIndex) -> None:
    url = "https://github.example/octo/calc"
    run = put(index, 3, verdict="not_verified", issue_url=f"{url}/issues/3", cost=0.21,
              pull_request=f"{url}/pull/9")  # fmt: skip
    page = list_page(index)
    assert f'<a href="{url}/issues/3" rel="noopener noreferrer nofollow">octo/calc#3</a>' in page
    assert "pull request #9</a>" in page and "<small>not verified</small>" in page
    assert f'href="{BASE}/runs/{run}"' in page and "$0.21" in page


def test_waiting_requests_are_listed_to_those_who_can_read_the_repository(
    index: RunIndex, tmp_path: Path
) -> None:
    queue = RequestQueue(parse_database_url(f"sqlite:///{tmp_path}/queue.db"))
    queue.add(QueuedRequest("d-1", RequestKind.RUN, reports.trigger()))
    lists = RunLists(index, "", partial(queue.recent, (RequestState.WAITING,)))
    shown = lists.render_runs("mona", RunFilter(frozenset({"octo/demo"})))
    assert "Waiting requests" in shown and "octo/demo#12" in shown
    assert "Waiting requests" not in lists.render_runs("mona", RunFilter(WEB))
    queue.close()


def test_the_list_has_pages_that_keep_the_filter(index: RunIndex) -> None:
    runs = [put(index, n, person="mona" if n else "hubot") for n in range(RUNS_PER_PAGE + 3)]
    page = list_page(index, person="Mona")
    assert page.count('<td class="about">') == RUNS_PER_PAGE
    older = re.search(r'href="([^"]+)" rel="next"', page)
    assert older and html.unescape(older[1]) == f"{BASE}/?person=mona&before={runs[3]}"
    last = list_page(index, runs[3], person="mona")
    assert last.count('<td class="about">') == 2 and 'rel="next"' not in last
    assert 'value="mona"' in last


@pytest.mark.attack
@pytest.mark.parametrize(
    "text", ['"><script>alert(1)</script>', "javascript:alert(1)", "' OR 1=1 --", "\ud800", "\0"]
)
def test_hostile_titles_and_filters_stay_words_in_the_list(index: RunIndex, text: str) -> None:
    """An issue's title or a filter of the list contains HTML: it is shown as text."""
    stored = text.encode(errors="replace").decode().lower()
    put(index, 1, title=stored, reason=stored, person=stored, state="error",
        pull_request=stored, issue_url=stored, repository=stored)  # fmt: skip
    lists, readable = RunLists(index, BASE), frozenset({stored})
    query = dict.fromkeys(("repository", "person", "state", "month"), text)
    for wanted in (parse_filter({}, readable), parse_filter(query, readable)):
        for page in (lists.render_runs("mona", wanted), lists.render_costs("mona", wanted)):
            assert not re.search(r"<(script>alert|img|svg)|href=\"javascript", page)
    assert index.runs(RunFilter(readable), None, 9)


def test_costs_are_summed_by_month_repository_and_person(index: RunIndex) -> None:
    put(index, 1, cost=1.0)
    put(index, 2, cost=2.0, person="hubot", month="2026-02")
    put(index, 3, cost=4.0, repository="octo/web", unpriced=1)
    page = RunLists(index, BASE).render_costs("mona", RunFilter(BOTH))
    text = " ".join(re.sub(r"<[^>]+>", " ", page.partition("<main>")[2]).split())
    assert "By month Month Runs Failed Cost 2026-03 2 0 at least $5.00 2026-02 1 0 $2.00" in text
    assert "octo/web 1 0 at least $4.00 octo/calc 2 0 $3.00" in text
    assert "mona 2 0 at least $5.00 hubot 1 0 $2.00" in text
    assert "month=2026-02" in page


@pytest.mark.parametrize("url", ["https://r.example.org", None])
def test_a_server_without_an_app_says_what_to_do(url: str | None) -> None:
    page = setup_page("https://git.example.org", url)
    text = html.unescape(bytes(page.body).decode())
    assert page.status_code == 503 and 'href="https://git.example.org/settings/apps/new?' in text
    assert f"webhook_url={(url or UNREACHABLE_SERVER).replace('://', '%3A%2F%2F')}%2F" in text
    assert "export RESOLVER_APP_ID=" in text and "GITHUB_WEBHOOK_SECRET" in text
    assert ("set <code>RESOLVER_PUBLIC_URL</code>" in text) == (url is None)
    client = TestClient(setup_app(page))
    answers = {path: client.get(path) for path in ("/", "/webhook", "/healthz", "/readyz")}
    assert [answer.status_code for answer in answers.values()] == [503, 503, 200, 503]
    assert answers["/"].content == answers["/webhook"].content == page.body
