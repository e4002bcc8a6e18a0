"""`resolver admin`: shows and changes what a server has stored, also while it is running."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from resolver.config.run_settings import CostQuotas, parse_age
from resolver.config.settings import Settings, load_settings
from resolver.config.templates import render
from resolver.entrypoints.webhook.admin import ListedRequest, ServerAdministration
from resolver.entrypoints.webhook.owner_settings import choose_settings, read_owner_settings
from resolver.entrypoints.webhook.page_links import operator_url
from resolver.entrypoints.webhook.purge import Retention, ServerPurge
from resolver.entrypoints.webhook.request_queue import RequestState
from resolver.entrypoints.webhook.stored_app import with_stored_app
from resolver.errors import UsageError
from resolver.events.stream import utc_now
from resolver.models.repository import owner_of
from resolver.runs.common import open_host
from resolver.storage.blob_store import open_blob_store
from resolver.storage.costs import SpendingLedger, SpendingTotal
from resolver.storage.database import existing_database
from resolver.trace.plain import for_terminal

STATES = ("open", "waiting", "deferred", "working", "done")

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
    repository: str,
    limit: int,
    as_json: bool,
) -> int:
    """List the requests in the queue and their runs, the newest first."""
    settings = load_settings({}, environment)
    with _administration(settings) as admin:
        requests = admin.requests(state or "", repository, limit)
    _show("run/admin_runs.txt.j2", as_json, [_row(asdict(request)) for request in requests])
    return 0


@command.command("requeue")
@click.argument("id", metavar="RUN|REQUEST")
@as_json_option
@click.pass_obj
def requeue_command(environment: Mapping[str, str], /, id: str, as_json: bool) -> int:
    """Let a deferred request start now.

    It was deferred because of an outage, or because the server crashed during its run. Its
    earlier crashes and outages no longer count.
    """
    with _administration(load_settings({}, environment)) as admin:
        _show_changed(admin.requeue(id), "waiting", as_json)
    return 0


@command.command("cancel")
@click.argument("id", metavar="RUN|REQUEST")
@as_json_option
@click.pass_obj
def cancel_command(environment: Mapping[str, str], /, id: str, as_json: bool) -> int:
    """Cancel a waiting request, or stop an active run, whichever process executes it.

    The conversation of a waiting request gets no comment. A run is stopped as by the comment
    `@agent stop`, and can be continued.
    """
    with _administration(load_settings({}, environment)) as admin:
        found = admin.cancel(id, utc_now())
    state = "stopping" if found.state == RequestState.WORKING else "done"
    _show_changed(found, state, as_json)
    return 0


@command.command("executors")
@as_json_option
@click.pass_obj
def executors_command(environment: Mapping[str, str], /, as_json: bool) -> int:
    """List the processes that execute requests."""
    with _administration(load_settings({}, environment)) as admin:
        found = admin.executors()
    _show("run/admin_executors.txt.j2", as_json, [_row(asdict(executor)) for executor in found])
    return 0


@command.command("drain")
@click.argument("executor", required=False, default="")
@as_json_option
@click.pass_obj
def drain_command(environment: Mapping[str, str], /, executor: str, as_json: bool) -> int:
    """Stop an executor from starting requests; without an id, all current executors.

    Active runs continue to their end. A process that starts later is not draining.
    """
    _set_draining(environment, executor, True, as_json)
    return 0


@command.command("resume")
@click.argument("executor", required=False, default="")
@as_json_option
@click.pass_obj
def resume_executor_command(environment: Mapping[str, str], /, executor: str, as_json: bool) -> int:
    """Let a draining executor start requests again; without an id, all of them."""
    _set_draining(environment, executor, False, as_json)
    return 0


@command.command("purge")
@click.option("--older-than", default="", metavar="AGE", help="For example 30d or 8w.")
@click.option("--owner", default="", help="Only what is old of this owner's repositories.")
@click.option("--repository", default="", metavar="OWNER/NAME", help="All of a repository.")
@click.option("--dry-run", is_flag=True, help="Count, and remove nothing.")
@as_json_option
@click.pass_obj
def purge_command(
    environment: Mapping[str, str],
    /,
    older_than: str,
    owner: str,
    repository: str,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Remove old runs and finished requests, or everything of a repository.

    Old is what is older than --older-than; without it, than the setting `retention`, which owners
    can have for themselves. Costs and everything of a request that is not done are
    kept. The age of a request that an older release has finished counts from the first purge on.
    With --owner, nothing of other owners is removed.
    With --repository, costs and unfinished requests are removed as well.
    """
    if repository and (older_than or owner):
        raise UsageError(
            "--repository removes all of a repository, of any age",
            "give it alone, or write --older-than 30d --owner LOGIN",
        )
    if "/" in owner:
        raise UsageError("--owner is the login of an account", "write it like --owner LOGIN")
    settings = load_settings({}, environment)
    retention = None if repository else _retention(settings, environment, older_than, owner)
    with existing_database(settings.server.database_url) as database:
        blobs = open_blob_store(settings.server.blob_store, database.url, environment)
        purge = ServerPurge(database, Path(settings.server.data_dir), blobs, dry_run)
        purged = (
            purge.purge_by_retention(retention, utc_now())
            if retention
            else purge.purge_repository(repository, utc_now())
        )
    _show("run/admin_purge.txt.j2", as_json, asdict(purged) | {"dry_run": dry_run})
    return 0


def _retention(
    settings: Settings, environment: Mapping[str, str], older_than: str, owner: str
) -> Retention:
    """Return the ages at which runs are removed. Raises UsageError if there are none."""
    if older_than:
        try:
            age = parse_age(older_than)
        except ValueError as error:
            raise UsageError(str(error), "write it like --older-than 30d") from None
        return Retention(None, {owner.lower(): age}) if owner else Retention(age, {})
    configured = read_owner_settings(settings.server.owners_file).load_all({}, environment)
    default, owners = _age_in(settings), {name: _age_in(own) for name, own in configured.items()}
    if owner:
        default, owners = None, {owner.lower(): owners.get(owner.lower(), default)}
    if not any((default, *owners.values())):
        raise UsageError(
            "it is not clear what to purge",
            "give --older-than or --repository, or set RESOLVER_RETENTION",
        )
    return Retention(default, owners)


def _age_in(settings: Settings) -> timedelta | None:
    return parse_age(settings.retention) if settings.retention else None


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
            "id": installation.id,
            "account": installation.account.login,
            "suspended": installation.suspended_at is not None,
            "permissions": installation.permissions,
        }
        for installation in found
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
    owners = read_owner_settings(settings.server.owners_file).load_all({}, environment)
    now = utc_now()
    with existing_database(settings.server.database_url) as database:
        ledger = SpendingLedger(database)
        totals = ledger.totals(now, month=f"{now:%Y-%m}")
        today = ledger.cost_of_day(now)

    def quotas_of(name: str) -> CostQuotas:
        return choose_settings(settings, owners, name).cost_quotas

    listed = [total for total in totals if repository.lower() in ("", total.repository)]
    usage = {
        "month": [
            {"repository": total.repository}
            | _quota([total], quotas_of(total.repository).repository_month)
            for total in listed
        ],
        "owners": [
            {"owner": owner} | _quota([t for t in totals if owner_of(t.repository) == owner], limit)
            for owner in sorted({owner_of(total.repository) for total in listed})
            if (limit := quotas_of(f"{owner}/").owner_month) is not None
        ],
        "today": {"cost": today, "limit": settings.cost_quotas.server_day},
    }
    _show("run/admin_quotas.txt.j2", as_json, usage)
    return 0


@command.command("pages-link")
@as_json_option
@click.pass_obj
def pages_link_command(environment: Mapping[str, str], /, as_json: bool) -> int:
    """Print the link to the list of all runs, which `resolver serve` logs at its start.

    Treat it like a password: it opens every run.
    """
    server = load_settings({}, with_stored_app(environment)).server
    secret = server.webhook_secret.get_secret_value() if server.webhook_secret else ""
    if not server.public_url or not secret:
        raise UsageError(
            "the server has no pages without a public URL and a webhook secret",
            "set RESOLVER_PUBLIC_URL and GITHUB_WEBHOOK_SECRET to those of the server",
        )
    url = operator_url(server.public_url, secret)
    click.echo(json.dumps({"url": url}) if as_json else url)
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
    with existing_database(settings.server.database_url) as database:
        yield ServerAdministration(database)


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


def _quota(totals: Sequence[SpendingTotal], limit: float | None) -> dict[str, Any]:
    """Return the use of a limit by the runs of these repositories together."""
    cost = sum(total.cost for total in totals)
    reserved = sum(total.reserved for total in totals)
    return {
        "runs": sum(total.runs for total in totals),
        "cost": cost,
        "reserved": reserved,
        "unpriced_replies": sum(total.unpriced for total in totals),
        "limit": limit,
        "left": None if limit is None else max(0.0, limit - cost - reserved),
    }
