"""`resolver worker`: executes the requests that `resolver serve` has stored, on any machine."""

from collections.abc import Mapping
from typing import Any

import click

from resolver.cli.options import SettingsCommand, lease_option, metrics_options, settings_options
from resolver.config.documentation import DOCS
from resolver.entrypoints.webhook.process import ProcessOptions, run_worker_process


@click.command(cls=SettingsCommand, epilog=f"\b\nRunning workers:\n{DOCS}/how-to/server.md")
@click.option(
    "--concurrency",
    default=2,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Maximum number of runs at a time in this process; never two of one repository in all.",
)
@lease_option
@metrics_options
@settings_options
@click.pass_obj
def command(
    environment: Mapping[str, str],
    /,
    concurrency: int,
    lease_seconds: float | None,
    metrics_port: int | None,
    metrics_host: str,
    **options: Any,
) -> int:
    """Execute the requests that `resolver serve` has stored in a PostgreSQL database.

    \b
    Needs in the environment:
      RESOLVER_DATABASE_URL  postgresql://..., the same as the server's
      RESOLVER_RUN_STORE     a folder or bucket, the same as the server's
      RESOLVER_DATA_DIR      a folder of its own; default ./resolver-runs
      the credentials for GitHub and the model, as `resolver serve`

    Any number of workers can run, on any number of machines. If one dies, the others notice it
    within 30 seconds and continue its runs. SIGTERM hands its runs over at once.
    """
    metrics = None if metrics_port is None else (metrics_host, metrics_port)
    process = ProcessOptions(concurrency, metrics, lease_seconds)
    run_worker_process(environment, options, process)
    return 0
