"""`resolver admin`: shows and changes what a server has stored, also while it is running."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import click

from resolver.config.server_variables import read_server_variables
from resolver.config.templates import render
from resolver.entrypoints.webhook.admin import end_request, start_deferred
from resolver.entrypoints.webhook.request_queue import (
    OPEN_STATES,
    QueuedRequest,
    RequestQueue,
    RequestState,
)
from resolver.events.stream import utc_now
from resolver.storage.database import existing_database
from resolver.storage.run_index import IndexedRun, RunIndex
from resolver.trace.plain import for_terminal

STATES = ("open", "waiting", "deferred", "working", "done")

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def command() -> None:
    """Show and change what a server has stored, also while it is running.

    The commands use the server's database (RESOLVER_DATABASE_URL) and data folder
    (RESOLVER_DATA_DIR), so run them with its environment, in its folder.
    """


@command.command("runs", short_help="List the requests in the queue, the newest first.")
@click.option("--state", type=click.Choice(STATES), help="Only requests in this state.")
@click.option("--repository", help="Only this repository, as OWNER/NAME.")
@click.option(
    "--limit",
    default=50,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Maximum number of requests.",
)
@as_json_option
@click.pass_obj
def runs_command(
    environment: Mapping[str, str],
    /,
    state: str | None,
    repository: str | None,
    limit: int,
    as_json: bool,
) -> int:
    """List the requests in the queue, the newest first, and how their runs ended."""
    states = OPEN_STATES if state == "open" else (RequestState(state),) if state else ()
    with _open_queue(environment) as queue:
        requests = queue.recent(states, repository, limit)
    with existing_database(read_server_variables(environment).database_url) as database:
        index = RunIndex(database)
        runs = {request.run: index.get(request.run) for request in requests if request.run}
    rows = [_row(request) | _outcome(runs.get(request.run or "")) for request in requests]
    _show("run/admin_runs.txt.j2", as_json, rows)
    return 0


@command.command("requeue")
@click.argument("id", metavar="RUN|REQUEST")
@as_json_option
@click.pass_obj
def requeue_command(environment: Mapping[str, str], /, id: str, as_json: bool) -> int:
    """Let a deferred request start now.

    It was deferred because of an outage.
    """
    with _open_queue(environment) as queue:
        _show_changed(start_deferred(queue, id), "waiting", as_json)
    return 0


@command.command("cancel", short_help="Cancel a waiting request, or stop an active run.")
@click.argument("id", metavar="RUN|REQUEST")
@as_json_option
@click.pass_obj
def cancel_command(environment: Mapping[str, str], /, id: str, as_json: bool) -> int:
    """Cancel a waiting request, or stop an active run, whichever process executes it.

    The conversation of a waiting request gets no comment. A run is stopped as by the comment
    `@agent stop`, and can be continued.
    """
    with _open_queue(environment) as queue:
        found = end_request(queue, id, utc_now())
    state = "stopping" if found.state == RequestState.WORKING else "done"
    _show_changed(found, state, as_json)
    return 0


def _outcome(run: IndexedRun | None) -> dict[str, str]:
    """Return how a run ended or how far it is, as the list of runs shows it."""
    names = ("outcome", "verdict", "pull_request", "reason")
    if run is None:
        return dict.fromkeys(names, "")
    return dict(zip(names, (run.state, run.verdict, run.pull_request, run.reason), strict=True))


@contextmanager
def _open_queue(environment: Mapping[str, str]) -> Iterator[RequestQueue]:
    """Open the server's database. Raises UsageError if it does not exist."""
    with (
        existing_database(read_server_variables(environment).database_url) as database,
        closing(RequestQueue(database)) as queue,
    ):
        yield queue


def _show(template: str, as_json: bool, content: Any) -> None:
    if as_json:
        click.echo(json.dumps(content, indent=2))
    else:
        click.echo(for_terminal(render(template, content=content)), nl=False)


def _show_changed(request: QueuedRequest, state: str, as_json: bool) -> None:
    content = _row(request) | {"state": state, "before": request.state.value}
    _show("run/admin_changed.txt.j2", as_json, content)


def _row(request: QueuedRequest) -> dict[str, Any]:
    """Return what is shown of a request, with times as ISO 8601."""
    until, finished = request.not_before, request.finished_at
    return {
        "id": request.id,
        "run": request.run or "",
        "kind": request.kind.value,
        "state": request.state.value,
        "repository": request.trigger.repository.lower(),
        "number": request.trigger.number,
        "attempts": request.attempts,
        "outages": request.outages,
        "not_before": until.isoformat(timespec="seconds") if until else None,
        "finished_at": finished.isoformat(timespec="seconds") if finished else None,
    }
