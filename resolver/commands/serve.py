"""`resolver serve`: the GitHub App's webhook and its worker in one process."""

import logging
from collections.abc import Mapping
from typing import Any

import click
import uvicorn

from resolver.commands.options import settings_options
from resolver.doors import environment_secrets, require_model
from resolver.errors import UsageError
from resolver.security.logging import RewritingFilter
from resolver.security.redaction import Redactor
from resolver.server.deliveries import trigger_of, work_on
from resolver.server.webhook import create_app
from resolver.server.worker import Worker
from resolver.settings import load_settings
from resolver.triggers.parse import Ignored


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, help="Port to listen on.")
@click.option(
    "--concurrency",
    default=2,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Runs at a time; never two of one repository.",
)
@settings_options
@click.pass_obj
def command(
    environment: Mapping[str, str], /, host: str, port: int, concurrency: int, **options: Any
) -> int:
    """Serve `POST /webhook` and work on its deliveries.

    Needs GITHUB_WEBHOOK_SECRET, GITHUB_TOKEN and a model. Deliveries are stored before they are
    answered; after a crash the next start goes on with what was not finished.
    """
    settings = load_settings(options, environment)
    require_model(settings)
    if settings.webhook_secret is None or not settings.webhook_secret.get_secret_value():
        raise UsageError(
            "there is no webhook secret, so nobody could be told from GitHub",
            "set GITHUB_WEBHOOK_SECRET to the secret of the App's webhook",
        )
    if settings.github_token is None:
        raise UsageError("there is no GitHub token", "set GITHUB_TOKEN")
    _log(Redactor((*settings.secrets, *environment_secrets(environment))))

    def work(event: str, payload: dict[str, Any]) -> dict[str, Any]:
        return work_on(environment, options, event, payload)

    worker = Worker(settings.database_url, work, concurrency)

    def accept(delivery: str, event: str, payload: dict[str, Any]) -> str:
        trigger = trigger_of(settings, event, payload)
        if isinstance(trigger, Ignored):
            return f"ignored: {trigger.reason}"
        worker.enqueue(delivery, event, trigger.repository.lower(), payload)
        return "stored"

    worker.start()
    try:
        app = create_app(settings.webhook_secret.get_secret_value(), accept)
        uvicorn.run(app, host=host, port=port, log_config=None, access_log=False)
    finally:
        worker.stop()
    return 0


def _log(redactor: Redactor) -> None:
    """Plain lines on stderr, without secrets."""
    handler = logging.StreamHandler()
    handler.addFilter(RewritingFilter(redactor.redact_text))
    logging.basicConfig(
        level=logging.INFO,
        handlers=[handler],
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
