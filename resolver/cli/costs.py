"""`resolver costs`: shows what runs have cost, and what is used of the quotas of today."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from resolver.config.server_variables import read_server_variables
from resolver.config.settings import Settings, load_settings
from resolver.config.templates import render
from resolver.errors import UsageError
from resolver.events.stream import utc_now
from resolver.github.client.access import check_repository
from resolver.github.events.quota_decision import (
    QuotaUse,
    measure_quota_use,
    runs_of_today,
)
from resolver.github.events.quota_ledger import CostTotal, QuotaLedger
from resolver.runs.common import filtered_log, open_host
from resolver.runs.quotas.admission import quota_limits_of
from resolver.storage.database import MissingDatabase, existing_database
from resolver.storage.ledger_ref import LedgerRef
from resolver.storage.quota_table import QuotaTable
from resolver.trace.plain import for_terminal


@click.command()
@click.argument("repository", default="")
@click.option("--month", default="", help="Only this month, as YYYY-MM.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(environment: Mapping[str, str], /, repository: str, month: str, as_json: bool) -> int:
    """Show what runs have cost, by month, and what is used of today's quotas.

    If there is a server's database (RESOLVER_DATABASE_URL), the command shows the costs of its
    runs, of REPOSITORY (OWNER/NAME) or of all repositories. Otherwise it reads the ledger that the
    jobs of GitHub Actions keep in REPOSITORY, and needs a token that can read it.

    A run counts for the day and the month (UTC) in which it began. Replies of a model without a
    known price are counted but not included in the cost: set input_cost_per_token and
    output_cost_per_token in `model_options` for such a model.
    """
    if month and not re.fullmatch(r"\d{4}-\d{2}", month):
        raise UsageError(f"{month!r} is not a month", "write it like 2026-11")
    if repository:
        check_repository(repository)
    settings, now = load_settings({}, environment), utc_now()
    try:
        with existing_database(read_server_variables(environment).database_url) as database:
            table = QuotaTable(database)
            totals = table.totals(now, repository, month)
            ledger = table.read(repository, now) if repository else QuotaLedger()
    except MissingDatabase as missing:
        if not repository:
            step = f"{missing.next_step}; or name a repository, for the runs of its Action"
            raise UsageError(missing.what, step) from None
        ledger = _read_ledger(settings, repository, environment)
        totals = tuple(
            total for total in ledger.totals(repository, now) if month in {"", total.month}
        )
    use = _use_of_today(ledger, settings, now) if repository else ()
    if as_json:
        today = [
            asdict(quota) | {"max_runs": quota.max_runs or None, "max_cost": quota.max_cost or None}
            for quota in use
        ]
        data = {"totals": list(map(_as_json, totals)), "today": today}
        click.echo(json.dumps(data, indent=2))
        return 0
    click.echo(for_terminal(render("run/costs.txt.j2", totals=totals, use=use)), nl=False)
    return 0


def _read_ledger(
    settings: Settings, repository: str, environment: Mapping[str, str]
) -> QuotaLedger:
    """Return the ledger in the repository. Raises WorkspaceError and ForgeError."""
    host = open_host(environment)
    with filtered_log(settings, host):
        url = settings.clone_url(repository)
        return LedgerRef(url, lambda: host.tokens.credential(settings, repository)).read()


def _use_of_today(ledger: QuotaLedger, settings: Settings, now: datetime) -> tuple[QuotaUse, ...]:
    """Return the use of the quotas of the repository, and of each conversation and user with a run
    today."""
    today = runs_of_today(ledger.runs, now)
    threads, users = sorted({run.thread for run in today}), sorted({run.user for run in today})
    return measure_quota_use(today, quota_limits_of(settings), threads, users, now)


def _as_json(total: CostTotal) -> dict[str, Any]:
    """Return a total as JSON.

    `cost` is null if a price is unknown; `priced` is then the cost of the other replies.
    """
    values = asdict(total)
    unpriced = values.pop("unpriced")
    cost = None if unpriced else total.cost
    return {**values, "cost": cost, "priced": total.cost, "unpriced_replies": unpriced}
