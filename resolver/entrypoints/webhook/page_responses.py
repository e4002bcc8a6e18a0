"""What the server's pages have in common: their HTTP headers, and errors as pages for browsers."""

from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from resolver.config.templates import render, source_hash
from resolver.errors import ResolverError

SITE_POLICY = (
    f"default-src 'none'; style-src {source_hash('site/site.css.j2')}; base-uri 'none'; "
    f"form-action 'self'; script-src {source_hash('site/refresh.js.j2')}; connect-src 'self'"
)
"""Content-Security-Policy of the lists and of error pages: nothing but their own style and the
script that loads a list again."""


def page_headers(policy: str = SITE_POLICY) -> dict[str, str]:
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


def add_error_pages(app: FastAPI, base: str) -> None:
    """Show errors to browsers as pages; programs get JSON or text. What can't be used for now, such
    as the database or GitHub, is answered with 503.

    base: address of the lists.
    """

    def page(status: int, detail: str | None = None) -> str:
        # Starlette puts the status's name in place of a missing detail.
        shown = None if detail == HTTPStatus(status).phrase else detail
        return render("site/error.html.j2", status=status, detail=shown, base=base)

    @app.exception_handler(HTTPException)
    async def show_error(request: Request, error: HTTPException) -> Response:
        if not _is_browser(request):
            return await http_exception_handler(request, error)
        headers = {**page_headers(), **(error.headers or {})}
        content = page(error.status_code, str(error.detail))
        return HTMLResponse(content, error.status_code, headers)

    @app.exception_handler(ResolverError)
    async def show_outage(request: Request, _: Exception) -> Response:
        error = HTTPException(503, "this can't be shown now; try again later")
        return await show_error(request, error)

    @app.exception_handler(Exception)
    async def show_defect(request: Request, _: Exception) -> Response:
        # The server logs the exception itself.
        if not _is_browser(request):
            return PlainTextResponse("Internal Server Error", 500)
        return HTMLResponse(page(500), 500, page_headers())


def _is_browser(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")
