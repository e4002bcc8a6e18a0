"""`resolver app`: shows how to register a GitHub App for `resolver serve`."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import click

from resolver.config.settings import load_settings
from resolver.config.templates import render
from resolver.errors import UsageError
from resolver.github.events.app_manifest import registration_form_url


@click.command()
@click.argument("server", metavar="[URL]", required=False)
@click.option("--owner", help="Organization that will own the App. Default: your account.")
@click.option("--name", default="my-resolver", show_default=True, help="Name of the App on GitHub.")
@click.pass_obj
def command(
    environment: Mapping[str, str],
    /,
    server: str | None,
    owner: str | None,
    name: str,
) -> int:
    """Show how to register the GitHub App, with a link to GitHub's form that is filled in already.

    URL is the address at which GitHub reaches `resolver serve`, such as https://agent.example.org.
    Without it the App gets no webhook, which is enough for the Action. Nothing is sent anywhere.
    """
    settings = load_settings({}, environment)
    hook = _webhook_url(server) if server else None
    text = render(
        "init/app.txt.j2",
        form=registration_form_url(settings.github_server_url, owner, name, hook),
        hook=hook,
    )
    click.echo(text, nl=False)
    return 0


def _webhook_url(server: str) -> str:
    """Return the webhook's URL. Raises UsageError if `server` is not an https URL."""
    parts = urlsplit(server)
    if parts.scheme != "https" or not parts.hostname:
        raise UsageError(
            f"{server!r} is not an https:// address",
            "use the address at which GitHub reaches the server",
        )
    path = parts.path.rstrip("/").removesuffix("/webhook")
    return f"https://{parts.netloc}{path}/webhook"
