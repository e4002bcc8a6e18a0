"""Registration of the GitHub App: its form, its manifest, and the credentials that GitHub creates.

Source:
https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-from-a-manifest
"""

import re
from typing import Any
from urllib.parse import urlencode

import requests
from pydantic import ConfigDict, Field, SecretStr, ValidationError

from resolver.errors import ForgeError, UsageError
from resolver.github.client.answers import ApiAnswer
from resolver.github.client.app import PERMISSIONS
from resolver.github.events.starting_events import starting_actions

EVENTS = (*starting_actions(), "check_suite", "status", "workflow_run")
"""The webhook events that the App must subscribe to."""


HOMEPAGE = "https://docs.github.com/apps"
"""The homepage URL, which GitHub requires; the App does not use it."""

CONVERSION_SECONDS = 30.0
"""Timeout in seconds for GitHub's answer with the credentials."""

_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,99})")
_CODE = re.compile(r"[A-Za-z0-9_-]{1,100}")


class AppCredentials(ApiAnswer):
    """The App as GitHub has created it, with its secrets."""

    model_config = ConfigDict(hide_input_in_errors=True)

    id: int
    slug: str = Field(pattern=r"^[A-Za-z0-9-]{1,100}$")
    pem: SecretStr = Field(min_length=1)
    webhook_secret: SecretStr = Field(min_length=1)
    client_id: str = ""
    client_secret: SecretStr = SecretStr("")


def build_app_manifest(name: str, hook: str) -> dict[str, Any]:
    """Return the App's manifest. `hook` is the URL of its webhook, "" for none."""
    return {
        "name": name,
        "url": HOMEPAGE,
        "public": False,
        "hook_attributes": {"url": hook or HOMEPAGE, "active": bool(hook)},
        "default_permissions": dict(PERMISSIONS),
        "default_events": list(EVENTS) if hook else [],
    }


def app_registration_page(github: str, owner: str = "") -> str:
    """Return the URL of GitHub's page on which an App is registered.

    owner: the organization that the App is to belong to; "" for the person's own account. Raises
    UsageError if it is no name of an account.
    """
    if owner and not _OWNER.fullmatch(owner):
        raise UsageError(f"{owner!r} is not the name of an organization", "write it as in its URL")
    owner_path = f"organizations/{owner}/settings" if owner else "settings"
    return f"{github.rstrip('/')}/{owner_path}/apps/new"


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
    return f"{app_registration_page(github, owner or '')}?{urlencode(fields)}"


def convert_manifest_code(api_url: str, code: str) -> AppCredentials:
    """Return the credentials of the App that GitHub has created. The code is valid once.

    Raises ForgeError.
    """
    failed = "GitHub did not hand out the credentials of the new App"
    next_step = "delete the App on GitHub if it exists there, and create it again"
    if not _CODE.fullmatch(code):
        raise ForgeError(f"{failed}: the code is malformed", next_step)
    try:
        answer = requests.post(
            f"{api_url.rstrip('/')}/app-manifests/{code}/conversions",
            headers={"Accept": "application/vnd.github+json"},
            timeout=CONVERSION_SECONDS,
            allow_redirects=False,
        )
    except requests.RequestException as error:
        raise ForgeError(f"{failed}: {type(error).__name__}", next_step) from None
    if answer.status_code != 201:
        raise ForgeError(f"{failed}: it answered {answer.status_code}", next_step)
    try:
        return AppCredentials.model_validate_json(answer.content)
    except ValidationError:
        raise ForgeError(f"{failed}: its answer can't be read", next_step) from None
