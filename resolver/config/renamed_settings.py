"""Settings that were renamed, became part of another setting, or were removed.

The loader accepts a renamed setting under its old name from every source. A removed setting is
ignored. Both cause one warning, see `resolver.config.setting_names`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

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
    "agents_choose_models": "enable_agent_model_choice",
    "condenser_max_tokens": "condenser.max_tokens",
    "on_high": "confirmation_options.on_high",
    "confirmation_wait": "confirmation_options.wait_seconds",
    "risk_judge": "confirmation_options.judge",
    "tool_risks": "confirmation_options.tool_risks",
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
    "record_all_risks": "the event log has the low risks too if a model judges the risks",
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


def replacement(old: str, value: str = "...") -> str:
    """Return how `old` is written today, like `model_options: {temperature: ...}`."""
    name, part = target_of(old)
    return f"{name}: {{{part}: {value}}}" if part else f"{name}: {value}"
