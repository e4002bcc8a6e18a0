"""The GitHub App as whom Resolver may work: its key, its page, and the tokens that it mints.

A token is for one repository and for what a run needs there, and is good for an hour.
Source: https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import jwt
from pydantic import BaseModel, ConfigDict, Field

from resolver.errors import ForgeError, UsageError
from resolver.github.client.access import GitHubAccess
from resolver.github.client.hook_deliveries import HookDeliveries
from resolver.github.client.tokens import redact_token

logger = logging.getLogger("resolver.github")

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
"""What a run uses of a repository, and of its organization's teams; docs/action.md: for what."""

EVENTS = (
    "issue_comment",
    "issues",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "check_suite",
    "status",
    "workflow_run",
)
"""What an App has to be told of."""

RENEWED_BEFORE = timedelta(minutes=15)
"""How long before its end a token is no longer given: a push may take that long."""

_LAST = timedelta(minutes=2)
"""How long before its end a token is still given where no newer one can be had."""

_TRIED_AGAIN = timedelta(minutes=1)
"""After a token could not be made while the older one still does."""

_SIGNED_FOR = timedelta(minutes=9)
"""GitHub takes no more than 10."""

_LEVELS = ("none", "read", "write", "admin")

Note = Callable[[str, datetime], None]
"""Takes a new secret and when it ends; called before the secret is used."""


class AppPage(BaseModel):
    """What `GET /app` says."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: int
    slug: str
    permissions: dict[str, str] = {}
    events: tuple[str, ...] = ()

    @property
    def login(self) -> str:
        """As whom the App writes."""
        return f"{self.slug}[bot]"


class _Account(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    login: str = ""


class AppHook(BaseModel):
    """The App's webhook. secret: asterisks where it has one."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    url: str = ""
    content_type: str = "form"
    insecure_ssl: str | float = "0"
    secret: str | None = None


class Installation(BaseModel):
    """Where the App is installed, as GitHub says it. permissions: that its owner has granted."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: int
    account: _Account
    permissions: dict[str, str] = {}
    events: tuple[str, ...] = ()
    suspended_at: datetime | None = None


class _Repository(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    full_name: str


class _Minted(BaseModel):
    # the input is the token, which no redactor knows yet
    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    token: str = Field(repr=False)
    expires_at: datetime
    repositories: tuple[_Repository, ...] = ()


class AppKey:
    """Signs as the App itself; a `TokenSource` for the App's own questions alone.

    app: id or client id. key: PEM. Raises UsageError when it is no private key.
    """

    def __init__(self, app: str, key: str, note: Note, now: Callable[[], datetime]) -> None:
        try:
            jwt.encode({}, key, algorithm="RS256")
        except (ValueError, TypeError, AttributeError, jwt.InvalidKeyError):  # public keys too
            raise UsageError(
                "the private key of the GitHub App can't be read",
                "give the PEM file that GitHub made for the App, or its text, as app_private_key",
            ) from None
        self._app, self._key = app, key
        self._note, self._now = note, now
        self._lock = threading.Lock()
        self._signed, self._ends = "", now()

    def token(self) -> str:
        with self._lock:
            now = self._now()
            if now > self._ends - _SIGNED_FOR / 3:
                # a minute back, for a clock that is ahead of GitHub's
                claims = {"iat": now - timedelta(minutes=1), "exp": now + _SIGNED_FOR}
                signed = jwt.encode({**claims, "iss": self._app}, self._key, algorithm="RS256")
                self._note(signed, claims["exp"])
                self._signed, self._ends = signed, claims["exp"]
            return self._signed

    def login(self) -> str:
        return ""

    def hidden_in(self, text: str) -> str:
        return redact_token(text, self._signed)


class AppAccess:
    """The App's own questions to GitHub. access: its token is an `AppKey`'s."""

    def __init__(self, access: GitHubAccess) -> None:
        self._access = access
        self._requester = access.client().requester

    def page(self) -> AppPage:
        """Raises ForgeError."""
        with self._access.asking("read the page of the GitHub App", "the App's own key"):
            _, answer = self._requester.requestJsonAndCheck("GET", "/app")
            return AppPage.model_validate(answer)

    def webhook(self) -> AppHook:
        """Raises ForgeError."""
        with self._access.asking("read the webhook of the GitHub App", "the App's own key"):
            _, answer = self._requester.requestJsonAndCheck("GET", "/app/hook/config")
            return AppHook.model_validate(answer)

    def deliveries(self) -> HookDeliveries:
        """Those of the App's webhook."""
        return HookDeliveries(self._access, "/app/hook")

    def installation(self, repository: str) -> Installation:
        """The one that reaches the repository. Raises ForgeError."""
        try:
            with self._access.asking(f"find the GitHub App's installation on {repository}"):
                path = f"/repos/{repository}/installation"
                _, answer = self._requester.requestJsonAndCheck("GET", path)
                found = Installation.model_validate(answer)
        except ForgeError as error:
            if "answered 404" in error.what:
                raise ForgeError(
                    f"the GitHub App is not installed on {repository}",
                    "install it there: the App's page, Install App",
                ) from None
            raise
        owner = repository.partition("/")[0]
        if found.account.login.casefold() != owner.casefold():
            raise ForgeError(
                f"the installation for {repository} belongs to {found.account.login!r}",
                f"has {repository} moved? Use its new name",
            )
        if found.suspended_at is not None:
            raise ForgeError(
                f"the GitHub App's installation on {owner} is suspended",
                "its owner lifts that under Settings, GitHub Apps",
            )
        return found

    def mint(self, repository: str, wanted: Mapping[str, str]) -> tuple[str, datetime]:
        """A token for the repository alone with what was granted of `wanted`, and its end.

        Raises ForgeError.
        """
        found = self.installation(repository)
        asked = {
            name: min(level, granted, key=_LEVELS.index)
            for name, level in wanted.items()
            if (granted := found.permissions.get(name, "none")) != "none"
        }
        name = repository.partition("/")[2]
        with self._access.asking(f"get a token of the GitHub App for {repository}"):
            path = f"/app/installations/{found.id}/access_tokens"
            body = {"repositories": [name], "permissions": asked}
            _, answer = self._requester.requestJsonAndCheck("POST", path, input=body)
            made = _Minted.model_validate(answer)
        reached = {each.full_name.casefold() for each in made.repositories}
        if reached - {repository.casefold()}:
            raise ForgeError(
                f"GitHub gave a token for other repositories than {repository}",
                f"has {repository} moved? Use its new name",
            )
        return made.token, made.expires_at


@dataclass
class InstallationTokens:
    """The App's tokens for one repository, each renewed before it ends; a `TokenSource`.

    While a new one is made, and where that fails, the older one is given as long as it is good:
    then nobody waits for GitHub but the thread that asks for it.
    note: told of each before it is used.
    """

    app: AppAccess
    repository: str
    note: Note
    now: Callable[[], datetime]
    wanted: Mapping[str, str] = field(default_factory=lambda: PERMISSIONS)

    def __post_init__(self) -> None:
        self._minting, self._asking = threading.Lock(), threading.Lock()
        self._given: tuple[tuple[str, datetime], ...] = ()
        self._not_before: datetime | None = None
        self._login = ""

    def token(self) -> str:
        older = self._good_for(_LAST)
        if older and not self._is_due():
            return older
        if not self._minting.acquire(blocking=not older):
            return older  # another thread is at it
        try:
            return self._renewed() if self._is_due() else self._given[-1][0]
        finally:
            self._minting.release()

    def _renewed(self) -> str:
        older = self._good_for(_LAST)
        try:
            made, ends = self.app.mint(self.repository, self.wanted)
        except ForgeError as error:
            if not older:
                raise
            self._not_before = self.now() + _TRIED_AGAIN
            logger.warning("%s; the older token is used meanwhile", error.what)
            return older
        self.note(made, ends)
        self._given = (*self._given, (made, ends))
        return made

    def _is_due(self) -> bool:
        waits = self._not_before is not None and self.now() < self._not_before
        return not self._good_for(_LAST if waits else RENEWED_BEFORE)

    def _good_for(self, time: timedelta) -> str:
        """The newest token, "" where it ends within that time."""
        made, ends = self._given[-1] if self._given else ("", self.now())
        return made if self.now() <= ends - time else ""

    def login(self) -> str:
        with self._asking:
            self._login = self._login or self.app.page().login
            return self._login

    def hidden_in(self, text: str) -> str:
        return redact_token(text, *(made for made, _ in self._given))
