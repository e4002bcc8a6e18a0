"""`resolver app`: shows how to register a GitHub App for `resolver serve`."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import click

from resolver.config.settings import load_settings
from resolver.config.templates import render
from resolver.errors import UsageError
from resolver.github.client.app import EVENTS, PERMISSIONS

HOMEPAGE = "https://docs.github.com/apps"
"""The homepage URL, which GitHub requires; the App does not use it."""


@click.command()
@click.argument("server", metavar="URL", required=False)
@click.option("--owner", help="Organization that will own the App. Default: your account.")
@click.option("--name", default="my-resolver", show_default=True, help="Name of the App on GitHub.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest instead of the steps.")
@click.pass_obj
def command(
    environment: Mapping[str, str],
    /,
    server: str | None,
    owner: str | None,
    name: str,
    as_json: bool,
) -> int:
    """Show how to register the GitHub App, with a link to GitHub's form that is filled in already.

    URL is the address at which GitHub reaches `resolver serve`, such as https://agent.example.org.
    Without it the App gets no webhook, which is enough for the Action. Nothing is sent anywhere.
    """
    settings = load_settings({}, environment)
    hook = _webhook_url(server) if server else ""
    if as_json:
        click.echo(json.dumps(manifest(name, hook), indent=2))
        return 0
    text = render(
        "init/app.txt.j2",
        form=registration_form_url(settings.github_server_url, owner, name, hook),
        hook=hook,
    )
    click.echo(text, nl=False)
    return 0


def manifest(name: str, hook: str) -> dict[str, Any]:
    """Return the App's manifest. `hook` is the URL of its webhook, "" for none.

    Source:
    https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-from-a-manifest
    """
    return {
        "name": name,
        "url": HOMEPAGE,
        "public": False,
        "hook_attributes": {"url": hook or HOMEPAGE, "active": bool(hook)},
        "default_permissions": dict(PERMISSIONS),
        "default_events": list(EVENTS) if hook else [],
    }


def registration_form_url(github: str, owner: str | None, name: str, hook: str) -> str:
    """Return the URL of GitHub's registration form with its fields filled in.

    Source:
    https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-using-url-parameters
    """
    fields = [
        ("name", name),
        ("url", HOMEPAGE),
        ("public", "false"),
        ("webhook_active", "true" if hook else "false"),
        *((("webhook_url", hook),) if hook else ()),
        *PERMISSIONS.items(),
        *((("events[]", event) for event in EVENTS) if hook else ()),
    ]
    owner_path = f"organizations/{owner}/settings" if owner else "settings"
    return f"{github.rstrip('/')}/{owner_path}/apps/new?{urlencode(fields)}"


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
