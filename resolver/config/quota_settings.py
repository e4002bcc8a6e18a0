"""Settings of the quotas that all runs of a repository share, of the dashboard and of retries."""

from pydantic_settings import BaseSettings

from resolver.config.model_settings import setting


class QuotaSettings(BaseSettings):
    """Daily quotas, as recorded in the quota ledger of the repository."""

    max_runs_per_thread_day: int = setting(
        20,
        "Maximum number of runs on one issue or pull request in a day (UTC); 0 means no limit.",
        option=False,
        ge=0,
    )
    max_runs_per_user_day: int = setting(
        50,
        "Maximum number of runs that one account may start in a day; 0 means no limit.",
        option=False,
        ge=0,
    )
    max_runs_per_repository_day: int = setting(
        200,
        "Maximum number of runs on a repository in a day; 0 means no limit.",
        option=False,
        ge=0,
    )
    max_cost_per_thread_day: float | None = setting(
        None,
        "Maximum cost of the runs on one issue or pull request in a day, in US dollars; 10 times "
        "`max_budget` when unset, 0 means no limit.",
        option=False,
        ge=0,
        allow_inf_nan=False,
    )
    max_cost_per_user_day: float | None = setting(
        None,
        "Maximum cost of the runs of one account in a day, in US dollars; 20 times `max_budget` "
        "when unset, 0 means no limit.",
        option=False,
        ge=0,
        allow_inf_nan=False,
    )
    max_cost_per_repository_day: float | None = setting(
        None,
        "Maximum cost of all runs on a repository in a day, in US dollars; 50 times `max_budget` "
        "when unset, 0 means no limit.",
        option=False,
        ge=0,
        allow_inf_nan=False,
    )
    max_bot_chain: int = setting(
        3,
        "Maximum number of consecutive runs on one issue or pull request that bots start without "
        "a comment of a person in between; 0 means no limit.",
        option=False,
        ge=0,
    )
    dashboard: bool = setting(
        False,
        "Maintain an issue that shows runs, costs and refusals, with checkboxes to stop or "
        "continue a run.",
        option=False,
    )
    outage_retry_seconds: float = setting(
        43200.0,
        "Seconds for which the server retries a request that was stopped by an outage of GitHub "
        "or of the model's provider; 0 disables retries.",
        option=False,
        ge=0,
        le=604800,
    )
