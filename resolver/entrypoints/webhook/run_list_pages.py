"""`GET /` lists runs and `GET /costs` sums up their cost. Both work without JavaScript.

People who have logged in see the runs of the repositories that they can read. The operator has a
link with a key that shows all.
"""

import hmac
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from resolver.config.templates import render
from resolver.entrypoints.webhook.login_pages import PageLogin
from resolver.entrypoints.webhook.page_headers import site_headers
from resolver.entrypoints.webhook.page_links import operator_key, page_key
from resolver.entrypoints.webhook.page_readers import SessionEnded
from resolver.entrypoints.webhook.page_sessions import PageSession
from resolver.entrypoints.webhook.request_queue import QueuedRequest
from resolver.entrypoints.webhook.run_indexer import SUCCESSES
from resolver.errors import ForgeError
from resolver.events.stream import Clock, utc_now
from resolver.models.run import RunState
from resolver.storage.database import DatabaseError
from resolver.storage.run_folders import is_run_id
from resolver.storage.run_index import (
    ACTIVE,
    DEFERRED,
    IndexedRun,
    RunFilter,
    RunIndex,
    RunTotals,
    restrict,
)
from resolver.trace.plain import duration, money, one_line

RUNS_PER_PAGE = 50
"""Number of runs on a page of the list."""

MAX_GROUPS = 200
MAX_CAUSES = 20

MAX_LISTING = 2
"""Number of lists that are read at a time."""

STATES = (*(state.value for state in RunState), DEFERRED)

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}", re.ASCII)
_COLUMNS = {"month": "month", "repository": "repository", "person": "requester"}


@dataclass(frozen=True)
class SiteLinks:
    """What the links of the pages begin and end with. base: the public URL. key: the operator's;
    query: the same as a query string. login: of the person who has logged in."""

    base: str
    key: str = ""
    query: str = ""
    login: str = ""


@dataclass(frozen=True)
class ListedRun:
    """A run as the list shows it."""

    url: str
    title: str
    started: str
    command: str
    model: str
    repository: str
    number: int | None
    issue_url: str
    pull_request: str
    pull_request_number: str
    state: str
    verdict: str
    mood: str
    reason: str
    requester: str
    cost: str
    time: str


@dataclass(frozen=True)
class TotalRow:
    """Sums over runs as a page shows them. url: of the runs that are summed up."""

    name: str
    url: str
    runs: str
    failed: str
    cost: str
    tokens_in: str
    tokens_out: str


@dataclass(frozen=True)
class RunListPage:
    """The values that the template of the list reads. older: URL of the next page. waiting:
    conversations whose requests have not started."""

    site: SiteLinks
    run_filter: RunFilter
    action: str
    states: tuple[str, ...]
    total: TotalRow
    causes: list[tuple[str, int]]
    rows: list[ListedRun]
    older: str
    waiting: list[str]


@dataclass(frozen=True)
class CostPage:
    """The values that the template of the costs reads. groups: name and sums of each group."""

    site: SiteLinks
    run_filter: RunFilter
    action: str
    states: tuple[str, ...]
    groups: list[tuple[str, list[TotalRow]]]


@dataclass(frozen=True)
class RunLists:
    """Renders the pages. index: the runs. secret: that of the webhook. Raises DatabaseError.

    list_waiting: returns the waiting requests.
    """

    index: RunIndex
    secret: str
    base: str
    now: Clock = utc_now
    list_waiting: Callable[[], Sequence[QueuedRequest]] = tuple

    def render_runs(self, site: SiteLinks, run_filter: RunFilter, before: str) -> str:
        """Return the list of runs."""
        runs = self.index.runs(run_filter, before, RUNS_PER_PAGE + 1)
        shown = runs[:RUNS_PER_PAGE]
        page = RunListPage(
            site=site,
            run_filter=run_filter,
            action=f"{self.base}/",
            states=STATES,
            total=self._total(self.index.total(run_filter), ""),
            causes=self.index.failures(run_filter, MAX_CAUSES),
            rows=[self._row(run, site) for run in shown],
            older=self._url(site, run_filter, before=shown[-1].run)
            if len(runs) > RUNS_PER_PAGE
            else "",
            waiting=[] if before else self._waiting(run_filter),
        )
        return render("site/runs.html.j2", page)

    def _waiting(self, run_filter: RunFilter) -> list[str]:
        """Return the conversations of waiting requests that the reader may see."""
        visible = run_filter.repositories
        conversations = (request.conversation for request in self.list_waiting())
        return [c for c in conversations if visible is None or c.partition("#")[0] in visible]

    def render_costs(self, site: SiteLinks, run_filter: RunFilter) -> str:
        """Return the sums by month, repository and person."""
        groups = []
        for name, column in _COLUMNS.items():
            rows = []
            for total in self.index.totals_by(column, run_filter, MAX_GROUPS):
                chosen: Mapping[str, Any] = {column: total.name}
                rows.append(self._total(total, self._url(site, replace(run_filter, **chosen))))
            groups.append((name, rows))
        page = CostPage(site, run_filter, f"{self.base}/costs", STATES, groups)
        return render("site/costs.html.j2", page)

    def _url(self, site: SiteLinks, run_filter: RunFilter, before: str = "") -> str:
        values = {
            "key": site.key,
            "repository": run_filter.repository,
            "person": run_filter.requester,
            "state": run_filter.state,
            "month": run_filter.month,
            "min_cost": f"{run_filter.min_cost:g}" if run_filter.min_cost else "",
            "before": before,
        }
        query = urlencode({name: value for name, value in values.items() if value})
        return f"{self.base}/?{query}" if query else f"{self.base}/"

    def _row(self, run: IndexedRun, site: SiteLinks) -> ListedRun:
        # The operator has no session: each run is opened by its own key.
        key = f"?key={page_key(self.secret, run.run)}" if site.key else ""
        end = run.ended if run.ended is not None else self.now().timestamp()
        pull_request = _web_address(run.pull_request)
        return ListedRun(
            url=f"{self.base}/runs/{run.run}{key}",
            title=one_line(run.title, 200) or f"{run.repository}#{run.number}",
            started=f"{datetime.fromtimestamp(run.started, UTC):%Y-%m-%d %H:%M} UTC",
            command=run.command,
            model=one_line(run.model, 80),
            repository=run.repository,
            number=run.number,
            issue_url=_web_address(run.issue_url),
            pull_request=pull_request,
            pull_request_number=pull_request.rpartition("/")[2],
            verdict=run.verdict.replace("_", " "),
            state=run.state.replace("_", " "),
            mood=_mood(run),
            reason=one_line(run.reason, 200) if run.cause else "",
            requester=run.requester,
            cost=_price(run.cost, run.unpriced),
            time=duration(max(0.0, end - run.started)),
        )

    @staticmethod
    def _total(total: RunTotals, url: str) -> TotalRow:
        return TotalRow(
            name=total.name,
            url=url,
            runs=f"{total.runs:,}",
            failed=f"{total.failed:,}",
            cost=_price(total.cost, total.unpriced),
            tokens_in=f"{total.tokens_in:,}",
            tokens_out=f"{total.tokens_out:,}",
        )


def _web_address(url: str) -> str:
    return url if re.match(r"https?://", url) else ""


def _price(cost: float, unpriced: int) -> str:
    if unpriced:
        return f"at least {money(cost)}" if cost else money(None)
    return money(cost)


def _mood(run: IndexedRun) -> str:
    if run.state in ACTIVE:
        return "plain"
    return "good" if run.state in SUCCESSES else "bad"


def parse_filter(values: Mapping[str, str]) -> RunFilter:
    """Return the filter of a query string. Values that no run can have restrict nothing."""
    try:
        min_cost = float(values.get("min_cost", "") or 0)
    except ValueError:
        min_cost = 0.0
    state, month = values.get("state", ""), values.get("month", "")
    return RunFilter(
        repository=_text(values.get("repository", "")),
        state=state if state in STATES else "",
        requester=_text(values.get("person", "")),
        min_cost=min_cost if math.isfinite(min_cost) and 0 < min_cost < 1e9 else 0.0,
        month=month if _MONTH.fullmatch(month) else "",
    )


def _text(value: str) -> str:
    # PostgreSQL has no NUL in texts, and no encoding has half of a surrogate pair.
    cleaned = value.replace("\0", "").encode(errors="replace").decode()
    return cleaned.strip()[:300].lower()


def add_run_lists(app: FastAPI, lists: RunLists, login: PageLogin | None) -> None:
    """Add the routes to `app`. Without the operator's key and without a login there is no list."""
    limiter = CapacityLimiter(MAX_LISTING)

    def show(
        path: str, key: str, session: PageSession | None, values: Mapping[str, str]
    ) -> str | None:
        """Return the page; None if the reader may see none."""
        run_filter = parse_filter(values)
        if hmac.compare_digest(key.encode(errors="replace"), operator_key(lists.secret).encode()):
            site = SiteLinks(lists.base, key, f"?{urlencode({'key': key})}")
        elif session is not None and login is not None:
            site = SiteLinks(lists.base, login=session.login)
            run_filter = restrict(run_filter, login.access.repositories(session))
        else:
            return None
        if path == "/costs":
            return lists.render_costs(site, run_filter)
        before = values.get("before", "")
        return lists.render_runs(site, run_filter, before if is_run_id(before) else "")

    async def answer(request: Request, path: str) -> Response:
        headers = dict(site_headers())
        values = dict(request.query_params)
        session = login.session(request) if login else None
        try:
            html = await run_sync(
                show, path, values.get("key", ""), session, values, limiter=limiter
            )
        except SessionEnded:
            html = None
        except (ForgeError, DatabaseError):
            raise HTTPException(503, "the runs can't be listed now; try again later") from None
        if html is not None:
            return HTMLResponse(html, headers=headers)
        if login is None:
            raise HTTPException(404)
        return RedirectResponse(login.login_url(path), 303, headers)

    @app.get("/", include_in_schema=False)
    async def runs(request: Request) -> Response:
        """The list of runs, with filters."""
        return await answer(request, "/")

    @app.get("/costs", include_in_schema=False)
    async def costs(request: Request) -> Response:
        """The costs of runs by month, repository and person."""
        return await answer(request, "/costs")
