"""The file in the data folder that has the credentials of the GitHub App which the server's setup
page has created."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from resolver.config.server_variables import read_server_variables
from resolver.config.settings import load_settings
from resolver.errors import UsageError
from resolver.github.events.app_manifest import AppCredentials

APP_FILE = "github-app.json"
"""Name of the file. Its fields are those of GitHub's answer."""


def store_app(folder: Path, credentials: AppCredentials) -> Path:
    """Write the file, readable only by its owner, and return its path.

    Raises UsageError if there is one already or it can't be written.
    """
    secrets = {
        name: getattr(credentials, name).get_secret_value()
        for name in ("pem", "webhook_secret", "client_secret")
    }
    path = folder / APP_FILE
    try:
        # Created with mode 0600, and under its name only once it is complete. `link` replaces no
        # file that is there.
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=f".{APP_FILE}")
        try:
            with os.fdopen(descriptor, "w") as file:
                json.dump(credentials.model_dump() | secrets, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, path)
        finally:
            Path(temporary).unlink()
    except OSError as error:
        raise UsageError(
            f"the App's credentials can't be written to {path}: {error.strerror}",
            "correct the permissions of RESOLVER_DATA_DIR, or remove the file that is there",
        ) from error
    return path


def read_stored_app(folder: Path) -> AppCredentials | None:
    """Return the stored credentials, None if there are none. Raises UsageError."""
    path = folder / APP_FILE
    try:
        return AppCredentials.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise UsageError(
            f"the App's credentials in {path} can't be read: {reason}",
            "restore the file, or set RESOLVER_APP_ID, RESOLVER_APP_PRIVATE_KEY and "
            "GITHUB_WEBHOOK_SECRET",
        ) from error


def with_stored_app(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with the stored credentials, unless it has an App or a token itself.

    Raises UsageError if the file can't be read.
    """
    settings, server = load_settings({}, environment), read_server_variables(environment)
    if settings.has_app or settings.github_token is not None:
        return environment
    credentials = read_stored_app(Path(server.data_dir))
    if credentials is None:
        return environment
    added = {
        "RESOLVER_APP_ID": str(credentials.id),
        "RESOLVER_APP_PRIVATE_KEY": credentials.pem.get_secret_value(),
    }
    if server.app_client_secret is None:
        added["RESOLVER_APP_CLIENT_SECRET"] = credentials.client_secret.get_secret_value()
    if server.webhook_secret is None:
        added["GITHUB_WEBHOOK_SECRET"] = credentials.webhook_secret.get_secret_value()
    return {**environment, **added}
