"""`resolver outcomes`: shows what became of the pull requests that Resolver opened."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import click

from resolver.cli.options import SettingsCommand, settings_options
from resolver.config.settings import load_settings
from resolver.config.templates import render
from resolver.events.stream import utc_now
from resolver.git.push import PREFIX
from resolver.github.client.access import check_repository
from resolver.github.context.own_pull_requests import OwnPullRequest
from resolver.runs.common import filtered_log, github_forge, open_host
from resolver.trace.plain import duration, for_terminal, one_line

OUTCOME_PERIOD = timedelta(days=180)
"""How far back pull requests are counted."""


def count_outcomes(pulls: Sequence[OwnPullRequest]) -> dict[str, Any]:
    """Return how many of the pull requests were merged, closed or are open.

    acceptance: the merged ones as a share of the merged and the closed ones; None if there are
        none. median_seconds_to_merge: None if none was merged.
    """
    states = Counter(pull.state for pull in pulls)
    decided = states["merged"] + states["closed"]
    seconds = [
        (pull.ended_at - pull.created_at).total_seconds()
        for pull in pulls
        if pull.state == "merged" and pull.ended_at is not None
    ]
    return {
        "opened": len(pulls),
        "merged": states["merged"],
        "closed": states["closed"],
        "open": states["open"],
        "acceptance": states["merged"] / decided if decided else None,
        "median_seconds_to_merge": median(seconds) if seconds else None,
    }


@click.command(cls=SettingsCommand)
@click.argument("repository")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    help=f"Only pull requests that were opened since then. Default: {OUTCOME_PERIOD.days} days.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options
@click.pass_obj
def command(
    environment: Mapping[str, str],
    /,
    repository: str,
    since: datetime | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Show what became of Resolver's pull requests in REPOSITORY (OWNER/NAME).

    The acceptance rate is the number of merged pull requests divided by the number of those that
    were merged or closed. `--since` narrows it.
    """
    settings = load_settings(options, environment)
    check_repository(repository)
    host = open_host(environment)
    start = since.replace(tzinfo=UTC) if since else utc_now() - OUTCOME_PERIOD
    with filtered_log(settings, host):
        pulls = github_forge(settings, repository, host).own_pull_requests(PREFIX, start)
    total = count_outcomes(pulls)
    if as_json:
        rows = [{"number": pull.number, "state": pull.state, "url": pull.url} for pull in pulls]
        data = {"repository": repository, **total, "pull_requests": rows}
        click.echo(json.dumps(data, indent=2))
        return 0
    seconds = total["median_seconds_to_merge"]
    if seconds is None:
        time_to_merge = None
    else:
        days = round(seconds / 86_400)
        time_to_merge = f"{days} days" if days > 2 else duration(seconds)
    text = render(
        "run/outcomes.txt.j2",
        repository=repository,
        since=f"{start:%Y-%m-%d}",
        total=total,
        time_to_merge=time_to_merge,
        pulls=[(pull, one_line(pull.title, 80)) for pull in pulls],
    )
    click.echo(for_terminal(text), nl=False)
    return 0
