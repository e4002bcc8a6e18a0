"""Combines the pages of the server: runs, lists, costs and the login."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fastapi import FastAPI

from resolver.config.server_variables import read_server_variables
from resolver.config.settings import Settings
from resolver.entrypoints.webhook.login import GitHubUsers, PageLogin
from resolver.entrypoints.webhook.page_links import operator_url
from resolver.entrypoints.webhook.page_responses import add_error_pages
from resolver.entrypoints.webhook.request_queue import QueuedRequest
from resolver.entrypoints.webhook.run_lists import RunLists, add_run_lists
from resolver.entrypoints.webhook.run_pages import (
    Enqueue,
    RunPages,
    add_run_commands,
    add_run_pages,
)
from resolver.errors import ForgeError
from resolver.runs.wiring.sandbox import RunHost
from resolver.storage.run_index import RunIndex
from resolver.storage.run_store import RunStore

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
    store: RunStore
    index: RunIndex
    enqueue: Enqueue
    users: GitHubUsers | None = None
    list_waiting: Callable[[], Sequence[QueuedRequest]] = tuple

    def add_to(self, app: FastAPI) -> None:
        """Add all pages to `app`."""
        login = None
        if self.users is not None:
            login = PageLogin(self.users, self.public_url, self.secret)
            login.add_to(app)
        pages = RunPages(self.store, self.secret, login)
        add_run_pages(app, pages)
        lists = RunLists(self.index, self.secret, self.public_url, list_waiting=self.list_waiting)
        add_run_lists(app, lists, login)
        if login is None:
            add_error_pages(app)
        else:
            add_run_commands(app, pages, login, self.enqueue)
            add_error_pages(app, self.public_url, login.login_url("/"))

    def announce(self) -> None:
        """Write to the log where the operator finds the list of runs."""
        logger.info("runs are listed on %s", operator_url(self.public_url, self.secret))


def open_users(settings: Settings, machine: RunHost) -> GitHubUsers | None:
    """Return the login with the App's OAuth; None if the settings have no secret for it."""
    secret = read_server_variables(machine.environment).app_client_secret
    if secret is None or not secret.get_secret_value() or not settings.has_app:
        return None
    return GitHubUsers(
        settings.github_server_url,
        settings.github_api_url,
        partial(_client_id, settings, machine),
        secret.get_secret_value(),
    )


def _client_id(settings: Settings, machine: RunHost) -> str:
    client_id = machine.tokens.app(settings).page().client_id
    if not client_id:
        raise ForgeError(
            "GitHub does not return the App's client id", "update GitHub", "forge_down"
        )
    return client_id
