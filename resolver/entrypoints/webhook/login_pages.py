"""Login to the server's pages with GitHub: `/login`, `/login/callback` and `/logout`.

The state and the PKCE verifier of a login are in a cookie of the browser that began it, so that a
callback of another login is refused. See RFC 6749, section 10.12, and RFC 7636.
"""

import hmac
import logging
import re
import secrets
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from starlette.requests import ClientDisconnect

from resolver.entrypoints.webhook.github_oauth import GitHubUsers, LoginRefused
from resolver.entrypoints.webhook.page_headers import site_headers
from resolver.entrypoints.webhook.page_readers import ReaderAccess
from resolver.entrypoints.webhook.page_sessions import (
    LOGIN_DURATION,
    SESSION_DURATION,
    PageSession,
    PendingLogin,
    SealedCookies,
    new_session,
)
from resolver.errors import ResolverError
from resolver.events.stream import Clock, utc_now
from resolver.models.base import FrozenModel

logger = logging.getLogger("resolver.entrypoints.webhook")

MAX_LOGINS = 8
"""Maximum number of logins for which GitHub is asked at a time."""

MAX_FORM_BYTES = 32_000

_PATH = re.compile(r"/(?:costs|runs/[0-9]{8}-[0-9]{6}-[0-9a-f]{6})?", re.ASCII)
"""The pages that a login leads to. Everything else could be another site."""

_Value = TypeVar("_Value", bound=FrozenModel)


@dataclass(frozen=True)
class PageLogin:
    """The login of the server's pages.

    public_url: address of the server as people reach it.
    """

    users: GitHubUsers
    access: ReaderAccess
    cookies: SealedCookies
    public_url: str
    now: Clock = utc_now
    limiter: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(MAX_LOGINS))

    def session(self, request: Request) -> PageSession | None:
        """Return the session of the request's cookie; None if there is no valid one."""
        return self._read(request, PageSession)

    def pending(self, request: Request) -> PendingLogin | None:
        """Return the login that the request's browser has begun; None if there is none."""
        return self._read(request, PendingLogin)

    def login_url(self, path: str) -> str:
        """Return the address that begins a login which leads to the path of a page."""
        return f"{self.public_url}/login?{urlencode({'path': path})}"

    def is_own_form(self, request: Request) -> bool:
        """Return False if the browser says that a form was sent from another site."""
        parts = urlsplit(self.public_url)
        origin = request.headers.get("origin", "null")
        is_same_site = request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
        return is_same_site and origin in {"null", f"{parts.scheme}://{parts.netloc}"}

    def set_cookie(self, response: Response, value: FrozenModel) -> None:
        """Store the value in a cookie that scripts and other sites can't use."""
        duration = SESSION_DURATION if isinstance(value, PageSession) else LOGIN_DURATION
        response.set_cookie(
            self._cookie_name(type(value)),
            self.cookies.seal(value, self.now()),
            max_age=int(duration.total_seconds()),
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite="lax",
        )

    def delete_cookie(self, response: Response, kind: type[FrozenModel]) -> None:
        """Remove a cookie."""
        response.delete_cookie(
            self._cookie_name(kind),
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite="lax",
        )

    @property
    def _is_secure(self) -> bool:
        # Browsers do not store secure cookies of a server without TLS, as in a trial.
        return not self.public_url.startswith("http:")

    def _cookie_name(self, kind: type[FrozenModel]) -> str:
        name = "resolver-session" if kind is PageSession else "resolver-login"
        # Browsers accept this prefix from the host itself only, not from a neighboring domain.
        return f"__Host-{name}" if self._is_secure else name

    def _read(self, request: Request, kind: type[_Value]) -> _Value | None:
        text = request.cookies.get(self._cookie_name(kind), "")
        duration = SESSION_DURATION if kind is PageSession else LOGIN_DURATION
        return self.cookies.open(kind, text, self.now(), duration)


def add_login_pages(app: FastAPI, login: PageLogin) -> None:
    """Add the routes to `app`."""
    redirect = f"{login.public_url}/login/callback"

    @app.get("/login", include_in_schema=False)
    async def begin(path: str = "/") -> Response:
        """Leads to the login at GitHub."""
        safe_path = path if _PATH.fullmatch(path) else "/"
        pending = PendingLogin(
            state=secrets.token_urlsafe(24), verifier=secrets.token_urlsafe(48), path=safe_path
        )

        def address() -> str:
            return login.users.authorize_url(redirect, pending.state, pending.verifier)

        try:
            url = await run_sync(address, limiter=login.limiter)
        except ResolverError as error:
            raise _unavailable(error) from None
        response = RedirectResponse(url, 303, site_headers())
        login.set_cookie(response, pending)
        return response

    @app.get("/login/callback", include_in_schema=False)
    async def finish(request: Request, code: str = "", state: str = "") -> Response:
        """Ends the login, and leads back to the page."""
        pending = login.pending(request)
        is_own = pending is not None and hmac.compare_digest(
            pending.state.encode(), state.encode(errors="replace")
        )
        if pending is None or not is_own or not 0 < len(code) <= 200:
            raise HTTPException(400, "this login has expired or was not begun here; log in again")

        def exchange() -> PageSession:
            token = login.users.exchange(code, redirect, pending.verifier)
            return new_session(login.users.login(token), token)

        try:
            session = await run_sync(exchange, limiter=login.limiter)
        except LoginRefused as error:
            raise HTTPException(403, f"{error.what}; {error.next_step}") from None
        except ResolverError as error:
            raise _unavailable(error) from None
        response = RedirectResponse(f"{login.public_url}{pending.path}", 303, site_headers())
        login.delete_cookie(response, PendingLogin)
        login.set_cookie(response, session)
        return response

    @app.post("/logout", include_in_schema=False)
    async def end(request: Request) -> Response:
        """Ends the session."""
        if not login.is_own_form(request):
            raise HTTPException(403, "the request comes from another site")
        response = RedirectResponse(f"{login.public_url}/", 303, site_headers())
        login.delete_cookie(response, PageSession)
        return response


def _unavailable(error: ResolverError) -> HTTPException:
    logger.warning("a login failed: %s", error.what)
    return HTTPException(503, "GitHub can't be asked now; try again later")


async def read_form(request: Request) -> bytes:
    """Return the body of a small form. Raises HTTPException if it is too large or incomplete."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_FORM_BYTES:
                raise HTTPException(413, "the form is too large", {"Connection": "close"})
    except ClientDisconnect:
        raise HTTPException(400, "the form is incomplete") from None
    return body
