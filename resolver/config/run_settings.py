"""Settings of a run's limits and sandbox, of quotas and of the webhook server."""

import re
from typing import ClassVar, Literal

from pydantic import SecretStr, field_validator

from resolver.config.allowed_hosts import AllowList
from resolver.config.declaration import ActionInput, SettingGroup, StructuredSetting, part, setting
from resolver.config.documentation import DOCS
from resolver.config.image_reference import ImagePattern

MIN_RETENTION_DAYS = 4


class TimeoutSettings(StructuredSetting):
    """Time limits of what is executed in the sandbox."""

    setup: float = part(900.0, "Seconds the setup may take.", gt=0, le=3600)
    verification: float = part(
        1200.0,
        "Seconds one verification of a change may take. The tests that the change affects are "
        "executed first, then the whole checks.",
        gt=0,
        le=86_400,
    )


class ImageOptions(StructuredSetting):
    """Settings of what Resolver may do with images on the container engine."""

    build: bool = part(
        False,
        "Build the sandbox image if `image` is `dockerfile:PATH`. A build runs "
        "the repository's commands with the network of the engine.",
    )
    browser: str = part(
        "",
        "Image with Playwright's MCP server, which gives the agent a browser. None when empty; it "
        f"needs the docker runtime. See {DOCS}/how-to/browser.md.",
    )
    services: tuple[str, ...] = part(
        (),
        "List of images of services that may run alongside the sandbox while checks are executed, "
        "such as `postgres`, `redis:7` or `ghcr.io/OWNER/*`. A declared check says "
        "which of them it needs. None when empty; they need the docker runtime. See "
        f"{DOCS}/how-to/checks.md.",
    )

    @field_validator("services")
    @classmethod
    def _are_image_patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            ImagePattern.parse(pattern)
        return value


class SandboxLimits(StructuredSetting):
    """Resources that a sandbox may use."""

    memory: str = part("4g", "Memory, like `512m` or `8g`.")
    cpus: float = part(2.0, "Number of CPU cores.", gt=0)
    pids: int = part(1024, "Maximum number of processes and threads.", ge=16)
    disk_gigabytes: float = part(10.0, "Gigabytes that may be written to disk.", gt=0)
    read_only_root: bool = part(
        False,
        "Make the image's files read-only in the container. The repository and temporary files are "
        "then in memory, and a setup can't install into the image. "
        f"See {DOCS}/how-to/environment.md.",
    )
    oci_runtime: str = part(
        "",
        "Runtime of the container, as the engine names it, like `runsc` for gVisor; the engine's "
        "default when empty.",
    )


class WebhookServer(StructuredSetting):
    """The webhook server: its secret, its storage and its deliveries."""

    webhook_secret: SecretStr | None = part(
        None,
        "Secret that signs the webhook's deliveries. The server needs it.",
        "GITHUB_WEBHOOK_SECRET",
        "RESOLVER_WEBHOOK_SECRET",
    )
    database_url: str = part(
        "sqlite:///resolver.db",
        "URL of the database: SQLite (`sqlite:///FILE`) or PostgreSQL (`postgresql://...`).",
        "RESOLVER_DATABASE_URL",
    )
    data_dir: str = part(
        "resolver-runs",
        "Folder in which the server stores the output of its runs.",
        "RESOLVER_DATA_DIR",
    )
    blob_store: str = part(
        "",
        "Bucket of an S3-compatible store for files of runs larger than 1 MB, as "
        "`s3://BUCKET/PREFIX`. They are in the database when empty. For servers with PostgreSQL.",
        "RESOLVER_BLOB_STORE",
    )
    public_url: str = part(
        "",
        "Address at which people reach this server, like `https://resolver.example.org`. Comments "
        "then link to a live page of the run, which anybody who has the link can read. No page "
        "and no link when empty.",
        "RESOLVER_PUBLIC_URL",
    )
    client_secret: SecretStr | None = part(
        None,
        "Client secret of the GitHub App. With it people log in to the server's pages with GitHub, "
        "and see the runs of the repositories that they can read.",
        "RESOLVER_APP_CLIENT_SECRET",
    )
    retention_days: int = part(
        90,
        "Age in days at which the server removes runs and finished requests, at least 4; 0 keeps "
        "them forever.",
        "RESOLVER_RETENTION_DAYS",
        ge=0,
    )
    log_format: Literal["text", "json"] = part(
        "text",
        "Format of the server's log: plain lines, or JSON with the id of the run (`json`).",
        "RESOLVER_LOG_FORMAT",
    )

    @field_validator("retention_days")
    @classmethod
    def _retention_is_long_enough(cls, value: int) -> int:
        if 0 < value < MIN_RETENTION_DAYS:
            raise ValueError(
                f"it is less than {MIN_RETENTION_DAYS} days: GitHub redelivers for three days, and "
                "a redelivery must find its request"
            )
        return value

    @field_validator("public_url")
    @classmethod
    def _public_url_is_an_address(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://[\w.:\[\]-]+(?:/[\w.~/-]*)?", value, re.A):
            raise ValueError("it is not an address like https://resolver.example.org")
        return value.rstrip("/")


class RunQuotas(StructuredSetting):
    """Maximum number of runs in a day (UTC)."""

    thread_day: int = part(20, "Runs on one issue or pull request in a day.", ge=0)
    user_day: int = part(50, "Runs that one account starts in a day.", ge=0)
    repository_day: int = part(200, "Runs on a repository in a day.", ge=0)


class CostQuotas(StructuredSetting):
    """Maximum cost of runs in a day (UTC), in US dollars."""

    thread_day: float | None = part(
        None,
        "Cost of the runs on one issue or pull request in a day; 10 times `max_budget` when unset.",
        ge=0,
        allow_inf_nan=False,
    )
    user_day: float | None = part(
        None,
        "Cost of the runs of one account in a day; 20 times `max_budget` when unset.",
        ge=0,
        allow_inf_nan=False,
    )
    repository_day: float | None = part(
        None,
        "Cost of all runs on a repository in a day; 50 times `max_budget` when unset.",
        ge=0,
        allow_inf_nan=False,
    )


class LimitSettings(SettingGroup):
    """Limits of one run."""

    title: ClassVar[str] = "Limits"
    when: ClassVar[str] = "Change these to bound what one run may cost and how long it may take."

    max_iterations: int = setting(
        250,
        "Maximum number of iterations of a run. An iteration is one reply of the model, of the "
        "agent itself or of an agent that it delegates to.",
        repository=True,
        ge=1,
        le=10_000,
        action_input=True,
    )
    max_budget: float = setting(
        5.0,
        "Maximum cost of a run in US dollars.",
        repository=True,
        gt=0,
        allow_inf_nan=False,
        action_input=True,
    )
    max_time: float = setting(
        3600.0,
        "Maximum duration of a run in seconds.",
        repository=True,
        gt=0,
        allow_inf_nan=False,
        action_input=True,
    )
    timeout_seconds: TimeoutSettings = setting(
        TimeoutSettings(),
        "Time limits of what is executed in the sandbox. Raise them for slow test suites and long "
        "installations.",
        repository=True,
        option=False,
    )


class SandboxSettings(SettingGroup):
    """Settings of the place where the agent works: its environment, resources and hosts."""

    title: ClassVar[str] = "Sandbox"
    when: ClassVar[str] = (
        "Change these to give the agent the environment of your project, to let it reach hosts, or "
        "to run it on another machine."
    )

    runtime: Literal["auto", "docker", "local", "remote"] = setting(
        "auto",
        "Where the agent works: a Docker container, this machine without a container (`local`), or "
        "a container of the engine in `docker_host` (`remote`). `auto` uses Docker if an engine "
        "answers, otherwise this machine.",
    )
    image: str = setting(
        "python:3.12-slim-bookworm",
        "Image of the sandbox: any Linux image, `devcontainer` or `dockerfile:PATH`. Set it to an "
        "image that has your project's tools. A repository can name images of registries only.",
        repository=True,
        action_input=True,
    )
    image_options: ImageOptions = setting(
        ImageOptions(),
        "Which images Resolver builds, and runs as services of checks.",
        option=False,
    )
    setup: str = setting(
        "",
        "Bash script that prepares the project's environment before the agent starts. When empty, "
        "`.agents/setup.sh`, `.openhands/setup.sh`, the run steps of `copilot-setup-steps.yml` or "
        "the create commands of the devcontainer are used.",
        repository=True,
        option=False,
    )
    sandbox_limits: SandboxLimits = setting(
        SandboxLimits(),
        "Resources that the sandbox may use, and how its container is confined.",
        option=False,
    )
    egress: tuple[str, ...] = setting(
        (),
        "Hosts that programs in the sandbox may reach through its proxy: `packages`, `github`, "
        "`HOST`, `*.HOST`, `HOST:PORT`, `private:HOST:PORT`; none when empty. Set `packages` if "
        f"the agent has to install dependencies. See {DOCS}/how-to/egress.md.",
        action_input=True,
    )
    docker_host: str = setting(
        "",
        "Address of a Docker engine on another machine: `tcp://HOST:2376` with TLS, whose "
        "certificates are in DOCKER_CERT_PATH or `~/.docker`, `ssh://USER@HOST` (needs paramiko), "
        "or `unix://PATH`. When empty, the engine that the docker command uses.",
        option=False,
    )

    @field_validator("egress")
    @classmethod
    def _egress_can_be_read(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        AllowList.parse(value)
        return value

    @property
    def allow_list(self) -> AllowList:
        """The hosts that the sandbox may reach."""
        return AllowList.parse(self.egress)


class QuotaSettings(SettingGroup):
    """Quotas that all runs of a repository share, as recorded in its quota ledger."""

    title: ClassVar[str] = "Quotas"
    when: ClassVar[str] = "Change these to bound what all runs together may cost."

    run_quotas: RunQuotas = setting(
        RunQuotas(),
        "Maximum number of runs in a day (UTC). 0 means no limit.",
        option=False,
    )
    cost_quotas: CostQuotas = setting(
        CostQuotas(),
        "Maximum cost of runs in a day (UTC), in US dollars. 0 means no limit.",
        option=False,
    )


class ServerSettings(SettingGroup):
    """The webhook server, and where logs are kept."""

    title: ClassVar[str] = "Server and logs"
    when: ClassVar[str] = (
        "Change these to run the webhook server, or to keep the logs of Action runs elsewhere."
    )

    server: WebhookServer = setting(
        WebhookServer(),
        "The webhook server: its secret, and where it stores its data. "
        f"See {DOCS}/how-to/server.md.",
        option=False,
    )
    keep_log: bool = setting(
        True,
        "In an Action, push the log of each run to `refs/resolver/runs/...` in the repository, so "
        "that `@agent continue` finds it. Everybody who can read the repository can read the log.",
        option=False,
        action_input=ActionInput(default="true"),
    )
