"""Groups of settings, in the order in which the reference lists them.

`scripts/settings_docs.py` makes docs/settings.md from them. A test checks that every setting is in
exactly one group.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class SettingGroup:
    """Settings that are changed for the same reason. when: says when one would change them."""

    title: str
    when: str
    settings: tuple[str, ...]


ESSENTIALS = (
    "model",
    "api_key",
    "base_url",
    "github_token",
    "mention",
    "image",
    "setup",
    "max_budget",
    "max_iterations",
    "egress",
)
"""The settings that most repositories need."""

GROUPS = (
    SettingGroup(
        "Model",
        "Change these to choose a model, its endpoint and its parameters, to name models that "
        "stand in for it, or to use other models for single services.",
        (
            "model", "api_key", "base_url", "dialect", "model_options", "fallback_models",
            "model_rules", "services", "completions_dir",
        ),
    ),
    SettingGroup(
        "Limits",
        "Change these to bound what one run may cost, how long it may take and how large its "
        "change may be.",
        (
            "max_iterations", "max_budget", "max_time", "max_extension", "timeout_seconds",
            "max_patch",
        ),
    ),
    SettingGroup(
        "Sandbox",
        "Change these to give the agent the environment of your project, to let it reach hosts, or "
        "to run it on another machine.",
        (
            "runtime", "image", "image_options", "setup", "sandbox_limits", "egress", "remote",
            "remote_token",
        ),
    ),
    SettingGroup(
        "Verification",
        "Change these to declare the commands that show whether a change works, and to decide for "
        "how long they are executed.",
        (
            "verify", "checks", "verification_seconds", "verification_rounds", "critique",
        ),
    ),
    SettingGroup(
        "GitHub",
        "Change these to use a token or a GitHub App, or to work with GitHub Enterprise Server.",
        (
            "github_token", "app_id", "app_private_key", "github_urls", "bot_login",
            "retry_seconds",
        ),
    ),
    SettingGroup(
        "Access",
        "Change these to decide who can start work.",
        (
            "required_permission", "allowed_users", "allowed_teams", "denied_users", "refusals",
            "max_delivery_age_seconds",
        ),
    ),
    SettingGroup(
        "Triggers",
        "Change these to decide what starts work: the mention, the label, reviews, failing checks, "
        "a schedule.",
        (
            "mention", "label", "review_teams", "fix_failing_checks", "automatic_run_limits",
        ),
    ),
    SettingGroup(
        "Context",
        "Change these to decide what the agent reads in addition to the issue.",
        (
            "base_branch", "clone_depth", "issue_images", "enable_organization_skills",
        ),
    ),
    SettingGroup(
        "Agent",
        "Change these to choose the agent, its tools and what it remembers.",
        (
            "agent", "enable_agent_model_choice", "mcp_servers", "mcp", "condenser", "notes",
        ),
    ),
    SettingGroup(
        "Confirmation",
        "Change these to look at risky actions before they run.",
        (
            "confirmation", "confirmation_options",
        ),
    ),
    SettingGroup(
        "Publishing",
        "Change these to decide how changes, reviews and comments appear on GitHub.",
        (
            "draft", "reviewers", "pull_request_labels", "assign_requester", "signed_commits",
            "base_moved", "fork_changes", "protected_paths", "review_verdicts", "resolve_threads",
            "progress_comments", "comment_interval_seconds",
        ),
    ),
    SettingGroup(
        "Quotas",
        "Change these to bound what all runs together may cost, and to show it in a dashboard.",
        (
            "run_quotas", "cost_quotas", "dashboard",
        ),
    ),
    SettingGroup(
        "Server and logs",
        "Change these to run the webhook server, or to keep the logs of Action runs elsewhere.",
        (
            "webhook_secret", "database_url", "data_dir", "public_url", "keep_log",
        ),
    ),
)  # fmt: skip
