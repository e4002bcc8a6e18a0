"""Login to the server's pages with GitHub, and what the people who log in may see and do there.

Authlib speaks OAuth with GitHub, with a state and PKCE; Starlette keeps the session in a signed
cookie of the browser, so that every server of a fleet reads it and nothing is stored. The token of
the person is encrypted in it. What a person may read, GitHub is asked with their own token.

Source: https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app
"""

import base64
import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote, urlencode

import httpx2
from anyio.to_thread import run_sync
from authlib.integrations.starlette_client import OAuth, OAuthError
from cryptography.fernet import Fernet, InvalidToken
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.middleware.sessions import SessionMiddleware

from resolver.config.server_variables import read_server_variables
from resolver.config.settings import Settings
from resolver.entrypoints.webhook.page_responses import page_headers
from resolver.errors import ForgeError, ResolverError
from resolver.github.client.access import check_repository
from resolver.runs.wiring.sandbox import RunHost

logger = logging.getLogger("resolver.entrypoints.webhook")

SESSION_SECONDS = 8 * 3600
"""How long a person stays logged in: as long as GitHub's own tokens of users are valid."""

GITHUB_SECONDS = 10.0
"""Timeout in seconds of a question to GitHub."""

REPOSITORIES_SECONDS = 300.0
"""How long the answer about a person's repositories is used, in seconds: a browser loads the list
of runs again and again. The page of a run asks each time."""

MAX_REPOSITORY_PAGES = 20
"""Maximum number of pages, of 100 repositories each, that are read of an installation."""

Level = Literal["none", "read", "write"]
"""What a person may do in a repository, as far as the pages need it."""

_PATH = re.compile(r"/(?:costs|runs/[0-9]{8}-[0-9]{6}-[0-9a-f]{6})?", re.ASCII)
"""The pages that a login leads to. Everything else could be another site."""


class LoginNeeded(Exception):
    """Nobody has logged in, or GitHub no longer accepts the token of the session."""


@dataclass(frozen=True)
class Person:
    """Somebody who has logged in. token: of GitHub. form_key: is in the forms of their pages, so
    that no other site can send these."""

    login: str
    token: str = field(repr=False)
    form_key: str = field(repr=False)


class GitHubUsers:
    """Asks GitHub about people who log in. Methods raise ForgeError if GitHub does not answer, and
    LoginNeeded if it does not accept the token.

    client_id: returns the App's client id; may raise ForgeError. clock: seconds of any beginning.
    client_options: of the HTTP client, see `httpx2.AsyncClient`.
    """

    def __init__(
        self,
        server_url: str,
        api_url: str,
        client_id: Callable[[], str],
        client_secret: str,
        clock: Callable[[], float] = time.monotonic,
        **client_options: Any,
    ) -> None:
        self._server, self._api = server_url.rstrip("/"), api_url.rstrip("/")
        self._client_id, self._client_secret = client_id, client_secret
        self._options, self._clock = client_options, clock
        self._repositories: dict[str, tuple[float, frozenset[str]]] = {}
        self._client: Any = None

    async def client(self) -> Any:
        """Return Authlib's client of the App's OAuth."""
        if self._client is None:
            client_id = await run_sync(self._client_id)
            self._client = OAuth().register(
                "github",
                client_id=client_id,
                client_secret=self._client_secret,
                authorize_url=f"{self._server}/login/oauth/authorize",
                access_token_url=f"{self._server}/login/oauth/access_token",
                api_base_url=f"{self._api}/",
                client_kwargs={
                    "code_challenge_method": "S256",
                    "token_endpoint_auth_method": "client_secret_post",
                    "timeout": GITHUB_SECONDS,
                    **self._options,
                },
            )
        return self._client

    async def login(self, token: str) -> str:
        """Return the login of the token's owner."""
        return str((await self._get(token, "user"))["login"])

    async def repositories(self, person: Person) -> frozenset[str]:
        """Return the repositories, in lower case, that the App is installed on and that the person
        can read explicitly, as GitHub said in the last minutes."""
        now = self._clock()
        known = {token: found for token, found in self._repositories.items() if found[0] > now}
        if person.token not in known:
            found = await self._read_repositories(person)
            known[person.token] = now + REPOSITORIES_SECONDS, found
        self._repositories = known
        return known[person.token][1]

    async def _read_repositories(self, person: Person) -> frozenset[str]:
        answer = await self._get(person.token, "user/installations?per_page=100")
        names: set[str] = set()
        for installation in answer.get("installations", ()):
            address = f"user/installations/{int(installation['id'])}/repositories?per_page=100"
            for page in range(1, MAX_REPOSITORY_PAGES + 1):
                answer = await self._get(person.token, f"{address}&page={page}")
                rows = answer.get("repositories", ())
                names |= {str(row["full_name"]).lower() for row in rows if _level(row) != "none"}
                if len(rows) < 100:
                    break
        return frozenset(names)

    async def level(self, person: Person, repository: str) -> Level:
        """Return what the person may do in the repository."""
        name = check_repository(repository).lower()
        found = await self._get(person.token, f"repos/{quote(name)}")
        # GitHub redirects the old name of a repository that has moved.
        return _level(found) if str(found.get("full_name", "")).lower() == name else "none"

    async def _get(self, token: str, path: str) -> dict[str, Any]:
        """Return GitHub's answer; an empty one for what the token's owner can't read."""
        client = await self.client()
        bearer = {"access_token": token, "token_type": "bearer"}
        try:
            response = await client.get(path, token=bearer)
            if response.status_code == 401:
                raise LoginNeeded
            # 301: the repository has moved; 403: an organization asks for its own login.
            if response.status_code in {301, 403, 404, 451}:
                return {}
            response.raise_for_status()
            answer = response.json()
        except (httpx2.HTTPError, ValueError) as error:
            logger.warning("GitHub can't be asked what a person may read: %s", error)
            answer = None
        if not isinstance(answer, dict):
            raise ForgeError("GitHub did not answer", "try again later", "forge_down")
        return answer


def _level(repository: dict[str, Any]) -> Level:
    permissions = repository.get("permissions") or {}
    if any(permissions.get(name) for name in ("push", "maintain", "admin")):
        return "write"
    return "read" if permissions.get("pull") else "none"


def open_users(settings: Settings, machine: RunHost) -> GitHubUsers | None:
    """Return the login with the App's OAuth; None if the settings have no secret for it."""
    secret = read_server_variables(machine.environment).app_client_secret
    if secret is None or not secret.get_secret_value() or not settings.has_app:
        return None

    def client_id() -> str:
        return machine.tokens.app(settings).page().client_id

    server, api = settings.github_server_url, settings.github_api_url
    return GitHubUsers(server, api, client_id, secret.get_secret_value())


class PageLogin:
    """The login of the server's pages. public_url: address of the server as people reach it.
    secret: that of the webhook, which the keys of the cookie are derived from."""

    def __init__(self, users: GitHubUsers, public_url: str, secret: str) -> None:
        self.users, self.public_url = users, public_url
        self._secret = secret
        self._fernet = Fernet(base64.urlsafe_b64encode(self._key("tokens of sessions")))

    def require_person(self, request: Request) -> Person:
        """Return who sends the request. Raises LoginNeeded if nobody has logged in."""
        session = request.session
        try:
            token = self._fernet.decrypt(session.get("token", ""), SESSION_SECONDS).decode()
        except InvalidToken:
            raise LoginNeeded from None
        return Person(session["login"], token, session["form_key"])

    def add_to(self, app: FastAPI) -> None:
        """Add sessions and the routes to `app`."""
        # Browsers do not store secure cookies of a server without TLS, as in a trial. They accept
        # the prefix from the host itself only, not from a neighboring domain.
        is_secure = not self.public_url.startswith("http:")
        app.add_middleware(
            SessionMiddleware,
            secret_key=self._key("sessions of pages").hex(),
            session_cookie=f"{'__Host-' if is_secure else ''}resolver-session",
            max_age=SESSION_SECONDS,
            same_site="lax",
            https_only=is_secure,
        )
        app.add_exception_handler(LoginNeeded, self._log_in)
        app.add_exception_handler(ResolverError, _show_outage)
        app.add_api_route("/login", self._begin)
        app.add_api_route("/login/callback", self._finish)
        app.add_api_route("/logout", self._end, methods=["POST"])

    def _key(self, purpose: str) -> bytes:
        return hmac.digest(self._secret.encode(), f"resolver: {purpose}".encode(), hashlib.sha256)

    async def _begin(self, request: Request, path: str = "/") -> Response:
        """Leads to the login at GitHub."""
        client = await self.users.client()
        request.session["path"] = path if _PATH.fullmatch(path) else "/"
        callback = f"{self.public_url}/login/callback"
        response: Response = await client.authorize_redirect(
            request, callback, allow_signup="false"
        )
        response.headers.update(page_headers())
        return response

    async def _finish(self, request: Request) -> Response:
        """Ends the login, and leads back to the page."""
        client = await self.users.client()
        path = request.session.get("path", "/")
        try:
            answer = await client.authorize_access_token(request)
            token = answer["access_token"]
            login = await self.users.login(token)
        except (OAuthError, LoginNeeded, KeyError):
            raise HTTPException(
                403, "this login has expired or was not begun here; log in again"
            ) from None
        except httpx2.HTTPError as error:
            # The text of these errors may contain the code.
            logger.warning("a login failed: %s", type(error).__name__)
            raise HTTPException(503, "GitHub can't be asked now; try again later") from None
        request.session.clear()
        request.session.update(
            login=login,
            token=self._fernet.encrypt(token.encode()).decode(),
            form_key=secrets.token_urlsafe(24),
        )
        return RedirectResponse(f"{self.public_url}{path}", 303, page_headers())

    async def _end(self, request: Request) -> Response:
        """Ends the session. Other sites can't send this: browsers keep the cookie from them."""
        request.session.clear()
        return RedirectResponse(f"{self.public_url}/", 303, page_headers())

    async def _log_in(self, request: Request, _: Exception) -> Response:
        """Leads to the login, and from there back to the page of the request. Logins that were
        begun in other tabs can go on."""
        for name in ("login", "token", "form_key"):
            request.session.pop(name, None)
        path = request.url.path.removesuffix("/commands").removesuffix("/events")
        address = f"{self.public_url}/login?{urlencode({'path': path})}"
        return RedirectResponse(address, 303, page_headers())


async def _show_outage(_: Request, __: Exception) -> Response:
    """Answer for what can't be used for now, such as the database or GitHub."""
    return JSONResponse({"detail": "this can't be shown now; try again later"}, 503)
