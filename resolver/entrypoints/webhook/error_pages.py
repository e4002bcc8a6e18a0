"""Shows errors to browsers as pages of the site. Programs get JSON or text, as without this."""

from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from resolver.config.templates import render
from resolver.entrypoints.webhook.login_pages import PageLogin
from resolver.entrypoints.webhook.page_headers import site_headers
from resolver.entrypoints.webhook.run_list_pages import SiteLinks

ERROR_PAGE = "site/error.html.j2"


def add_error_pages(app: FastAPI, login: PageLogin | None = None) -> None:
    """Add the pages to `app`. login: None if the lists can only be opened with a key."""
    headers = site_headers()
    site = None if login is None else SiteLinks(login.public_url)
    login_url = "" if login is None else login.login_url("/")

    def page(status: int, detail: str) -> str:
        # Starlette puts the status's name in place of a missing detail.
        shown = "" if detail == HTTPStatus(status).phrase else detail
        return render(ERROR_PAGE, status=status, detail=shown, site=site, login_url=login_url)

    @app.exception_handler(HTTPException)
    async def show_error(request: Request, error: HTTPException) -> Response:
        if not _is_browser(request):
            return await http_exception_handler(request, error)
        content = page(error.status_code, str(error.detail))
        return HTMLResponse(content, error.status_code, {**headers, **(error.headers or {})})

    @app.exception_handler(Exception)
    async def show_defect(request: Request, _: Exception) -> Response:
        # The server logs the exception itself.
        if not _is_browser(request):
            return PlainTextResponse("Internal Server Error", 500)
        return HTMLResponse(page(500, ""), 500, headers)


def _is_browser(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")
