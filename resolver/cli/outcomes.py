"""`resolver outcomes`: shows what became of the pull requests that Resolver opened."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from resolver.cli.options import GroupedCommand, settings_options
from resolver.config.settings import Settings, load_settings
from resolver.config.templates import render
from resolver.entrypoints.webhook.page_links import outcome_page_url
from resolver.events.stream import utc_now
from resolver.github.client.access import check_repository
from resolver.outcomes.classify import OBSERVATION_WINDOW
from resolver.outcomes.report import outcome_report
from resolver.outcomes.summary import outcomes_as_json, summarize_outcomes
from resolver.runs.common import filtered_log, github_forge, open_host
from resolver.runs.pull_request_outcomes import OUTCOME_PERIOD, refresh_outcomes
from resolver.trace.plain import for_terminal


@click.command(cls=GroupedCommand)
@click.argument("repository")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    help=f"Only pull requests that were opened since then. Default: {OUTCOME_PERIOD.days} days.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--save",
    is_flag=True,
    help="Record the outcomes in the repository's quota ledger, and show them on its dashboard if "
    "`dashboard` is set. This needs write access.",
)
@settings_options
@click.pass_obj
def command(
    environment: Mapping[str, str],
    /,
    repository: str,
    since: datetime | None,
    as_json: bool,
    save: bool,
    **options: Any,
) -> int:
    """Show what became of Resolver's pull requests in REPOSITORY (OWNER/NAME).

    A pull request was merged (with edits, if people changed Resolver's work before), closed,
    superseded by another one for the same issue, or ignored. Two weeks after a merge, the later
    commits of the branch show if the change held, was changed again by people, or was reverted.

    The acceptance rate is the number of merged pull requests divided by the number of those that
    were merged or closed.
    """
    settings = load_settings(options, environment)
    check_repository(repository)
    host = open_host(environment)
    now = utc_now()
    start = since.replace(tzinfo=UTC) if since else now - OUTCOME_PERIOD
    with filtered_log(settings, host):
        forge = github_forge(settings, repository, host)
        outcomes = refresh_outcomes(
            settings, repository, host, forge, now, since=start, records=save
        )
    if as_json:
        summary = summarize_outcomes(outcomes)
        click.echo(json.dumps(outcomes_as_json(repository, outcomes, summary), indent=2))
        return 0
    report = outcome_report(outcomes, repository, start)
    text = render(
        "run/outcomes.txt.j2",
        report=report,
        days=OBSERVATION_WINDOW.days,
        page=_page(settings, repository),
    )
    click.echo(for_terminal(text), nl=False)
    return 0


def _page(settings: Settings, repository: str) -> str:
    """Return the URL of the server's page; "" if the settings are not those of a server."""
    secret = settings.server.webhook_secret
    if secret is None or not secret.get_secret_value():
        return ""
    return outcome_page_url(settings.server.public_url, secret.get_secret_value(), repository)
