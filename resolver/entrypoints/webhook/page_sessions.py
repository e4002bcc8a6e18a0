"""Cookies of people who have logged in to the server's pages.

A session is kept in the person's own cookie, encrypted and signed, so that every server of a fleet
reads it and nothing is stored. The keys are derived from the webhook's secret.
"""

import base64
import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from typing import TypeVar

from cryptography.fernet import Fernet, InvalidToken
from pydantic import Field, ValidationError

from resolver.models.base import FrozenModel

SESSION_DURATION = timedelta(hours=8)
"""How long a person stays logged in: as long as GitHub's own tokens of users are valid."""

LOGIN_DURATION = timedelta(minutes=10)
"""Time that a person has to log in at GitHub."""

MAX_COOKIE_LENGTH = 4096

_Sealed = TypeVar("_Sealed", bound=FrozenModel)


class PageSession(FrozenModel):
    """A person who has logged in. token: of GitHub, with which it is asked what they can read.
    csrf: random key of the forms on their pages."""

    login: str
    token: str = Field(repr=False)
    csrf: str = Field(repr=False)


class PendingLogin(FrozenModel):
    """A login that was sent to GitHub. state: comes back from there. verifier: proves to GitHub
    that the same browser has begun it (PKCE). path: where the person wanted to go."""

    state: str
    verifier: str = Field(repr=False)
    path: str


class SealedCookies:
    """Encrypts values for cookies. secret: that of the webhook."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def seal(self, value: FrozenModel, now: datetime) -> str:
        """Return the value as the text of a cookie."""
        text = value.model_dump_json().encode()
        return self._fernet(type(value)).encrypt_at_time(text, int(now.timestamp())).decode()

    def open(
        self, kind: type[_Sealed], text: str, now: datetime, duration: timedelta
    ) -> _Sealed | None:
        """Return the value; None if the text was not made by `seal` for this kind of value, or is
        older than `duration`."""
        if not text or len(text) > MAX_COOKIE_LENGTH:
            return None
        seconds = int(duration.total_seconds())
        try:
            opened = self._fernet(kind).decrypt_at_time(
                text.encode(errors="replace"), seconds, int(now.timestamp())
            )
            return kind.model_validate_json(opened)
        except (InvalidToken, ValidationError):
            return None

    def _fernet(self, kind: type[FrozenModel]) -> Fernet:
        # Each kind has a key of its own, so that one cookie is never accepted as another.
        purpose = f"resolver: cookies of pages: {kind.__name__}".encode()
        return Fernet(base64.urlsafe_b64encode(hmac.digest(self._secret, purpose, hashlib.sha256)))


def new_session(login: str, token: str) -> PageSession:
    """Return a new session."""
    return PageSession(login=login, token=token, csrf=secrets.token_urlsafe(24))


def new_form_id() -> str:
    """Return the id of a form, with which a request that is sent twice is stored once."""
    return secrets.token_urlsafe(18)


def form_token(session: PageSession, run: str) -> str:
    """Return the token of the forms on the page of a run, which no other site can know."""
    return hmac.new(session.csrf.encode(), run.encode(), hashlib.sha256).hexdigest()


def is_form_token(session: PageSession, run: str, token: str) -> bool:
    """Return True if the token is that of the session and the run."""
    return hmac.compare_digest(form_token(session, run).encode(), token.encode(errors="replace"))
