"""`resolver costs`: shows what the runs of a server have cost."""

import json
import re
from collections.abc import Mapping
from typing import Any

import click

from resolver.config.settings import load_settings
from resolver.config.templates import render
from resolver.errors import UsageError
from resolver.events.stream import utc_now
from resolver.storage.costs import SpendingLedger, SpendingTotal
from resolver.storage.database import existing_database
from resolver.trace.plain import for_terminal


@click.command()
@click.option("--repository", default="", help="Only this repository, as OWNER/NAME.")
@click.option("--month", default="", help="Only this month, as YYYY-MM.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def command(environment: Mapping[str, str], /, repository: str, month: str, as_json: bool) -> int:
    """Show what the server's runs have cost, by month and repository.

    The command reads the server's database (RESOLVER_DATABASE_URL), also while the server is
    running. A run counts for the month (UTC) in which it began. Replies of a model without a known
    price are counted but not included in the cost: set input_cost_per_token and
    output_cost_per_token in `model_options` for such a model.
    """
    if month and not re.fullmatch(r"\d{4}-\d{2}", month):
        raise UsageError(f"{month!r} is not a month", "write it like 2026-11")
    settings = load_settings({}, environment)
    with existing_database(settings.server.database_url) as database:
        totals = SpendingLedger(database).totals(utc_now(), repository, month)
    if as_json:
        click.echo(json.dumps([_row(total) for total in totals], indent=2))
        return 0
    limit = settings.cost_quotas.repository_month
    click.echo(for_terminal(render("run/costs.txt.j2", totals=totals, bound=limit)), nl=False)
    return 0


def _row(total: SpendingTotal) -> dict[str, Any]:
    """Return a total as JSON.

    `cost` is null if a price is unknown; `priced` is then the cost of the other replies.
    """
    return {
        "repository": total.repository,
        "month": total.month,
        "runs": total.runs,
        "cost": None if total.unpriced else total.cost,
        "priced": total.cost,
        "unpriced_replies": total.unpriced,
        "at_work": total.active_runs,
        "reserved": total.reserved,
    }
