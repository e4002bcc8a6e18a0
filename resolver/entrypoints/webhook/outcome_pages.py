"""`GET /outcomes/OWNER/NAME?key=...`: shows what became of the pull requests of a repository.

Anybody with the link may read it. `resolver outcomes` prints the link where the server's settings
are. With `&format=json` the answer is the same JSON that the command prints.
"""

import hmac
from collections.abc import Sequence
from typing import Annotated

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import FastAPI, HTTPException, Query, Response
from fastapi.responses import HTMLResponse, JSONResponse

from resolver.config.templates import render
from resolver.entrypoints.webhook.openapi import (
    PAGE_KEY,
    Responses,
    error_responses,
    page_response,
    requires,
)
from resolver.entrypoints.webhook.outcomes import OutcomeStore
from resolver.entrypoints.webhook.page_headers import page_headers, static_page_policy
from resolver.entrypoints.webhook.page_links import outcome_page_key
from resolver.errors import ResolverError
from resolver.models.outcome import PullRequestOutcome
from resolver.outcomes.report import outcome_report
from resolver.outcomes.summary import outcomes_as_json, summarize_outcomes

_STYLE = "trace/outcomes.css.j2"


def render_outcome_page(repository: str, outcomes: Sequence[PullRequestOutcome]) -> str:
    """Return the page. It makes no request and runs no script."""
    report = outcome_report(outcomes, repository)
    return render("trace/outcomes.html.j2", report=report, style=render(_STYLE))


def add_outcome_pages(app: FastAPI, store: OutcomeStore, secret: str) -> None:
    """Add the route to `app`. A wrong key and an unknown repository get the same answer."""
    limiter = CapacityLimiter(1)
    headers = page_headers(static_page_policy(_STYLE, "'none'"))

    def answer(repository: str, as_json: bool) -> Response:
        outcomes = store.get(repository)
        if outcomes is None:
            raise HTTPException(404)
        if as_json:
            content = outcomes_as_json(repository, outcomes, summarize_outcomes(outcomes))
            return JSONResponse(content, headers=headers)
        return HTMLResponse(render_outcome_page(repository, outcomes), headers=headers)

    page: Responses = page_response(headers)
    page[200]["content"]["application/json"] = {"schema": {"type": "object"}}

    @app.get(
        "/outcomes/{owner}/{name}",
        operation_id="show_outcomes",
        summary="Show what became of the pull requests of a repository",
        response_class=Response,
        responses=page
        | error_responses(
            s404="The repository has no outcomes, or the key is not the repository's.",
            s503="The outcomes can't be read now.",
        ),
        openapi_extra=requires(PAGE_KEY),
    )
    async def outcomes(
        owner: str,
        name: str,
        key: Annotated[str, Query(include_in_schema=False)] = "",
        format: Annotated[str, Query(description="`json` for JSON instead of a page.")] = "",
    ) -> Response:
        """What became of a repository's pull requests, as a page; with `format=json`, as JSON."""
        repository = f"{owner}/{name}"
        expected = outcome_page_key(secret, repository).encode()
        if not hmac.compare_digest(key.encode(errors="replace"), expected):
            raise HTTPException(404)
        try:
            return await run_sync(answer, repository, format == "json", limiter=limiter)
        except ResolverError:
            raise HTTPException(503, "the outcomes can't be read now") from None
