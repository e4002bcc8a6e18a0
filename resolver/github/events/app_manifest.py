"""Registration of the GitHub App by GitHub's form."""

import re
from urllib.parse import urlencode

from resolver.errors import UsageError
from resolver.github.client.app import PERMISSIONS
from resolver.github.events.starting_events import starting_actions

EVENTS = (*starting_actions(), "check_suite", "status", "workflow_run")
"""The webhook events that the App must subscribe to."""


HOMEPAGE = "https://docs.github.com/apps"
"""The homepage URL, which GitHub requires; the App does not use it."""

_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,99})")


def registration_form_url(github: str, owner: str | None, name: str, hook: str | None) -> str:
    """Return the URL of GitHub's registration form with its fields filled in.

    owner: the organization that the App is to belong to; None for the person's own account. hook:
    URL of its webhook, None for none. Raises UsageError if the owner is no name of an account.

    Source:
    https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-using-url-parameters
    """
    if owner and not _OWNER.fullmatch(owner):
        raise UsageError(f"{owner!r} is not the name of an organization", "write it as in its URL")
    owner_path = f"organizations/{owner}/settings" if owner else "settings"
    fields = [
        ("name", name),
        ("url", HOMEPAGE),
        ("public", "false"),
        ("webhook_active", "true" if hook else "false"),
        *((("webhook_url", hook),) if hook else ()),
        *((("callback_urls[]", callback_of(hook)),) if hook else ()),
        *PERMISSIONS.items(),
        *((("events[]", event) for event in EVENTS) if hook else ()),
    ]
    return f"{github.rstrip('/')}/{owner_path}/apps/new?{urlencode(fields)}"


def callback_of(hook: str) -> str:
    """Return the address to which GitHub returns people who log in to the server's pages."""
    return f"{hook.removesuffix('/webhook')}/login/callback"
