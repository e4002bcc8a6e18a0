"""All settings in one model, and the function that loads it.

The command line, the environment, the Action's inputs and `.github/resolver.yml` feed the model;
docs/reference/settings.md is generated from it.

Precedence, highest first: options, Action inputs (`INPUT_*`), environment (`RESOLVER_*` and
established names like LLM_MODEL), `.github/resolver.yml` of the target's default branch (only the
settings marked `repository`), defaults.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from resolver.config.agent_settings import AgentSettings, ConfirmationSettings
from resolver.config.bounded_yaml import read_yaml
from resolver.config.declaration import (
    SettingGroup,
    setting_arguments,
    setting_parts,
)
from resolver.config.documentation import DOCS
from resolver.config.github_settings import (
    AccessSettings,
    ContextSettings,
    GitHubSettings,
    TriggerSettings,
)
from resolver.config.image_reference import check_repository_image
from resolver.config.model_settings import ModelSettings
from resolver.config.publishing_settings import PublishingSettings
from resolver.config.run_settings import (
    LimitSettings,
    QuotaSettings,
    SandboxSettings,
    ServerSettings,
)
from resolver.config.setting_names import (
    input_variables,
    name_faults,
    own_variables,
    value_fault,
)
from resolver.config.verification_settings import VerificationSettings
from resolver.errors import UsageError
from resolver.models.run import RunLimits

REPOSITORY_FILE = ".github/resolver.yml"

MAX_CORRECTIONS = 2
"""Number of times that the agent gets the output of checks that fail because of its change, to
correct it within what is left of its limits."""

MAX_EXTENSION = 3
"""Factor by which comments can extend the limits of a run, in total."""


class Settings(
    ServerSettings,
    QuotaSettings,
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
):
    """All settings of one run. Frozen; created once at an entry point and passed on.

    The groups are listed in the reverse of their order in docs/reference/settings.md.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

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
        seconds = self.max_extended_limits.max_time + self.timeout_seconds.setup
        seconds += self.timeout_seconds.verification * verifications
        return timedelta(seconds=seconds, hours=1)

    @property
    def secrets(self) -> tuple[str, ...]:
        """All secret values, for the redactor."""
        values = (
            self.api_key,
            self.github_token,
            self.app_private_key,
            self.server.webhook_secret,
            self.server.client_secret,
        )
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
    sources = _Sources(options or {}, environment, repository or {})
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for name, field in Settings.model_fields.items():
        if only and name not in only:
            continue
        candidates = list(sources.values_of(name, field))
        if candidates:
            values[name] = _combine(name, field, candidates, origin)
    allowed = [n for n, f in Settings.model_fields.items() if setting_arguments(f)["repository"]]
    faults = [
        f"{REPOSITORY_FILE}: {fault}"
        for fault in name_faults(repository or {}, Settings.model_fields, allowed)
    ]
    advice = [f"a repository may set: {', '.join(allowed)}"] if faults else []
    try:
        settings = Settings(**values)
    except ValidationError as error:
        fields = Settings.model_fields
        faults += [value_fault(detail, origin, fields) for detail in error.errors()]
        advice.append(f"see {DOCS}/reference/settings.md for the values it takes")
    if faults:
        raise UsageError("; ".join(faults), advice[0])
    return settings


@dataclass(frozen=True)
class _SourceValue:
    """A value from one source.

    label: names the source in messages.
    part: the part of the setting; "" for the whole setting.
    """

    label: str
    part: str
    value: Any


@dataclass(frozen=True)
class _Sources:
    """The sources of settings, as `load_settings` takes them."""

    options: Mapping[str, Any]
    environment: Mapping[str, str]
    repository: Mapping[str, Any]

    def values_of(self, name: str, field: FieldInfo) -> Iterator[_SourceValue]:
        """Yield the values of a setting from all sources, lowest precedence first.

        Among the variables and among the inputs, those with the setting's own name come last.
        """
        if setting_arguments(field)["repository"] and name in self.repository:
            yield self._from_repository(name)
        for variable, part, annotation in _variables(name):
            text = self.environment.get(variable, "").strip()
            if text:
                yield _SourceValue(variable, part, _parse_variable(variable, annotation, text))
        if self.options.get(name) is not None:
            yield _SourceValue(f"--{name.replace('_', '-')}", "", self.options[name])

    def _from_repository(self, name: str) -> _SourceValue:
        label, value = f"{REPOSITORY_FILE}, {name}", self.repository[name]
        if name == "image":
            value = check_repository_image(value, label)
        return _SourceValue(label, "", value)


@cache  # the names are fixed, and making them again is most of the time of loading settings
def _variables(name: str) -> tuple[tuple[str, str, Any], ...]:
    """Return the environment variables that set a setting or a part of it, each with the part, ""
    for the whole setting, and the type of the value. The lowest precedence comes first."""
    field = Settings.model_fields[name]
    parts = [("", part_name, part) for part_name, part in setting_parts(field).items()]
    return tuple(
        (variable, part_name, target.annotation)
        for variables_of in (own_variables, input_variables)
        for own_name, part_name, target in (*parts, (name, "", field))
        for variable in reversed(variables_of(own_name, setting_arguments(target)["names"]))
    )


def _combine(
    name: str, field: FieldInfo, candidates: Sequence[_SourceValue], origin: dict[str, str]
) -> Any:
    """Return the value of a setting from what the sources give, and note where it comes from.

    Of a setting with parts, each part comes from the source with the highest precedence that has
    it. Any other setting comes from one source as a whole.

    candidates: lowest precedence first, at least one.
    origin: gets the labels of the sources, see `value_fault`.
    """
    parts = setting_parts(field)
    origin[name] = candidates[-1].label
    if not parts and not any(candidate.part for candidate in candidates):
        return candidates[-1].value
    combined: dict[str, Any] = {}
    for candidate in candidates:
        value = {candidate.part: candidate.value} if candidate.part else candidate.value
        if not isinstance(value, Mapping):
            origin[name] = candidate.label
            return value
        combined |= value
        for part in value:
            suffix = (
                "" if candidate.part or not isinstance(candidate.value, Mapping) else f", {part}"
            )
            origin[f"{name}.{part}"] = f"{candidate.label}{suffix}"
    return combined


def _parse_variable(variable: str, annotation: Any, text: str) -> Any:
    """Return a variable's text in the form that its setting accepts.

    A list is split at commas and line breaks, a mapping is parsed as YAML; anything else stays
    text. Raises UsageError if the YAML is invalid.
    """
    if annotation in (tuple[str, ...], tuple[str, ...] | None):
        return tuple(part.strip() for part in text.replace("\n", ",").split(",") if part.strip())
    structured = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    if get_origin(annotation) is not dict and not structured:
        return text
    try:
        return read_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        location = f", line {mark.line + 1}" if mark else ""
        raise UsageError(
            f"{variable}{location}: not YAML: {getattr(error, 'problem', error)}",
            f"write it as in {DOCS}/reference/settings.md",
        ) from None


def repository_settings(content: bytes | None) -> dict[str, object]:
    """Return the parsed `.github/resolver.yml`, {} for none. Raises UsageError with the line."""
    if content is None:
        return {}
    try:
        data = read_yaml(content)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        location = f", line {mark.line + 1}" if mark else ""
        raise UsageError(
            f"{REPOSITORY_FILE}{location}: not YAML: {getattr(error, 'problem', error)}",
            "correct the file on the default branch",
        ) from error
    if data is None:
        return {}
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError(
            f"{REPOSITORY_FILE}: settings are `name: value` lines",
            f"see {DOCS}/reference/settings.md",
        )
    return data
