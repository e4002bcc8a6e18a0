"""`GET /` lists runs and `GET /costs` sums up their cost, for people who have logged in: those of
the repositories that they can read. Both work without JavaScript."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response

from resolver.config.templates import render
from resolver.entrypoints.webhook.login import PageLogin
from resolver.entrypoints.webhook.page_responses import page_headers
from resolver.entrypoints.webhook.request_queue import QueuedRequest
from resolver.events.stream import Clock, utc_now
from resolver.models.run import RunState
from resolver.storage.run_index import ACTIVE, DEFERRED, SUCCESSES, IndexedRun, RunFilter, RunIndex
from resolver.storage.run_store import is_run_id
from resolver.trace.plain import duration, money, one_line

RUNS_PER_PAGE = 50
"""Number of runs on a page of the list."""

MAX_GROUPS = 200

MAX_LISTING = 2
"""Number of lists that are read at a time."""

REFRESH_SECONDS = 30
"""Interval in seconds at which a browser loads the list again."""

STATES = (*(state.value for state in RunState), DEFERRED)

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}", re.ASCII)


@dataclass(frozen=True)
class RunLists:
    """Renders the lists. base: the public URL. list_waiting: returns the requests that have not
    started. Methods raise DatabaseError."""

    index: RunIndex
    base: str
    list_waiting: Callable[[], Sequence[QueuedRequest]] = tuple
    now: Clock = utc_now

    def render_runs(self, login: str, run_filter: RunFilter, before: str | None = None) -> str:
        """Return the list of runs for a person. before: id of a run; only older ones are listed."""
        runs = self.index.runs(run_filter, before, RUNS_PER_PAGE + 1)
        shown = runs[:RUNS_PER_PAGE]
        return self._render(
            "site/runs.html.j2",
            login,
            run_filter,
            runs=shown,
            older=self._url(run_filter, before=shown[-1].run) if len(runs) > len(shown) else None,
            waiting=[] if before else self._waiting(run_filter),
            refresh_seconds=REFRESH_SECONDS,
            web_address=_web_address,
            mood=_mood,
            started=lambda run: f"{datetime.fromtimestamp(run.started, UTC):%Y-%m-%d %H:%M} UTC",
            time=self._time,
        )

    def render_costs(self, login: str, run_filter: RunFilter) -> str:
        """Return the sums by month, repository and person."""
        groups = {
            column: [
                (total, self._url(run_filter, **{column: total.name}))
                for total in self.index.totals_by(column, run_filter, MAX_GROUPS)
            ]
            for column in ("month", "repository", "person")
        }
        return self._render("site/costs.html.j2", login, run_filter, groups=groups)

    def _render(self, template: str, login: str, run_filter: RunFilter, **values: Any) -> str:
        return render(
            template,
            base=self.base,
            login=login,
            run_filter=run_filter,
            states=STATES,
            one_line=one_line,
            price=_price,
            **values,
        )

    def _waiting(self, run_filter: RunFilter) -> list[str]:
        """Return the conversations of waiting requests that the reader may see."""
        conversations = [request.conversation for request in self.list_waiting()]
        return [c for c in conversations if c.partition("#")[0] in run_filter.repositories]

    def _url(self, run_filter: RunFilter, **changes: str) -> str:
        return f"{self.base}/?{urlencode({**run_filter.wanted, **changes})}"

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


def parse_filter(values: Mapping[str, str], repositories: frozenset[str]) -> RunFilter:
    """Return the filter of a query string. Values that no run can have restrict nothing.

    repositories: those that the reader may see.
    """
    state, month = values.get("state", ""), values.get("month", "")
    return RunFilter(
        repositories,
        repository=_text(values.get("repository")),
        person=_text(values.get("person")),
        state=state if state in STATES else None,
        month=month if _MONTH.fullmatch(month) else None,
    )


def _text(value: str | None) -> str | None:
    # PostgreSQL has no NUL in texts, and no encoding has half of a surrogate pair.
    cleaned = (value or "").replace("\0", "").encode(errors="replace").decode()
    return cleaned.strip()[:300].lower() or None


def add_run_lists(app: FastAPI, lists: RunLists, login: PageLogin) -> None:
    """Add the routes to `app`."""
    limiter = CapacityLimiter(MAX_LISTING)

    async def open_list(request: Request, render_list: Callable[..., str], *more: Any) -> Response:
        person = login.require_person(request)
        run_filter = parse_filter(request.query_params, await login.users.repositories(person))
        html = await run_sync(render_list, person.login, run_filter, *more, limiter=limiter)
        return HTMLResponse(html, headers=page_headers())

    @app.get("/")
    async def runs(request: Request, before: str = "") -> Response:
        """The list of runs, with filters."""
        return await open_list(request, lists.render_runs, before if is_run_id(before) else None)

    @app.get("/costs")
    async def costs(request: Request) -> Response:
        """The costs of runs by month, repository and person."""
        return await open_list(request, lists.render_costs)
