"""The settings of the guard: what all runs together may be, and the dashboard that shows them."""

from pydantic_settings import BaseSettings

from resolver.config.model_settings import setting


class QuotaSettings(BaseSettings):
    """Ceilings of a day, by the ledger that the repository keeps."""

    max_runs_per_thread_day: int = setting(
        20, "Most runs on one thread in a day (UTC); 0 is no bound.", option=False, ge=0
    )
    max_runs_per_user_day: int = setting(
        50, "Most runs that one account may start in a day; 0 is no bound.", option=False, ge=0
    )
    max_runs_per_repository_day: int = setting(
        200, "Most runs on a repository in a day; 0 is no bound.", option=False, ge=0
    )
    max_cost_per_thread_day: float | None = setting(
        None,
        "Most US dollars that the runs on one thread may cost in a day; 10 times `max_budget` "
        "unless given, 0 is no bound.",
        option=False,
        ge=0,
        allow_inf_nan=False,
    )
    max_cost_per_user_day: float | None = setting(
        None,
        "Most US dollars that the runs of one account may cost in a day; 20 times `max_budget` "
        "unless given, 0 is no bound.",
        option=False,
        ge=0,
        allow_inf_nan=False,
    )
    max_cost_per_repository_day: float | None = setting(
        None,
        "Most US dollars that all runs on a repository may cost in a day; 50 times `max_budget` "
        "unless given, 0 is no bound.",
        option=False,
        ge=0,
        allow_inf_nan=False,
    )
    max_bot_chain: int = setting(
        3,
        "Most runs on one thread that bots start after each other without a person's word "
        "between; 0 is no bound.",
        option=False,
        ge=0,
    )
    dashboard: bool = setting(
        False,
        "Keep an issue that shows runs, costs and refusals, with boxes to stop a run and to go "
        "on with one.",
        option=False,
    )
    outage_retry_seconds: float = setting(
        43200.0,
        "Seconds for which the server tries a request again that an outage of GitHub or of the "
        "model's provider has stopped; 0 does not try again.",
        option=False,
        ge=0,
        le=604800,
    )
