"""Authentication as a GitHub App: its private key, its settings, and its installation tokens.

An installation token is limited to one repository and to the permissions that a run needs there. It
is valid for one hour. PyGithub's own installation tokens are valid for all repositories of the
installation, and are known to nobody before they are used. Source:
https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import jwt
from github.GithubException import UnknownObjectException
from pydantic import AliasPath, Field

from resolver.errors import ForgeError, UsageError
from resolver.github.client.access import GitHubAccess, redact_token
from resolver.github.client.answers import ApiAnswer
from resolver.github.client.failures import RateLimited, ServerFailure
from resolver.github.client.resources import read_pages

PERMISSIONS: Mapping[str, str] = {
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "metadata": "read",
    "actions": "read",
    "checks": "read",
    "statuses": "read",
    "members": "read",
}
"""The permissions that a run uses on a repository and on its organization's teams.

docs/how-to/action.md says what each is used for.
"""

RENEWAL_MARGIN = timedelta(minutes=15)
"""Time before its expiry at which a token is replaced. A push can take this long."""

_JWT_VALIDITY = timedelta(minutes=9)
"""Validity of a signed JSON web token. GitHub accepts at most 10 minutes."""

_PERMISSION_LEVELS = ("none", "read", "write", "admin")

OnTokenIssued = Callable[[str, datetime], None]
"""Callback that receives a new secret and its expiry before the secret is used.

It is how the secret becomes known to redaction.
"""


class AppPage(ApiAnswer):
    """The answer to `GET /app`."""

    id: int
    slug: str
    client_id: str = ""
    permissions: dict[str, str] = Field(default={})
    events: tuple[str, ...] = ()

    @property
    def login(self) -> str:
        """The login that the App writes as."""
        return f"{self.slug}[bot]"


class Installation(ApiAnswer):
    """An installation of the App. `permissions` are those that its owner granted."""

    id: int
    owner: str = Field(default="", validation_alias=AliasPath("account", "login"))
    permissions: dict[str, str] = Field(default={})
    suspended_at: datetime | None = None


class HookDelivery(ApiAnswer):
    """One attempt to deliver an event to the App's webhook.

    Attributes:
        guid: The value of the header `X-GitHub-Delivery`, the same for every attempt.
        status_code: Status of the answer; 0 when there was none.
    """

    id: int
    guid: str
    delivered_at: datetime
    event: str
    status_code: int = 0

    @property
    def is_received(self) -> bool:
        """Return True if the delivery was answered with success."""
        return 200 <= self.status_code < 300


@dataclass
class AppKey:
    """Signs requests as the App itself. A `TokenSource` for the App's own endpoints only.

    Raises UsageError if the key is not a private key.

    Attributes:
        app: The App's id or client id.
        key: The private key in PEM format.
        note: Called with each signed token before it is used.
        now: Returns the current time.
    """

    app: str
    key: str = field(repr=False)
    note: OnTokenIssued
    now: Callable[[], datetime]

    def __post_init__(self) -> None:
        self._signed: str | None = None
        try:
            jwt.encode({}, self.key, algorithm="RS256")
        except (ValueError, TypeError, AttributeError, jwt.InvalidKeyError):  # also for public keys
            raise UsageError(
                "the private key of the GitHub App can't be read",
                "give the PEM file that GitHub made for the App, or its text, as app_private_key",
            ) from None

    def token(self) -> str:
        """Return a new signed JSON web token."""
        # Issued a minute in the past, in case this machine's clock is ahead of GitHub's.
        now = self.now()
        claims = {"iat": now - timedelta(minutes=1), "exp": now + _JWT_VALIDITY, "iss": self.app}
        self._signed = signed = jwt.encode(claims, self.key, algorithm="RS256")
        self.note(signed, now + _JWT_VALIDITY)
        return signed

    def redact_tokens(self, text: str) -> str:
        return redact_token(text, self._signed)


class AppAccess:
    """The App's own requests to GitHub. The token source of `access` must be an `AppKey`."""

    def __init__(self, access: GitHubAccess) -> None:
        self._access = access
        self._requester = access.requester()

    def page(self) -> AppPage:
        """Return the App's settings. Raises ForgeError."""
        with self._access.wrap_errors("read the page of the GitHub App", "the App's own key"):
            return AppPage.model_validate(self._request("GET", "/app"))

    def delivery_attempts(self, since: datetime, max_pages: int) -> Iterator[HookDelivery]:
        """Yield the attempts to deliver to the App's webhook since a moment, newest first.

        At most `max_pages` pages of `PAGE_SIZE` attempts are read. GitHub keeps deliveries for
        three days and does not repeat failed ones by itself. Raises ForgeError. Source:
        https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries
        """
        with self._access.wrap_errors("list the webhook's deliveries", "the App's own key"):
            for page in read_pages(self._requester, "/app/hook/deliveries", {}, max_pages):
                for attempt in [HookDelivery.model_validate(row) for row in page]:
                    if attempt.delivered_at < since:
                        return
                    yield attempt

    def delivery_payload(self, attempt: HookDelivery) -> dict[str, Any]:
        """Return the payload of a delivery. Raises ForgeError."""
        with self._access.wrap_errors("read a delivery of the webhook", "the App's own key"):
            answer = self._request("GET", f"/app/hook/deliveries/{attempt.id}")
            return dict(answer["request"]["payload"])

    def installation(self, repository: str) -> Installation:
        """Return the installation that has access to the repository.

        Raises ForgeError if there is none, if it is suspended, or if it belongs to another account.
        """
        with self._access.wrap_errors(f"find the GitHub App's installation on {repository}"):
            try:
                answer = self._request("GET", f"/repos/{repository}/installation")
            except UnknownObjectException:
                raise ForgeError(
                    f"the GitHub App is not installed on {repository}",
                    "install it there: the App's page, Install App",
                ) from None
            installation = Installation.model_validate(answer)
        owner = repository.partition("/")[0]
        # The name may be that of a repository that was transferred to another owner, whose
        # installation was not set up for it.
        if installation.owner.casefold() != owner.casefold():
            raise ForgeError(
                f"the installation for {repository} belongs to {installation.owner!r}",
                f"has {repository} moved? Use its new name",
            )
        if installation.suspended_at is not None:
            raise ForgeError(
                f"the GitHub App's installation on {owner} is suspended",
                "its owner can lift that under Settings, GitHub Apps",
            )
        return installation

    def create_token(self, repository: str) -> tuple[str, datetime]:
        """Create a token for one repository, and return it with its expiry.

        The token has the permissions in `PERMISSIONS` as far as the installation has them. For the
        earlier name of a repository that its owner has renamed, it is a token of that repository.
        Raises ForgeError.
        """
        installation = self.installation(repository)
        # GitHub refuses the request if one of the permissions was not granted to the installation:
        # https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app
        permissions = {
            name: min(level, granted, key=_PERMISSION_LEVELS.index)
            for name, level in PERMISSIONS.items()
            if (granted := installation.permissions.get(name, "none")) != "none"
        }
        renamed_id = self._requester.repository_ids.get(f"/repos/{repository}/installation")
        chosen: dict[str, list[Any]] = (
            {"repository_ids": [renamed_id]}
            if renamed_id is not None
            else {"repositories": [repository.partition("/")[2]]}
        )
        with self._access.wrap_errors(f"get a token of the GitHub App for {repository}"):
            path = f"/app/installations/{installation.id}/access_tokens"
            answer = self._request("POST", path, {**chosen, "permissions": permissions})
            token, expires_at = str(answer["token"]), datetime.fromisoformat(answer["expires_at"])
            is_of_others = any(
                accessible["full_name"].casefold() != repository.casefold()
                and accessible["id"] != renamed_id
                for accessible in answer.get("repositories") or ()
            )
        if is_of_others:
            raise ForgeError(
                f"GitHub gave a token for other repositories than {repository}",
                f"has {repository} moved? Use its new name",
            )
        return token, expires_at

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return self._requester.requestJsonAndCheck(method, path, input=body)[1]


@dataclass
class InstallationTokens:
    """The App's tokens for one repository, each replaced before it expires. A `TokenSource`.

    Attributes:
        app: Creates the tokens.
        repository: OWNER/NAME.
        note: Called with each token before it is used.
        now: Returns the current time.
    """

    app: AppAccess
    repository: str
    note: OnTokenIssued
    now: Callable[[], datetime]

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._token: str | None = None
        self._expires_at = self.now()

    def token(self) -> str:
        """Return a valid token, creating a new one when it is time. Raises ForgeError."""
        with self._lock:
            if self._token is None or self.now() > self._expires_at - RENEWAL_MARGIN:
                self._token = self._renewed()
            return self._token

    def _renewed(self) -> str:
        """Return a new token, or the present one if GitHub can't make a new one and it is valid."""
        try:
            token, expires_at = self.app.create_token(self.repository)
        except (ServerFailure, RateLimited):
            if self._token is None or self.now() >= self._expires_at:
                raise
            return self._token
        self.note(token, expires_at)
        self._expires_at = expires_at
        return token

    def redact_tokens(self, text: str) -> str:
        return redact_token(text, self._token)
