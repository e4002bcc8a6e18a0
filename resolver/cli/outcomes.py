"""`resolver outcomes`: shows what became of the pull requests that Resolver opened."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import click

from resolver.cli.options import GroupedCommand, settings_options
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


@dataclass(frozen=True)
class OutcomeCounts:
    """The outcomes of some pull requests. seconds: how long each merged one was open."""

    opened: int
    closed: int
    open: int
    seconds: tuple[float, ...]

    @property
    def merged(self) -> int:
        """The number of merged pull requests."""
        return len(self.seconds)

    @property
    def acceptance(self) -> float | None:
        """The merged ones as a share of the merged and the closed ones; None if there are none."""
        decided = self.merged + self.closed
        return self.merged / decided if decided else None

    @property
    def median_seconds(self) -> float | None:
        """The median time until a merge; None if none was merged."""
        return median(self.seconds) if self.seconds else None

    @property
    def median_text(self) -> str:
        """The median time until a merge for a person, in days if it is longer than two days."""
        seconds = self.median_seconds
        if seconds is None:
            return ""
        days = timedelta(seconds=seconds) / timedelta(days=1)
        return f"{days:.0f} days" if days > 2 else duration(seconds)

    def as_json(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return {
            "opened": self.opened,
            "merged": self.merged,
            "closed": self.closed,
            "open": self.open,
            "acceptance": self.acceptance,
            "median_seconds_to_merge": self.median_seconds,
        }


def count_outcomes(pulls: Sequence[OwnPullRequest]) -> OutcomeCounts:
    """Return how many of the pull requests were merged, closed or are open."""
    return OutcomeCounts(
        opened=len(pulls),
        closed=sum(pull.state == "closed" for pull in pulls),
        open=sum(pull.state == "open" for pull in pulls),
        seconds=tuple(
            (pull.ended_at - pull.created_at).total_seconds()
            for pull in pulls
            if pull.state == "merged" and pull.ended_at is not None
        ),
    )


@click.command(cls=GroupedCommand)
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
        data = {
            "repository": repository,
            **total.as_json(),
            "pull_requests": rows,
        }
        click.echo(json.dumps(data, indent=2))
        return 0
    text = render(
        "run/outcomes.txt.j2",
        repository=repository,
        since=f"{start:%Y-%m-%d}",
        total=total,
        pulls=[(pull, one_line(pull.title, 80)) for pull in pulls],
    )
    click.echo(for_terminal(text), nl=False)
    return 0
