"""Adds the pages of the server to its web application: runs, lists, costs and the login."""

from collections.abc import Callable, Sequence

from fastapi import FastAPI

from resolver.entrypoints.webhook.login import GitHubUsers, PageLogin
from resolver.entrypoints.webhook.page_responses import add_error_pages
from resolver.entrypoints.webhook.request_queue import QueuedRequest
from resolver.entrypoints.webhook.run_lists import RunLists, add_run_lists
from resolver.entrypoints.webhook.run_pages import (
    Enqueue,
    RunPages,
    add_run_commands,
    add_run_pages,
)
from resolver.storage.run_index import RunIndex
from resolver.storage.run_store import RunStore


def add_site(
    app: FastAPI,
    public_url: str,
    secret: str,
    store: RunStore,
    index: RunIndex,
    enqueue: Enqueue,
    users: GitHubUsers | None,
    list_waiting: Callable[[], Sequence[QueuedRequest]] = tuple,
) -> None:
    """Add all pages to `app`.

    public_url: address of the server as people reach it. secret: the webhook's. users: answers
    questions about people who log in; None without a login. list_waiting: returns the waiting
        requests.
    """
    login = PageLogin(users, public_url, secret) if users is not None else None
    pages = RunPages(store, secret, login)
    add_run_pages(app, pages)
    add_run_lists(app, RunLists(index, secret, public_url, list_waiting=list_waiting), login)
    if login is None:
        add_error_pages(app)
    else:
        login.add_to(app)
        add_run_commands(app, pages, login, enqueue)
        add_error_pages(app, public_url, login.login_url("/"))
