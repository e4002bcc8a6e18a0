"""`resolver admin`: shows and changes what a server has stored, also while it is running."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from resolver.config.settings import Settings, load_settings
from resolver.config.templates import render
from resolver.entrypoints.webhook.admin import ListedRequest, ServerAdministration
from resolver.entrypoints.webhook.costs import SpendingLedger, SpendingTotal, is_cost_recorded
from resolver.entrypoints.webhook.database import parse_database_url
from resolver.entrypoints.webhook.stored_app import with_stored_app
from resolver.errors import UsageError
from resolver.events.stream import utc_now
from resolver.runs.common import open_host
from resolver.trace.plain import for_terminal

STATES = ("open", "waiting", "deferred", "working", "done")

_AGE = re.compile(r"([1-9][0-9]{0,4})([dw])")
_DAYS = {"d": 1, "w": 7}

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def command() -> None:
    """Show and change what a server has stored, also while it is running.

    The commands use the server's database (RESOLVER_DATABASE_URL) and data folder
    (RESOLVER_DATA_DIR), so run them with its environment, in its folder.
    """


@command.command("runs")
@click.option("--state", type=click.Choice(STATES), help="Only requests in this state.")
@click.option("--repository", default="", help="Only this repository, as OWNER/NAME.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000))
@as_json_option
@click.pass_obj
def runs_command(
    environment: Mapping[str, str],
    /,
    state: str | None,
    repository: str,
    limit: int,
    as_json: bool,
) -> int:
    """List the requests in the queue and their runs, the newest first."""
    settings = load_settings({}, environment)
    with _administration(settings) as admin:
        requests = admin.requests(state or "", repository, limit)
    _show("run/admin_runs.txt.j2", as_json, [_row(asdict(each)) for each in requests])
    return 0


@command.command("requeue")
@click.argument("id", metavar="RUN|REQUEST")
@as_json_option
@click.pass_obj
def requeue_command(environment: Mapping[str, str], /, id: str, as_json: bool) -> int:
    """Let a deferred request start now.

    It was deferred because of an outage, or because the server crashed during its run. Its crashes
    and outages are forgotten.
    """
    with _administration(load_settings({}, environment)) as admin:
        _show_changed(admin.requeue(id), "waiting", as_json)
    return 0


@command.command("cancel")
@click.argument("id", metavar="RUN|REQUEST")
@as_json_option
@click.pass_obj
def cancel_command(environment: Mapping[str, str], /, id: str, as_json: bool) -> int:
    """End a request that waits. Its conversation is not told.

    An active run is stopped by the comment `@agent stop`.
    """
    with _administration(load_settings({}, environment)) as admin:
        _show_changed(admin.cancel(id, utc_now()), "done", as_json)
    return 0


@command.command("executors")
@as_json_option
@click.pass_obj
def executors_command(environment: Mapping[str, str], /, as_json: bool) -> int:
    """List the processes that execute requests."""
    with _administration(load_settings({}, environment)) as admin:
        found = admin.executors()
    _show("run/admin_executors.txt.j2", as_json, [_row(asdict(each)) for each in found])
    return 0


@command.command("drain")
@click.argument("executor", required=False, default="")
@as_json_option
@click.pass_obj
def drain_command(environment: Mapping[str, str], /, executor: str, as_json: bool) -> int:
    """Let an executor start nothing more; without its id, all that run now.

    Active runs continue to their end. A process that starts later is not draining.
    """
    _set_draining(environment, executor, True, as_json)
    return 0


@command.command("resume")
@click.argument("executor", required=False, default="")
@as_json_option
@click.pass_obj
def resume_executor_command(environment: Mapping[str, str], /, executor: str, as_json: bool) -> int:
    """Let a draining executor start requests again; without its id, all."""
    _set_draining(environment, executor, False, as_json)
    return 0


@command.command("purge")
@click.option("--older-than", required=True, metavar="AGE", help="For example 30d or 8w.")
@click.option("--dry-run", is_flag=True, help="Count, and remove nothing.")
@as_json_option
@click.pass_obj
def purge_command(
    environment: Mapping[str, str], /, older_than: str, dry_run: bool, as_json: bool
) -> int:
    """Remove finished requests and the logs and files of old runs.

    Costs, outcomes and everything of a request that is not done are kept. Requests that an older
    release has finished count from the first purge on.
    """
    matched = _AGE.fullmatch(older_than)
    if not matched:
        raise UsageError(f"{older_than!r} is not an age", "write it like 30d or 8w")
    age = timedelta(days=int(matched[1]) * _DAYS[matched[2]])
    settings = load_settings({}, environment)
    with _administration(settings) as admin:
        purged = admin.purge(Path(settings.server.data_dir), age, utc_now(), dry_run)
    _show("run/admin_purge.txt.j2", as_json, asdict(purged) | {"dry_run": dry_run})
    return 0


@command.command("installations")
@as_json_option
@click.pass_obj
def installations_command(environment: Mapping[str, str], /, as_json: bool) -> int:
    """List the accounts on which the GitHub App is installed."""
    environment = with_stored_app(environment)
    settings = load_settings({}, environment)
    found = open_host(environment).tokens.app(settings).installations()
    rows = [
        {
            "id": each.id,
            "account": each.account.login,
            "suspended": each.suspended_at is not None,
            "permissions": each.permissions,
        }
        for each in found
    ]
    _show("run/admin_installations.txt.j2", as_json, rows)
    return 0


@command.command("quotas")
@click.option("--repository", default="", help="Only this repository, as OWNER/NAME.")
@as_json_option
@click.pass_obj
def quotas_command(environment: Mapping[str, str], /, repository: str, as_json: bool) -> int:
    """Show how much of the server's cost quotas is used in this month and today (UTC).

    `resolver costs` shows the other months.
    """
    settings = load_settings({}, environment)
    url = parse_database_url(settings.server.database_url, to_write=False)
    _require_database(settings)
    ledger, now = SpendingLedger(url), utc_now()
    try:
        totals = ledger.totals(now, repository, f"{now:%Y-%m}")
        today = ledger.cost_of_day(now)
    finally:
        ledger.close()
    limits = settings.cost_quotas
    usage = {
        "month": [_quota(total.repository, total, limits.repository_month) for total in totals],
        "today": {"cost": today, "limit": limits.server_day},
    }
    _show("run/admin_quotas.txt.j2", as_json, usage)
    return 0


@command.command("migrate")
@click.pass_obj
def migrate_command(environment: Mapping[str, str], /) -> int:
    """Create the tables of the database, or migrate those of an earlier release.

    The server does this at its start. Make a backup before: a migration can't be undone.
    """
    settings = load_settings({}, environment)
    admin = ServerAdministration(parse_database_url(settings.server.database_url))
    try:
        text = render("run/admin_migrate.txt.j2", revision=admin.revision())
    finally:
        admin.close()
    click.echo(for_terminal(text), nl=False)
    return 0


def _set_draining(
    environment: Mapping[str, str], executor: str, draining: bool, as_json: bool
) -> None:
    with _administration(load_settings({}, environment)) as admin:
        count = admin.set_draining(executor, draining)
    _show("run/admin_draining.txt.j2", as_json, {"executors": count, "draining": draining})


@contextmanager
def _administration(settings: Settings) -> Iterator[ServerAdministration]:
    """Open the server's database. Raises UsageError if it does not exist."""
    _require_database(settings)
    admin = ServerAdministration(parse_database_url(settings.server.database_url, to_write=False))
    try:
        yield admin
    finally:
        admin.close()


def _require_database(settings: Settings) -> None:
    url = parse_database_url(settings.server.database_url, to_write=False)
    if not is_cost_recorded(url):
        raise UsageError(
            f"there is no database {url.database}",
            "set RESOLVER_DATABASE_URL to the server's, or run this in the server's folder",
        )


def _show(template: str, as_json: bool, content: Any) -> None:
    if as_json:
        click.echo(json.dumps(content, indent=2))
    else:
        click.echo(for_terminal(render(template, content=content)), nl=False)


def _show_changed(request: ListedRequest, state: str, as_json: bool) -> None:
    content = _row(asdict(request)) | {"state": state, "before": request.state}
    _show("run/admin_changed.txt.j2", as_json, content)


def _row(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with times as ISO 8601."""
    return {
        name: value.isoformat(timespec="seconds") if isinstance(value, datetime) else value
        for name, value in values.items()
    }


def _quota(repository: str, total: SpendingTotal, limit: float | None) -> dict[str, Any]:
    return {
        "repository": repository,
        "runs": total.runs,
        "cost": total.cost,
        "reserved": total.reserved,
        "unpriced_replies": total.unpriced,
        "limit": limit,
        "left": None if limit is None else max(0.0, limit - total.cost - total.reserved),
    }
