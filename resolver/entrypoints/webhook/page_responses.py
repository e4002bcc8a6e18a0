"""What the server's pages have in common: their HTTP headers, and errors as pages for browsers."""

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from resolver.config.templates import render, source_hash
from resolver.errors import ResolverError

SITE_STYLE = "site/site.css.j2"
SITE_SCRIPT = "site/refresh.js.j2"
ERROR_PAGE = "site/error.html.j2"


def page_headers(policy: str) -> dict[str, str]:
    """Return the headers of a page that must not be cached, indexed, framed or named as referrer.

    policy: its Content-Security-Policy.
    """
    return {
        "Content-Security-Policy": f"{policy}; frame-ancestors 'none'",
        "X-Robots-Tag": "noindex, nofollow",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }


def static_page_policy(style: str, form_action: str) -> str:
    """Return the Content-Security-Policy of a page that has only its own style: no script, no
    picture, and nothing that is loaded.

    style: template of the style. form_action: where forms lead, as in the directive.
    """
    return (
        f"default-src 'none'; style-src {source_hash(style)}; base-uri 'none'; "
        f"form-action {form_action}"
    )


def site_headers(has_script: bool = False) -> Mapping[str, str]:
    """Return the headers of the site's pages, whose forms lead to this server.

    has_script: True for a list that loads itself again."""
    policy = static_page_policy(SITE_STYLE, "'self'")
    if has_script:
        policy += f"; script-src {source_hash(SITE_SCRIPT)}; connect-src 'self'"
    return page_headers(policy)


def add_error_pages(app: FastAPI, base: str | None = None, login_url: str | None = None) -> None:
    """Show errors to browsers as pages; programs get JSON or text. What can't be used for now, such
    as the database or GitHub, is answered with 503.

    base: address of the lists that need no key, if there is one. login_url: begins a login.
    """
    headers = site_headers()

    def page(status: int, detail: str | None = None) -> str:
        # Starlette puts the status's name in place of a missing detail.
        shown = None if detail == HTTPStatus(status).phrase else detail
        return render(ERROR_PAGE, status=status, detail=shown, base=base, login_url=login_url)

    @app.exception_handler(HTTPException)
    async def show_error(request: Request, error: HTTPException) -> Response:
        if not _is_browser(request):
            return await http_exception_handler(request, error)
        content = page(error.status_code, str(error.detail))
        return HTMLResponse(content, error.status_code, {**headers, **(error.headers or {})})

    @app.exception_handler(ResolverError)
    async def show_outage(request: Request, _: Exception) -> Response:
        error = HTTPException(503, "this can't be shown now; try again later")
        return await show_error(request, error)

    @app.exception_handler(Exception)
    async def show_defect(request: Request, _: Exception) -> Response:
        # The server logs the exception itself.
        if not _is_browser(request):
            return PlainTextResponse("Internal Server Error", 500)
        return HTMLResponse(page(500), 500, headers)


def _is_browser(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")
