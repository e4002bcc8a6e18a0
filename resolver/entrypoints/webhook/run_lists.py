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
from resolver.entrypoints.webhook.login import PageLogin
from resolver.entrypoints.webhook.page_links import operator_key, page_key
from resolver.entrypoints.webhook.page_responses import site_headers
from resolver.entrypoints.webhook.request_queue import QueuedRequest
from resolver.entrypoints.webhook.run_indexer import SUCCESSES
from resolver.events.stream import Clock, utc_now
from resolver.models.run import RunState
from resolver.storage.run_index import ACTIVE, DEFERRED, IndexedRun, RunFilter, RunIndex
from resolver.storage.run_store import is_run_id
from resolver.trace.plain import duration, money, one_line

RUNS_PER_PAGE = 50
"""Number of runs on a page of the list."""

MAX_GROUPS = 200
MAX_CAUSES = 20

MAX_LISTING = 2
"""Number of lists that are read at a time."""

REFRESH_SECONDS = 30
"""Interval in seconds at which a browser loads the list again."""

STATES = (*(state.value for state in RunState), DEFERRED)

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}", re.ASCII)
_COLUMNS = {"month": "month", "repository": "repository", "person": "requester"}


@dataclass(frozen=True)
class ListReader:
    """Who reads a list: the operator with a key, or a person who has logged in."""

    key: str | None = None
    login: str | None = None

    @property
    def query(self) -> str:
        """The query string of links to other lists."""
        return f"?{urlencode({'key': self.key})}" if self.key else ""


@dataclass(frozen=True)
class RunLists:
    """Renders the lists. secret: that of the webhook. base: the public URL. list_waiting: returns
    the requests that have not started. Methods raise DatabaseError."""

    index: RunIndex
    secret: str
    base: str
    now: Clock = utc_now
    list_waiting: Callable[[], Sequence[QueuedRequest]] = tuple

    def render_runs(
        self, reader: ListReader, run_filter: RunFilter, before: str | None = None
    ) -> str:
        """Return the list of runs. before: id of a run; only older ones are listed."""
        runs = self.index.runs(run_filter, before, RUNS_PER_PAGE + 1)
        shown = runs[:RUNS_PER_PAGE]
        is_last = len(runs) == len(shown)
        return self._render(
            "site/runs.html.j2",
            reader,
            run_filter,
            total=self.index.total(run_filter),
            causes=self.index.failures(run_filter, MAX_CAUSES),
            runs=shown,
            older=None if is_last else self._url(reader, run_filter, shown[-1].run),
            waiting=[] if before else self._waiting(run_filter),
            refresh_seconds=REFRESH_SECONDS,
        )

    def render_costs(self, reader: ListReader, run_filter: RunFilter) -> str:
        """Return the sums by month, repository and person."""

        def url(column: str, name: str) -> str:
            chosen: Mapping[str, Any] = {column: name}
            return self._url(reader, replace(run_filter, **chosen))

        groups = [
            (
                name,
                [
                    (total, url(column, total.name))
                    for total in self.index.totals_by(column, run_filter, MAX_GROUPS)
                ],
            )
            for name, column in _COLUMNS.items()
        ]
        return self._render("site/costs.html.j2", reader, run_filter, groups=groups)

    def _render(
        self, template: str, reader: ListReader, run_filter: RunFilter, **values: Any
    ) -> str:
        return render(
            template,
            base=self.base,
            reader=reader,
            run_filter=run_filter,
            states=STATES,
            one_line=one_line,
            price=_price,
            mood=_mood,
            web_address=_web_address,
            run_url=lambda run: self._run_url(reader, run),
            started=lambda run: f"{datetime.fromtimestamp(run.started, UTC):%Y-%m-%d %H:%M} UTC",
            time=self._time,
            **values,
        )

    def _waiting(self, run_filter: RunFilter) -> list[str]:
        """Return the conversations of waiting requests that the reader may see."""
        visible = run_filter.repositories
        conversations = (request.conversation for request in self.list_waiting())
        return [c for c in conversations if visible is None or c.partition("#")[0] in visible]

    def _url(self, reader: ListReader, run_filter: RunFilter, before: str | None = None) -> str:
        values = {
            "key": reader.key,
            "repository": run_filter.repository,
            "person": run_filter.requester,
            "state": run_filter.state,
            "month": run_filter.month,
            "min_cost": f"{run_filter.min_cost:g}" if run_filter.min_cost else None,
            "before": before,
        }
        query = urlencode({name: value for name, value in values.items() if value})
        return f"{self.base}/?{query}" if query else f"{self.base}/"

    def _run_url(self, reader: ListReader, run: IndexedRun) -> str:
        # The operator has no session: each run is opened by its own key.
        key = f"?key={page_key(self.secret, run.run)}" if reader.key else ""
        return f"{self.base}/runs/{run.run}{key}"

    def _time(self, run: IndexedRun) -> str:
        end = run.ended if run.ended is not None else self.now().timestamp()
        return duration(max(0.0, end - run.started))


def _web_address(url: str) -> str | None:
    return url if re.match(r"https?://", url) else None


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
        repository=_text(values.get("repository")),
        state=state if state in STATES else None,
        requester=_text(values.get("person")),
        min_cost=min_cost if math.isfinite(min_cost) and 0 < min_cost < 1e9 else 0.0,
        month=month if _MONTH.fullmatch(month) else None,
    )


def _text(value: str | None) -> str | None:
    # PostgreSQL has no NUL in texts, and no encoding has half of a surrogate pair.
    cleaned = (value or "").replace("\0", "").encode(errors="replace").decode()
    return cleaned.strip()[:300].lower() or None


def add_run_lists(app: FastAPI, lists: RunLists, login: PageLogin | None) -> None:
    """Add the routes to `app`. Without the operator's key and without a login there is no list."""
    limiter = CapacityLimiter(MAX_LISTING)
    headers = site_headers(has_script=True)

    async def open_list(request: Request) -> tuple[ListReader, RunFilter] | Response:
        """Return the reader and what they ask for, or where they log in."""
        run_filter, key = parse_filter(request.query_params), request.query_params.get("key", "")
        if hmac.compare_digest(key.encode(errors="replace"), operator_key(lists.secret).encode()):
            return ListReader(key), run_filter
        if login is None:
            raise HTTPException(404)
        person = login.person(request)
        if person is None:
            return RedirectResponse(login.login_url(request.url.path), 303, headers)
        repositories = await login.users.repositories(person)
        return ListReader(login=person.login), replace(run_filter, repositories=repositories)

    @app.get("/")
    async def runs(request: Request, before: str = "") -> Response:
        """The list of runs, with filters."""
        opened = await open_list(request)
        if isinstance(opened, Response):
            return opened
        oldest = before if is_run_id(before) else None
        html = await run_sync(lists.render_runs, *opened, oldest, limiter=limiter)
        return HTMLResponse(html, headers=headers)

    @app.get("/costs")
    async def costs(request: Request) -> Response:
        """The costs of runs by month, repository and person."""
        opened = await open_list(request)
        if isinstance(opened, Response):
            return opened
        html = await run_sync(lists.render_costs, *opened, limiter=limiter)
        return HTMLResponse(html, headers=headers)
