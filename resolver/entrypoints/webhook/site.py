"""Combines the pages of the server: runs, lists, costs and the login."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastapi import FastAPI

from resolver.config.settings import Settings
from resolver.entrypoints.webhook.error_pages import add_error_pages
from resolver.entrypoints.webhook.github_oauth import GitHubOAuth, GitHubUsers
from resolver.entrypoints.webhook.login_pages import PageLogin, add_login_pages
from resolver.entrypoints.webhook.page_links import operator_url
from resolver.entrypoints.webhook.page_readers import ReaderAccess
from resolver.entrypoints.webhook.page_sessions import SealedCookies
from resolver.entrypoints.webhook.pages import Pages, add_pages
from resolver.entrypoints.webhook.request_queue import QueuedRequest
from resolver.entrypoints.webhook.run_commands import Enqueue, add_run_commands
from resolver.entrypoints.webhook.run_list_pages import RunLists, add_run_lists
from resolver.errors import ForgeError
from resolver.github.client.access import FixedToken, GitHubAccess
from resolver.runs.wiring.sandbox import RunHost, access_of
from resolver.storage.run_folders import RunFolders
from resolver.storage.run_index import RunIndex

logger = logging.getLogger("resolver.entrypoints.webhook")


@dataclass(frozen=True)
class Site:
    """The parts that the pages are made of.

    public_url: address of the server as people reach it. secret: the webhook's. users: answers
    questions about people who log in; None without a login. list_waiting: returns the waiting
        requests.
    """

    public_url: str
    secret: str
    folders: RunFolders
    index: RunIndex
    enqueue: Enqueue
    users: GitHubUsers | None = None
    list_waiting: Callable[[], Sequence[QueuedRequest]] = tuple

    def add_to(self, app: FastAPI) -> None:
        """Add all pages to `app`."""
        login = None
        if self.users is not None:
            cookies = SealedCookies(self.secret)
            login = PageLogin(self.users, ReaderAccess(self.users), cookies, self.public_url)
        pages = Pages(self.folders, self.secret, login)
        add_pages(app, pages)
        lists = RunLists(self.index, self.secret, self.public_url, list_waiting=self.list_waiting)
        add_run_lists(app, lists, login)
        if login is not None:
            add_login_pages(app, login)
            add_run_commands(app, pages, login, self.enqueue)
        add_error_pages(app, login)

    def announce(self) -> None:
        """Write to the log where the operator finds the list of runs."""
        logger.info("runs are listed on %s", operator_url(self.public_url, self.secret))


def open_users(settings: Settings, machine: RunHost) -> GitHubUsers | None:
    """Return the login with the App's OAuth; None if the settings have no secret for it."""
    secret = settings.server.client_secret
    if secret is None or not secret.get_secret_value() or not settings.has_app:
        return None

    def access(token: str) -> GitHubAccess:
        return access_of(settings, FixedToken(token), True).with_short_timeouts()

    client_id = _remembered(lambda: _client_id(settings, machine))
    return GitHubOAuth(settings.github_server_url, client_id, secret.get_secret_value(), access)


def _client_id(settings: Settings, machine: RunHost) -> str:
    client_id = machine.tokens.app(settings).page().client_id
    if not client_id:
        raise ForgeError(
            "GitHub does not return the App's client id", "update GitHub", "forge_down"
        )
    return client_id


def _remembered(ask: Callable[[], str]) -> Callable[[], str]:
    """Return a function that asks until there is an answer, and then returns it again."""
    lock = threading.Lock()
    answers: list[str] = []

    def answer() -> str:
        with lock:
            if not answers:
                answers.append(ask())
            return answers[0]

    return answer
