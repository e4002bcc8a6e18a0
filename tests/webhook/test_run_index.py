"""The index of runs, its list and its sums, and who may see which run."""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from resolver.entrypoints.webhook.page_links import operator_key, operator_url, page_key
from resolver.entrypoints.webhook.request_queue import (
    QueuedRequest,
    RequestKind,
    RequestQueue,
    RequestState,
)
from resolver.entrypoints.webhook.run_indexer import RunIndexer
from resolver.entrypoints.webhook.run_lists import (
    RUNS_PER_PAGE,
    ListReader,
    RunLists,
    add_run_lists,
)
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
SECRET = "webhook-canary-51c7e9d3f0a28b46"


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


def test_runs_are_listed_by_page_and_filter(index: RunIndex) -> None:
    runs = [put(index, n, cost=n / 10, cause="" if n % 2 else "stuck") for n in range(5)]
    other = put(index, 7, repository="octo/web", requester="hubot", state="error", cost=9.0)
    assert [row.run for row in index.runs(RunFilter(), None, 2)] == [other, runs[4]]
    assert [row.run for row in index.runs(RunFilter(), runs[4], 2)] == [runs[3], runs[2]]
    assert [row.run for row in index.runs(RunFilter(repository="Octo/Web"), None, 9)] == [other]
    assert [row.run for row in index.runs(RunFilter(requester="HUBOT"), None, 9)] == [other]
    assert [row.run for row in index.runs(RunFilter(state="error"), None, 9)] == [other]
    assert len(index.runs(RunFilter(min_cost=0.3), None, 9)) == 3
    assert index.runs(RunFilter(month="2026-02"), None, 9) == []
    assert [
        row.run for row in index.runs(RunFilter(repositories=frozenset({"octo/web"})), None, 9)
    ] == [other]
    assert index.runs(RunFilter(repositories=frozenset()), None, 9) == []
    total = index.total(RunFilter(repository="octo/calc"))
    assert (total.runs, total.failed, round(total.cost, 2)) == (5, 3, 1.0)
    assert index.failures(RunFilter(), 9) == [("stuck", 3)]
    by_repository = index.totals_by("repository", RunFilter(), 9)
    assert [group.name for group in by_repository] == ["octo/web", "octo/calc"]
    assert [group.name for group in index.totals_by("month", RunFilter(), 9)] == ["2026-03"]
    assert index.total(RunFilter(repositories=frozenset())).runs == 0


@pytest.mark.attack
@pytest.mark.parametrize(
    "text", ["' OR '1'='1", "octo/calc'; DROP TABLE resolver_runs; --", "%", "_", "\\", "\0"]
)
def test_a_filter_is_a_value_and_never_a_statement(index: RunIndex, text: str) -> None:
    """Somebody puts SQL into the filters of the list of runs: it is compared as text."""
    put(index, 1)
    for wanted in (RunFilter(repository=text), RunFilter(requester=text), RunFilter(state=text)):
        assert index.runs(wanted, None, 9) == []
    assert index.runs(RunFilter(), text, 9) in ([], index.runs(RunFilter(), None, 9))
    assert index.total(RunFilter()).runs == 1


def indexer(index: RunIndex) -> RunIndexer:
    return RunIndexer(index, "machine-1", lambda: NOW)


def test_start_stages_and_end_of_a_run_are_recorded(tmp_path: Path, index: RunIndex) -> None:
    request = run_request(tmp_path)
    publication = Publication(branch="agent/12", pull_request=PULL)
    writer = indexer(index)
    writer.record_start(request)
    row = index.get("run-1")
    assert row is not None and row.state == "running" and row.ended is None
    assert row.executor == "machine-1" and row.repository == row.repository.lower()
    writer.record_stage(executed_values(request).with_value(PublishedRun(publication)))
    assert index.issue_of(row.repository, PULL.number or 0) == request.trigger.subject
    outcome = result_of(tmp_path / "result", publication)
    task = reports.task(request.trigger).model_copy(update={"url": "https://x/issues/12"})
    report = outcome.report.model_copy(update={"task": task})
    files = outcome.outcome_file.model_copy(update={"files": reports.patch().files})
    writer.record_end(
        replace(outcome, request=request, log=None, report=report, outcome_file=files)
    )
    row = index.get("run-1")
    assert row is not None and (row.state, row.cause) == ("finished", "")
    assert row.pull_request == PULL.url and row.branch == "agent/12"
    assert row.issue_url == "https://x/issues/12" and row.verdict == "not_verified"
    assert row.ended == NOW.timestamp() and row.day == "2026-03-04"
    assert index.total(RunFilter()).runs == 1


def test_a_failure_has_its_cause(tmp_path: Path, index: RunIndex) -> None:
    plain = result_of(tmp_path, Publication())
    failed = plain.outcome_file.model_copy(update={"state": RunState.ERROR, "reason": "no answer"})
    failure = RunFailure(kind="error", what="no answer", cause="provider_down")
    for result, cause in (
        (replace(plain, outcome_file=failed, failure=failure), "provider_down"),
        (replace(plain, outcome_file=failed), "error"),
        (
            replace(plain, outcome_file=failed.model_copy(update={"limit": "budget"})),
            "limit: budget",
        ),
    ):
        indexer(index).record_end(replace(result, log=None))
        row = index.get("run-1")
        assert row is not None and (row.cause, row.reason) == (cause, "no answer")


def test_an_index_that_can_not_be_written_ends_no_run(tmp_path: Path, index: RunIndex) -> None:
    request, result = run_request(tmp_path), result_of(tmp_path / "r", Publication())
    index.close()
    for file in tmp_path.glob("resolver.db*"):
        file.unlink()
    (tmp_path / "resolver.db").mkdir()
    indexer(index).record_start(request)
    indexer(index).record_end(replace(result, log=None))


def client_of(index: RunIndex) -> TestClient:
    app = FastAPI()
    add_run_lists(app, RunLists(index, SECRET, "https://r.example.org", lambda: NOW), None)
    return TestClient(app, "https://r.example.org")


def get(index: RunIndex, path: str, values: Mapping[str, str]) -> str:
    answer = client_of(index).get(path, params={"key": operator_key(SECRET), **values})
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert policy.count("script-src 'sha256-") == 1 and "default-src 'none'" in policy
    return answer.text


def test_the_operator_s_link_shows_all_runs_and_nothing_is_open_without_it(
    index: RunIndex,
) -> None:
    run = put(index, 1, cost=0.21)
    put(index, 2, state="running")
    page = get(index, "/", {})
    assert page.count("<tr>") == 3 and "$0.21" in page
    link = re.search(rf'href="https://r\.example\.org/runs/{run}\?key=([0-9a-f]+)"', page)
    assert link is not None and link[1] == page_key(SECRET, run)
    client = client_of(index)
    for key in ("", "x", "é", page_key(SECRET, run), operator_key("another secret")):
        assert client.get("/", params={"key": key}).status_code == 404
        assert client.get("/costs", params={"key": key}).status_code == 404
    assert operator_url("https://x", SECRET).startswith("https://x/?key=")


def test_a_run_is_listed_with_its_issue_its_pull_request_and_the_verdict(index: RunIndex) -> None:
    url = "https://github.example/octo/calc"
    put(index, 3, verdict="not_verified", issue_url=f"{url}/issues/3", pull_request=f"{url}/pull/9")
    page = get(index, "/", {})
    assert f'<a href="{url}/issues/3" rel="noopener noreferrer nofollow">octo/calc#3</a>' in page
    assert "pull request #9</a>" in page and "<small>not verified</small>" in page


def test_waiting_requests_are_listed_to_those_who_can_read_the_repository(
    index: RunIndex, tmp_path: Path
) -> None:
    queue = RequestQueue(parse_database_url(f"sqlite:///{tmp_path}/queue.db"))
    queue.add(QueuedRequest("d-1", RequestKind.RUN, reports.trigger()))
    lists = RunLists(index, SECRET, "", lambda: NOW, partial(queue.recent, (RequestState.WAITING,)))
    everything = lists.render_runs(ListReader(), RunFilter())
    assert "Waiting requests" in everything and "octo/demo#12" in everything
    others = RunFilter(repositories=frozenset({"octo/web"}))
    assert "Waiting requests" not in lists.render_runs(ListReader(), others)
    queue.close()


def test_the_list_has_pages_that_keep_the_filter(index: RunIndex) -> None:
    for number in range(RUNS_PER_PAGE + 3):
        put(index, number, requester="mona" if number else "hubot")
    page = get(index, "/", {"person": "Mona"})
    assert page.count('<td class="about">') == RUNS_PER_PAGE
    older = re.search(r'href="([^"]+)" rel="next"', page)
    assert older is not None
    answer = client_of(index).get(html.unescape(older[1]))
    assert answer.text.count('<td class="about">') == 2 and 'rel="next"' not in answer.text
    assert 'value="mona"' in answer.text


@pytest.mark.attack
@pytest.mark.parametrize(
    "text", ['"><script>alert(1)</script>', "javascript:alert(1)", "' OR 1=1 --", "\ud800", "\0"]
)
def test_hostile_titles_and_filters_stay_words_in_the_list(index: RunIndex, text: str) -> None:
    """An issue's title or a filter of the list contains HTML: it is shown as text."""
    stored = text.encode(errors="replace").decode()
    put(index, 1, title=stored, reason=stored, cause=stored[:60], requester=stored, model=stored,
        pull_request=stored, issue_url=stored, repository=stored, state="error")  # fmt: skip
    query = dict.fromkeys(("repository", "person", "state", "month", "min_cost", "before"), stored)
    for values in ({}, query):
        for path in ("/", "/costs"):
            page = get(index, path, values)
            assert not re.search(r"<(script>alert|img|svg)|href=\"javascript", page)


def test_costs_are_summed_by_month_repository_and_person(index: RunIndex) -> None:
    put(index, 1, cost=1.0)
    put(index, 2, cost=2.0, requester="hubot", day="2026-02-28")
    put(index, 3, cost=4.0, repository="octo/web", unpriced=1)
    page = get(index, "/costs", {})
    text = " ".join(re.sub(r"<[^>]+>", " ", page.partition("<main>")[2]).split())
    assert "By month Month Runs Failed Cost 2026-03 2 0 at least $5.00 2026-02 1 0 $2.00" in text
    assert "octo/web 1 0 at least $4.00 octo/calc 2 0 $3.00" in text
    assert "mona 2 0 at least $5.00 hubot 1 0 $2.00" in text
    assert "month=2026-02" in page
