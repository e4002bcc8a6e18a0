"""The environment variables of a server: its secrets, and where it stores its data.

They are no settings: they belong to the process, as its port does, and not to a run.
"""

import re
from collections.abc import Mapping

from pydantic import SecretStr, ValidationError, field_validator
from pydantic_settings import SettingsConfigDict

from resolver.config.declaration import setting
from resolver.config.setting_messages import value_fault
from resolver.config.sources import DeclaredSettings, own_variables, variable_source
from resolver.errors import UsageError


class ServerVariables(DeclaredSettings):
    """What a server is told by its environment alone."""

    model_config = SettingsConfigDict(frozen=True)

    webhook_secret: SecretStr | None = setting(
        None,
        "Secret that signs the webhook's deliveries. The server needs it.",
        "GITHUB_WEBHOOK_SECRET",
    )
    app_client_secret: SecretStr | None = setting(
        None,
        "Client secret of the GitHub App. With it people log in to the server's pages with GitHub, "
        "and see the runs of the repositories that they can read.",
    )
    database_url: str = setting(
        "sqlite:///resolver.db",
        "URL of the database: SQLite (`sqlite:///FILE`) or PostgreSQL (`postgresql://...`).",
    )
    data_dir: str = setting(
        "resolver-runs",
        "Folder of this process for clones, sandboxes and, by default, the logs and files of runs.",
    )
    run_store: str | None = setting(
        None,
        "Where the logs and files of runs are: a folder, or `s3://BUCKET/PREFIX` in an "
        "S3-compatible store. All processes of a server have the same. When unset, the folder "
        "`runs` in `RESOLVER_DATA_DIR`, for one process with SQLite.",
    )
    public_url: str | None = setting(
        None,
        "Address at which people reach this server, like `https://resolver.example.org`. With it "
        "and `RESOLVER_APP_CLIENT_SECRET`, comments link to a live page of the run.",
    )

    @field_validator("public_url")
    @classmethod
    def _public_url_is_an_address(cls, value: str | None) -> str | None:
        if value and not re.fullmatch(r"https?://[\w.:\[\]-]+(?:/[\w.~/-]*)?", value, re.A):
            raise ValueError("it is not an address like https://resolver.example.org")
        return value and value.rstrip("/")


def read_server_variables(environment: Mapping[str, str]) -> ServerVariables:
    """Return the variables of a server. Raises UsageError that names the variable."""
    source = variable_source(
        ServerVariables, environment, own_variables, ServerVariables.model_fields
    )
    try:
        return ServerVariables(_build_sources=((source,), {}))
    except ValidationError as error:
        faults = [value_fault(detail, (source,)) for detail in error.errors()]
        raise UsageError("; ".join(faults), "correct the server's environment") from None
