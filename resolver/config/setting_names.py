"""Names of settings: old ones and what replaced them, suggestions for misspelled ones, messages."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Final

from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from resolver.config.declaration import setting_arguments, setting_parts

PREFIX = "RESOLVER_"

_COMMAND_VARIABLES = frozenset({"RESOLVER_SANDBOX_TOKEN"})
"""Variables that single commands read, in addition to the settings."""

# Kubernetes and Docker links define variables for each service: one named `resolver` causes these.
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_SERVICE_LINK = re.compile(
    r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$"
)


def input_variables(*names: str) -> list[str]:
    """Return the variables of inputs with these names, "" for none, in order of precedence.

    The Actions runner upper-cases the name of an input and keeps its hyphens, so that both
    spellings are read.
    """
    inputs = [f"INPUT_{name.upper()}" for name in names if name]
    hyphenated = [variable.replace("_", "-").replace("INPUT-", "INPUT_", 1) for variable in inputs]
    return list(dict.fromkeys([*inputs, *hyphenated]))


def own_variables(name: str, names: Iterable[str] = ()) -> list[str]:
    """Return the variables that are read in addition to inputs, in order of precedence.

    name: name of a setting, or an old name of one; "" for none.
    names: further variables, as given to `setting` or `part`.
    """
    return [*([f"{PREFIX}{name.upper()}"] if name else []), *names]


def variable_names(name: str, field: FieldInfo) -> list[str]:
    """Return all environment variables that set a setting or a part of it."""
    old_settings = [old_name for old_name, _ in old_names(name)]
    return [
        *_variables_of(name, setting_arguments(field)["names"]),
        *_variables_of("", _part_variables(field)),
        *(variable for old_name in old_settings for variable in _variables_of(old_name)),
    ]


def _part_variables(field: FieldInfo) -> list[str]:
    """Return the environment variables that set single parts of a setting."""
    return [
        variable
        for part in setting_parts(field).values()
        for variable in setting_arguments(part)["names"]
    ]


def environment_warnings(
    environment: Mapping[str, str], settings: Mapping[str, FieldInfo]
) -> list[str]:
    """Return one sentence for each variable with the name of an old, a removed or no setting.

    Among the variables that are no settings at all, only `RESOLVER_*` ones are reported.

    settings: the fields of `Settings`.
    """
    known = {v for name, field in settings.items() for v in variable_names(name, field)}
    # A part of a setting can keep the variable of the setting that it was before.
    current = {v for field in settings.values() for v in _part_variables(field)}
    warnings = {
        variable: _rename_warning(variable, old)
        for old in RENAMED
        for variable in _variables_of(old)
        if variable not in current
    }
    warnings |= {
        variable: _removal_warning(variable, old)
        for old in REMOVED
        for variable in _variables_of(old)
    }
    unknown = {
        variable: f"{variable} is not a setting and is ignored"
        f"{_suggestion(variable, known, current)}"
        for variable in environment
        if variable.startswith(PREFIX)
        and variable not in known | _COMMAND_VARIABLES
        and not _SERVICE_LINK.search(variable)
    }
    # An input that is not given is an empty variable.
    applicable = {
        variable: text for variable, text in warnings.items() if environment.get(variable)
    }
    sentences = {v: text for v, text in unknown.items() if v not in warnings} | applicable
    return [sentences[variable] for variable in sorted(sentences)]


def repository_warnings(file: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return one sentence for each name in the repository's file that is an old or removed one."""
    return tuple(_repository_warnings(file, names))


def _repository_warnings(file: str, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if name in RENAMED:
            yield f"{file}: {name} is deprecated; write `{current_syntax(name)}`"
        elif name in REMOVED:
            yield _removal_warning(f"{file}: {name}", name)


def name_faults(
    names: Iterable[str], settings: Mapping[str, FieldInfo], allowed: Collection[str]
) -> Iterator[str]:
    """Yield one sentence for each name that must not be in the repository's settings file.

    settings: the fields of `Settings`. No suggestion is made for a name that is one of them.
    allowed: those that a repository may set. Their old names are accepted, and so are removed
    settings.
    """
    for name in names:
        if name in allowed or name in REMOVED:
            continue
        if name in RENAMED and target_of(name)[0] in allowed:
            continue
        suggestion = None if name in settings or name in RENAMED else closest_name(name, allowed)
        hint = f" (did you mean {suggestion!r}?)" if suggestion else ""
        yield f"{name!r} can't be set there{hint}"


def value_fault(
    error: ErrorDetails, origin: Mapping[str, str], settings: Mapping[str, FieldInfo]
) -> str:
    """Return a sentence that says where an invalid value was set and why it is invalid.

    origin: the source of each setting's value, by the name of the setting; of structured settings
    also by `SETTING.PART`. settings: the fields of `Settings`.
    """
    name, *part_path = [str(part) for part in error["loc"]] or [""]
    setting = name
    if part_path and f"{name}.{part_path[0]}" in origin:
        name, part_path = f"{name}.{part_path[0]}", part_path[1:]
    location = ", ".join([origin.get(name, name), *([".".join(part_path)] if part_path else [])])
    parts = setting_parts(settings[setting]) if setting in settings else {}
    if error["type"] == "extra_forbidden" and len(error["loc"]) == 2 and parts:
        suggestion = closest_name(str(error["loc"][1]), parts)
        hint = f" (did you mean {suggestion!r}?)" if suggestion else f", only {', '.join(parts)}"
        return f"{location}: is not a part of {setting}{hint}"
    return f"{location}: {error['msg'].removeprefix('Value error, ')}"


def closest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar of the names, or None if none is similar."""
    matches = get_close_matches(name, sorted(names), n=1)
    return matches[0] if matches else None


def _variables_of(name: str, names: Iterable[str] = ()) -> list[str]:
    return [*input_variables(name, *names), *own_variables(name, names)]


def _rename_warning(variable: str, old: str) -> str:
    name, part = target_of(old)
    is_input = not variable.startswith(PREFIX)
    current = f"the input {name.replace('_', '-')}" if is_input else f"{PREFIX}{name.upper()}"
    value = f" with the value {{{part}: ...}}" if part else ""
    return f"{variable} is deprecated; use {current}{value}"


def _removal_warning(label: str, old: str) -> str:
    return f"{label} no longer exists and is ignored: {REMOVED[old]}"


def _suggestion(variable: str, known: Collection[str], current: Collection[str]) -> str:
    """Return `; did you mean X?` with the known name that is most similar, or "" if none is.

    An old name is never suggested, but the one that replaces it. current: variables with an old
    name that parts of settings have kept.
    """
    names = (name.removeprefix(PREFIX) for name in known if name.startswith(PREFIX))
    closest = closest_name(variable.removeprefix(PREFIX), names)
    if closest is None:
        return ""
    is_old = closest.lower() in RENAMED and f"{PREFIX}{closest}" not in current
    name = target_of(closest.lower())[0].upper() if is_old else closest
    return f"; did you mean {PREFIX}{name}?"


RENAMED: Final[Mapping[str, str]] = {
    "api_version": "model_options.api_version",
    "model_region": "model_options.region",
    "model_project": "model_options.project",
    "temperature": "model_options.temperature",
    "reasoning_effort": "model_options.reasoning_effort",
    "seed": "model_options.seed",
    "stop_words": "model_options.stop",
    "model_stream": "model_options.stream",
    "model_timeout": "model_options.timeout",
    "model_retries": "model_options.retries",
    "input_cost_per_token": "model_options.input_cost_per_token",
    "output_cost_per_token": "model_options.output_cost_per_token",
    "skills_embedding_model": "services.embedding",
    "command_timeout": "timeout_seconds.command",
    "setup_timeout": "timeout_seconds.setup",
    "verification_seconds": "timeout_seconds.verification",
    "max_patch_bytes": "max_patch.bytes",
    "max_patch_files": "max_patch.files",
    "builds": "image_options.build",
    "keep_setup": "image_options.keep_prepared",
    "memory": "sandbox_limits.memory",
    "cpus": "sandbox_limits.cpus",
    "pids": "sandbox_limits.pids",
    "disk": "sandbox_limits.disk_gigabytes",
    "egress_max_bytes": "sandbox_limits.egress_bytes",
    "remote_url": "remote.url",
    "remote_ca": "remote.ca_file",
    "remote_plain_http": "remote.allow_plain_http",
    "github_api_url": "github_urls.api",
    "github_server_url": "github_urls.server",
    "github_graphql_url": "github_urls.graphql",
    "write_retry_seconds": "retry_seconds.github_writes",
    "last_word_time": "retry_seconds.final_comment",
    "outage_retry_seconds": "retry_seconds.outage",
    "max_check_fixes": "automatic_run_limits.check_fixes",
    "sweep_issues": "automatic_run_limits.sweep_runs",
    "sweep_total": "automatic_run_limits.sweep_cost",
    "max_bot_chain": "automatic_run_limits.bot_chain",
    "pictures": "issue_images.max_images",
    "picture_hosts": "issue_images.hosts",
    "organization_skills": "enable_organization_skills",
    "verification_rounds": "verify.rounds",
    "completions_dir": "telemetry.completions_dir",
    "remote_token": "remote.token",
    "webhook_secret": "server.webhook_secret",
    "database_url": "server.database_url",
    "data_dir": "server.data_dir",
    "public_url": "server.public_url",
    "max_delivery_age_seconds": "server.max_delivery_age_seconds",
    "confirmation_options": "confirmation",
    "agents_choose_models": "enable_agent_model_choice",
    "condenser_max_tokens": "condenser.max_tokens",
    "confirmation_wait": "confirmation.wait_seconds",
    "tool_risks": "confirmation.tool_risks",
    "progress_interval": "comment_interval_seconds.progress",
    "control_poll": "comment_interval_seconds.commands",
    "max_runs_per_thread_day": "run_quotas.thread_day",
    "max_runs_per_user_day": "run_quotas.user_day",
    "max_runs_per_repository_day": "run_quotas.repository_day",
    "max_cost_per_thread_day": "cost_quotas.thread_day",
    "max_cost_per_user_day": "cost_quotas.user_day",
    "max_cost_per_repository_day": "cost_quotas.repository_day",
    "max_monthly_budget": "cost_quotas.repository_month",
    "max_daily_budget": "cost_quotas.server_day",
}
"""Old name to the setting, or `SETTING.PART`, that replaces it."""

REMOVED: Final[Mapping[str, str]] = {
    "review_max_comments": "a review has at most 25 comments, the most important ones",
}
"""Name of a removed setting to the reason, which completes `X no longer exists and is ignored:`."""


def target_of(old: str) -> tuple[str, str]:
    """Return the setting and its part, "" for the whole setting, that replace a renamed setting."""
    name, _, part = RENAMED[old].partition(".")
    return name, part


def old_names(name: str) -> tuple[tuple[str, str], ...]:
    """Return each old name that sets the setting or a part of it, with that part or ""."""
    return _old_names_by_setting().get(name, ())


@cache
def _old_names_by_setting() -> Mapping[str, tuple[tuple[str, str], ...]]:
    names: dict[str, tuple[tuple[str, str], ...]] = {}
    for old in RENAMED:
        name, part = target_of(old)
        names[name] = (*names.get(name, ()), (old, part))
    return names


def current_syntax(old: str, value: str = "...") -> str:
    """Return how `old` is written today, like `model_options: {temperature: ...}`."""
    name, part = target_of(old)
    return f"{name}: {{{part}: {value}}}" if part else f"{name}: {value}"
