"""Settings of the server for individual owners: the accounts on which the App is installed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from resolver.config.bounded_yaml import read_yaml
from resolver.config.setting_names import RENAMED, name_faults
from resolver.config.settings import Settings, load_settings
from resolver.errors import UsageError
from resolver.models.repository import owner_of

SERVER_WIDE = frozenset(
    {
        "server",
        "app_id",
        "app_private_key",
        "github_token",
        "github_urls",
        "bot_login",
        "retry_seconds",
    }
)
"""Settings that a process has one value of: its credentials, addresses and stores."""

SERVER_WIDE_PARTS = (("run_quotas", "user_active"), ("cost_quotas", "server_day"))
"""Limits of all owners together."""

_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,99})")


@dataclass(frozen=True)
class OwnerSettings:
    """The settings of owners, by their login in lower case, as the file has them."""

    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def options_for(self, repository: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options with those of the repository's owner, which come before all others."""
        return {**options, **self.values.get(owner_of(repository), {})}

    def load_all(
        self, options: Mapping[str, Any], environment: Mapping[str, str]
    ) -> dict[str, Settings]:
        """Return the settings of each owner. Raises UsageError."""
        return {owner: self._load(owner, options, environment) for owner in self.values}

    def _load(
        self, owner: str, options: Mapping[str, Any], environment: Mapping[str, str]
    ) -> Settings:
        try:
            return load_settings(self.options_for(owner, options), environment)
        except UsageError as error:
            raise UsageError(f"the settings of {owner}: {error.what}", error.next_step) from error


def choose_settings(
    settings: Settings, owners: Mapping[str, Settings], repository: str
) -> Settings:
    """Return the settings of a repository's owner, or else those of the server."""
    return owners.get(owner_of(repository), settings)


def read_owner_settings(file: str) -> OwnerSettings:
    """Return the settings in a file; no owner has any if `file` is "". Raises UsageError."""
    if not file:
        return OwnerSettings()
    try:
        content = read_yaml(Path(file).read_bytes())
    except OSError as error:
        raise UsageError(
            f"the settings of owners can't be read: {file}: {error.strerror}",
            "correct RESOLVER_OWNERS_FILE, or leave it empty",
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        # The error can quote the file, which may have keys.
        mark = getattr(error, "problem_mark", None)
        location = f", line {mark.line + 1}" if mark else ""
        raise UsageError(f"{file}{location}: not YAML", "correct the file") from None
    owners = content if isinstance(content, dict) else {} if content is None else None
    if owners is None or not all(isinstance(values, dict) for values in owners.values()):
        raise UsageError(f"{file}: it has no settings by owner", "write it as in server.md")
    faults = [fault for owner, values in owners.items() for fault in _faults(str(owner), values)]
    if faults:
        raise UsageError(f"{file}: {'; '.join(faults)}", "see docs/how-to/server.md")
    return OwnerSettings({str(owner).lower(): values for owner, values in owners.items()})


def _faults(owner: str, values: Mapping[Any, Any]) -> list[str]:
    """Return what is wrong with the settings of an owner, apart from their values."""
    if not _OWNER.fullmatch(owner):
        return [f"{owner[:100]!r} is no login"]
    names = [str(name) for name in values]
    allowed = [name for name in Settings.model_fields if name not in SERVER_WIDE]
    faults = [f"{owner}: {fault}" for fault in name_faults(names, Settings.model_fields, allowed)]
    faults += [
        f"{owner}: write {RENAMED[name]!r} in place of {name!r}"
        for name in names
        if name in RENAMED
    ]
    for name, part in SERVER_WIDE_PARTS:
        if isinstance(values.get(name), dict) and part in values[name]:
            faults.append(f"{owner}: {name}: {part!r} is a limit of all owners together")
    if "base_url" in names and "api_key" not in names:
        faults.append(f"{owner}: 'base_url' needs an 'api_key' of its own")
    return faults
