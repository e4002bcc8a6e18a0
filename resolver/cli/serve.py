"""`resolver serve`: the webhook of the GitHub App, and its runs."""

from collections.abc import Mapping
from typing import Any

import click

from resolver.cli.options import SettingsCommand, lease_option, metrics_options, settings_options
from resolver.config.documentation import DOCS
from resolver.entrypoints.webhook.process import ProcessOptions
from resolver.entrypoints.webhook.server import serve_webhook


@click.command(
    cls=SettingsCommand, epilog=f"\b\nEvents that the webhook needs:\n{DOCS}/reference/triggers.md"
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; with 0, a free port is chosen and printed first.",
)
@click.option(
    "--concurrency",
    default=2,
    show_default=True,
    type=click.IntRange(0, 64),
    help="Maximum number of runs at a time; never two of one repository. "
    "With 0, the runs are executed by `resolver worker` processes.",
)
@lease_option
@metrics_options
@settings_options
@click.pass_obj
def command(
    environment: Mapping[str, str],
    /,
    host: str,
    port: int,
    concurrency: int,
    lease_seconds: float | None,
    metrics_port: int | None,
    metrics_host: str,
    **options: Any,
) -> int:
    """Serve `POST /webhook` and execute what its deliveries request.

    \b
    Needs in the environment:
      GITHUB_WEBHOOK_SECRET  the secret of the webhook (content type: application/json)
      RESOLVER_APP_ID, RESOLVER_APP_PRIVATE_KEY (PEM text or file) of the GitHub App that
                             reads issues, pushes branches and opens pull requests; or else
      GITHUB_TOKEN           of an account that does
      LLM_MODEL, LLM_API_KEY the model (or --model)
    Keeps its data in:
      RESOLVER_DATABASE_URL  deliveries; default sqlite:///resolver.db, in the current folder
      RESOLVER_DATA_DIR      clones and sandboxes; default ./resolver-runs
      RESOLVER_RUN_STORE     logs and files of runs; default `runs` in RESOLVER_DATA_DIR

    The webhook needs the events `issue_comment` and `issues`, and others for further
    triggers. A delivery is stored before it is answered, and a redelivery has no effect. SIGTERM
    stops the server within seconds. Work that is unfinished then, or after a crash, continues at
    the next start. A SQLite database can be used by one server at a time, PostgreSQL by any number
    of servers and workers.

    `GET /healthz` answers while the process runs, `GET /readyz` reports whether deliveries can be
    stored. With RESOLVER_PUBLIC_URL and RESOLVER_APP_CLIENT_SECRET, people log in with GitHub
    and see the runs of the repositories that they can read.
    """
    metrics = None if metrics_port is None else (metrics_host, metrics_port)
    process = ProcessOptions(concurrency, metrics, lease_seconds)
    serve_webhook(environment, options, host, port, process)
    return 0
