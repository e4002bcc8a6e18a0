"""All settings in one model, and the function that loads it.

The command line, the environment, the Action's inputs and `.github/resolver.yml` feed the model;
docs/reference/settings.md is generated from it.
"""

import os
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from pydantic import PrivateAttr, ValidationError
from pydantic_settings import SettingsConfigDict

from resolver.config.agent_settings import AgentSettings, ConfirmationSettings
from resolver.config.declaration import SettingGroup, setting_arguments
from resolver.config.documentation import DOCS
from resolver.config.github_settings import (
    AccessSettings,
    ContextSettings,
    GitHubAddresses,
    GitHubSettings,
    TriggerSettings,
)
from resolver.config.model_settings import ModelSettings
from resolver.config.publishing_settings import PublishingSettings
from resolver.config.retries import Pace, read_pace
from resolver.config.run_settings import LimitSettings, SandboxSettings
from resolver.config.setting_messages import name_faults, value_fault
from resolver.config.sources import (
    DeclaredSettings,
    SettingsFile,
    file_source,
    input_variables,
    option_source,
    own_variables,
    repository_names,
    variable_source,
)
from resolver.config.verification_settings import VerificationSettings
from resolver.errors import UsageError
from resolver.models.run import RunLimits

MAX_CORRECTIONS = 2
"""Number of times that the agent gets the output of checks that fail because of its change, to
correct it within what is left of its limits."""

MAX_EXTENSION = 3
"""Factor by which comments can extend the limits of a run, in total."""


class Settings(
    PublishingSettings,
    ConfirmationSettings,
    AgentSettings,
    ContextSettings,
    TriggerSettings,
    AccessSettings,
    GitHubSettings,
    VerificationSettings,
    SandboxSettings,
    LimitSettings,
    ModelSettings,
    DeclaredSettings,
):
    """All settings of one run. Frozen; created once at an entry point and passed on.

    The groups are listed in the reverse of their order in docs/reference/settings.md.
    """

    model_config = SettingsConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    _addresses: GitHubAddresses = PrivateAttr(default_factory=GitHubAddresses)
    _pace: Pace = PrivateAttr(default_factory=Pace)

    @property
    def pace(self) -> Pace:
        """How often GitHub is called, and how long it is tried again."""
        return self._pace

    @property
    def github_api_url(self) -> str:
        """Address of the REST API."""
        return self._addresses.api

    @property
    def github_server_url(self) -> str:
        """Address of the server to clone from and push to."""
        return self._addresses.server

    @property
    def github_graphql_url(self) -> str:
        """Address of the GraphQL API."""
        return self._addresses.graphql

    def clone_url(self, repository: str) -> str:
        """Return the URL that the repository OWNER/NAME is cloned from and pushed to."""
        return f"{self.github_server_url.rstrip('/')}/{repository}.git"

    @property
    def limits(self) -> RunLimits:
        """The limits of a run."""
        return RunLimits(
            max_iterations=self.max_iterations, max_budget=self.max_budget, max_time=self.max_time
        )

    @property
    def max_extended_limits(self) -> RunLimits:
        """The limits that comments can extend a run to."""
        return RunLimits(
            max_iterations=self.max_iterations * MAX_EXTENSION,
            max_budget=self.max_budget * MAX_EXTENSION,
            max_time=self.max_time * MAX_EXTENSION,
        )

    @property
    def longest_run(self) -> timedelta:
        """Maximum duration with all extensions and verifications, and an hour for cloning, starting
        and publishing."""
        verifications = MAX_CORRECTIONS + 1 if self.verify else 0
        seconds = self.max_extended_limits.max_time + self.setup_seconds
        seconds += self.verification_seconds * verifications
        return timedelta(seconds=seconds, hours=1)

    @property
    def secrets(self) -> tuple[str, ...]:
        """All secret values, for the redactor."""
        values = (self.api_key, self.github_token, self.app_private_key)
        services = (service.api_key for service in self.services.values())
        own_secrets = (secret.get_secret_value() for secret in (*values, *services) if secret)
        secrets = (*own_secrets, *self.mcp_secrets)
        return tuple(value for value in secrets if value)


GROUPS: tuple[type[SettingGroup], ...] = tuple(
    base for base in reversed(Settings.__bases__) if issubclass(base, SettingGroup)
)
"""The groups of settings, in the order in which docs/reference/settings.md lists them."""

EVENT_SETTINGS = frozenset(
    name
    for name, field in Settings.model_fields.items()
    if setting_arguments(field)["decides_start"]
)
"""Settings that decide who may start work, what triggers it, and how Resolver can answer."""


def load_settings(
    options: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    repository: Mapping[str, Any] | None = None,
    only: Collection[str] = frozenset(),
) -> Settings:
    """Return the settings from all sources.

    options: values given on the command line; None means not given.
    environment: the environment variables; the process's own by default.
    repository: the parsed `.github/resolver.yml` of the default branch.
    only: names of the settings to load; the others keep their defaults. Empty for all.

    Raises UsageError that names the source and the setting.
    """
    environment = os.environ if environment is None else environment
    file = repository if isinstance(repository, SettingsFile) else SettingsFile(repository or {})
    names = only or Settings.model_fields
    # The order is that of precedence.
    sources = (
        option_source(Settings, options or {}, names),
        variable_source(Settings, environment, input_variables, names),
        variable_source(Settings, environment, own_variables, names),
        file_source(Settings, file, names),
    )
    faults = [] if only else list(name_faults(file, Settings))
    advice = [f"a repository may set: {', '.join(repository_names(Settings))}"] if faults else []
    try:
        settings = Settings(_build_sources=(sources, {}))
    except ValidationError as error:
        faults += [value_fault(detail, sources) for detail in error.errors()]
        advice.append(f"see {DOCS}/reference/settings.md for the values it takes")
    if faults:
        raise UsageError("; ".join(faults), advice[0])
    settings._addresses = GitHubAddresses.from_environment(environment)
    settings._pace = read_pace(environment)
    return settings
