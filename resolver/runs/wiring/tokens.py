"""Provides the tokens for GitHub that the settings describe: a given one, or those of a GitHub
App."""

import threading
from datetime import datetime

from resolver.config.retries import RetryPolicy
from resolver.config.settings import Settings
from resolver.errors import UsageError
from resolver.events.stream import Clock, utc_now
from resolver.git.git import Credential
from resolver.github.client.access import GitHubAccess, OneToken, TokenSource, check_repository
from resolver.github.client.app import AppAccess, AppKey, InstallationTokens
from resolver.security.redaction import IssuedTokens


class ForgeTokens:
    """Issues tokens, one source for each repository: an installation token is limited to its
    repository and is never shown to another one.

    issued_tokens: learns each token before it is used, so that redactors know it.
    """

    def __init__(self, issued_tokens: IssuedTokens | None = None, now: Clock = utc_now) -> None:
        self.issued_tokens = issued_tokens or IssuedTokens()
        self._now = now
        self._lock = threading.Lock()
        self._sources: dict[str, InstallationTokens] = {}

    def source(self, settings: Settings, repository: str) -> TokenSource | None:
        """Return the source of tokens for OWNER/NAME; None if the settings have no token.

        An App takes precedence over a token, because an Action always has a token. Raises
        UsageError if only one of the App's id and key is set.
        """
        if not settings.has_app:
            token = settings.github_token
            return OneToken(token.get_secret_value()) if token else None
        app = self.app(settings)
        check_repository(repository)
        with self._lock:
            tokens = self._sources.get(repository.casefold())
            if tokens is None:
                tokens = InstallationTokens(app, repository, self._remember_token, self._now)
                self._sources[repository.casefold()] = tokens
            return tokens

    def credential(self, settings: Settings, repository: str) -> Credential | None:
        """Return the current credential for git and OWNER/NAME; None without a token.

        Do not store it: its token may expire. Raises ForgeError.
        """
        source = self.source(settings, repository)
        return Credential(settings.github_server_url, source.token()) if source else None

    def app(self, settings: Settings) -> AppAccess:
        """Return access as the App itself. Raises UsageError unless the settings have both its id
        and its key."""
        if settings.app_id is None or settings.app_private_key is None:
            missing = "app_id" if settings.app_id is None else "app_private_key"
            raise UsageError(
                f"the GitHub App is only partly configured: {missing} is missing",
                f"set RESOLVER_{missing.upper()}, or leave out both and set GITHUB_TOKEN",
            )
        key = settings.app_private_key.get_secret_value()
        return AppAccess(
            access_of(
                settings,
                AppKey(settings.app_id, key, self._remember_token, self._now),
                harmless=True,
            )
        )

    def _remember_token(self, secret: str, expires_at: datetime) -> None:
        self.issued_tokens.add(secret, expires_at, self._now())


def access_of(settings: Settings, source: TokenSource, harmless: bool = False) -> GitHubAccess:
    """Return the access to the GitHub that the settings name."""
    return GitHubAccess(
        token=source,
        api_url=settings.github_api_url,
        server_url=settings.github_server_url,
        graphql_url=settings.github_graphql_url,
        bot_login=settings.bot_login,
        harmless=harmless,
        pause_between_writes=settings.comment_interval_seconds.writes,
        retries=RetryPolicy(settings.retry_seconds.github_writes),
    )
