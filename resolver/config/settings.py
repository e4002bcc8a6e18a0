"""All settings in one model, and the function that loads it.

The command line, the environment, the Action's inputs and `.github/resolver.yml` feed the model;
docs/settings.md is generated from it.

Precedence, highest first: options, Action inputs (`INPUT_*`), environment (`RESOLVER_*` and
established names like LLM_MODEL), `.github/resolver.yml` of the target's default branch (only the
settings marked `repository`), defaults.
"""

import os
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any, Literal, get_origin

import yaml
from pydantic import SecretStr, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from resolver.config.agent_settings import AgentSettings
from resolver.config.allowed_hosts import AllowList
from resolver.config.bounded_yaml import read_yaml
from resolver.config.github_settings import GitHubSettings
from resolver.config.image_reference import check_repository_image
from resolver.config.model_settings import ModelSettings, setting
from resolver.config.setting_faults import name_faults, value_fault
from resolver.config.verification_settings import VerificationSettings
from resolver.errors import UsageError
from resolver.models.run import RunLimits

REPOSITORY_FILE = ".github/resolver.yml"

HEARING = frozenset(
    {
        "github_token", "github_api_url", "github_server_url", "github_graphql_url", "app_id",
        "app_private_key", "bot_login", "mention", "label", "allowed_users", "allowed_teams",
        "denied_users", "required_permission", "refusals", "fix_failing_checks",
        "review_teams",
    }
)  # fmt: skip
"""Settings that decide who may start work, what triggers it, and how Resolver can answer."""


class Settings(ModelSettings, AgentSettings, GitHubSettings, VerificationSettings):
    """All settings of one run. Frozen; created once at an entry point and passed on."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    agent: str = setting(
        "CodeActAgent", "Agent that does the work; ReadOnlyAgent answers a question."
    )

    # Limits
    max_iterations: int = setting(
        250,
        "Maximum number of iterations of a run. An iteration is one reply of the model, of the "
        "agent itself or of an agent that it delegates to.",
        repository=True,
        ge=1,
        le=10_000,
    )
    max_budget: float = setting(
        5.0, "Maximum cost of a run in US dollars.", repository=True, gt=0, allow_inf_nan=False
    )
    max_time: float = setting(
        3600.0, "Maximum duration of a run in seconds.", repository=True, gt=0, allow_inf_nan=False
    )
    max_extension: float = setting(
        3.0,
        "Factor by which comments can extend the limits of a run, in total; 1 means that they "
        "can't be extended.",
        option=False,
        ge=1,
        le=100,
    )
    command_timeout: float = setting(
        120.0,
        "Seconds a command may take unless the agent asks for more.",
        repository=True,
        option=False,
        gt=0,
        le=3600,
    )

    # Sandbox
    runtime: Literal["auto", "docker", "local", "remote"] = setting(
        "auto",
        "Where the agent works: a Docker container, this machine, or a sandbox of the server at "
        "`remote_url`. `auto` uses Docker if an engine answers.",
    )
    remote_url: str | None = setting(
        None, "Server of the remote runtime (`resolver sandbox serve`).", option=False
    )
    remote_token: SecretStr | None = setting(
        None, "Token of the remote runtime: its RESOLVER_SANDBOX_TOKEN.", option=False
    )
    remote_ca: str | None = setting(
        None,
        "File of CA certificates to verify the remote runtime with, instead of the system's.",
        option=False,
    )
    remote_plain_http: bool = setting(
        False, "Allow sending the token to another machine without TLS (`http:`).", option=False
    )
    image: str = setting(
        "python:3.12-slim-bookworm",
        "Image of the sandbox: any Linux image, `devcontainer` or `dockerfile:PATH`. A repository "
        "can name images of registries only.",
        repository=True,
    )
    builds: bool = setting(
        False,
        "Build the sandbox image if `image` is `devcontainer` or `dockerfile:PATH`. A build runs "
        "the repository's commands with the network of the engine.",
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
    setup_timeout: float = setting(
        900.0, "Seconds the setup may take.", repository=True, option=False, gt=0, le=3600
    )
    keep_setup: bool = setting(
        True,
        "Keep the prepared environment as an image on the engine, for the next runs.",
        option=False,
    )
    memory: str = setting("4g", "Memory limit of the sandbox.", option=False)
    cpus: float = setting(2.0, "Number of CPU cores the sandbox may use.", option=False, gt=0)
    egress: tuple[str, ...] = setting(
        (),
        "Hosts that programs in the sandbox may reach through its proxy: `packages`, `github`, "
        "`HOST`, `*.HOST`, `HOST:PORT`, `private:HOST:PORT`; none when empty. See egress.md.",
    )
    egress_max_bytes: int = setting(
        1_000_000_000, "Maximum bytes of a run's connections, both ways.", option=False, gt=0
    )
    pids: int = setting(1024, "Maximum processes and threads in the sandbox.", option=False, ge=16)
    disk: float = setting(10.0, "Gigabytes the sandbox may write.", option=False, gt=0)

    # GitHub
    github_token: SecretStr | None = setting(
        None,
        "Token that reads the issue, pushes the branch and opens the pull request.",
        "GITHUB_TOKEN",
        option=False,
    )
    github_api_url: str = setting(
        "https://api.github.com", "REST API address.", "GITHUB_API_URL", option=False
    )
    github_server_url: str = setting(
        "https://github.com", "Server to clone from and push to.", "GITHUB_SERVER_URL", option=False
    )
    github_graphql_url: str = setting(
        "https://api.github.com/graphql", "GraphQL API address.", "GITHUB_GRAPHQL_URL", option=False
    )
    mention: str = setting(
        "@agent", "Mention that starts work in a comment, an issue or a review.", option=False
    )
    label: str = setting(
        "agent", "Label that starts work on an issue or a pull request.", option=False
    )
    bot_login: str = setting(
        "",
        "Login of the account that Resolver writes as, and whose assignments and review requests "
        "start work. Requested from GitHub when empty.",
        option=False,
    )
    keep_log: bool = setting(
        True,
        "In an Action, push the log of each run to `refs/resolver/runs/...` in the repository, so "
        "that `@agent continue` finds it. Everybody who can read the repository can read the log.",
        option=False,
    )
    control_poll: float = setting(
        10.0,
        "Seconds between two checks for comments that control a run in progress, when no webhook "
        "delivers them; 0 disables the checks.",
        option=False,
        ge=0,
        le=600,
    )
    clone_depth: int = setting(
        50,
        "Number of first-parent commits of history that the agent sees, with the newest commits "
        "of what they merged; 0 means all.",
        repository=True,
        option=False,
        ge=0,
    )
    protected_paths: tuple[str, ...] = setting(
        (
            ".github/workflows/**",
            ".github/actions/**",
            ".github/CODEOWNERS",
            "CODEOWNERS",
            "docs/CODEOWNERS",
            ".github/resolver.yml",
            ".gitmodules",
        ),
        "Paths that a change must not touch. A change that does is kept but not published.",
        option=False,
    )
    max_patch_bytes: int = setting(
        10_000_000, "Maximum size of a published change, in bytes.", option=False, gt=0
    )
    max_patch_files: int = setting(
        300, "Maximum number of files that a published change touches.", option=False, gt=0
    )

    # Server
    webhook_secret: SecretStr | None = setting(
        None, "Secret that signs the webhook's deliveries.", "GITHUB_WEBHOOK_SECRET", option=False
    )
    database_url: str = setting(
        "sqlite:///resolver.db", "Database of the server (SQLite or PostgreSQL).", option=False
    )
    data_dir: str = setting(
        "resolver-runs", "Folder in which the server stores the output of its runs.", option=False
    )

    @field_validator("mention")
    @classmethod
    def _mention_is_a_word(cls, value: str) -> str:
        if not value or any(c.isspace() for c in value):
            raise ValueError("the mention is one word, like @agent")
        return value

    @field_validator("egress")
    @classmethod
    def _egress_can_be_read(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        AllowList.parse(value)
        return value

    @property
    def allow_list(self) -> AllowList:
        """The hosts that the sandbox may reach."""
        return AllowList.parse(self.egress)

    @property
    def limits(self) -> RunLimits:
        """The limits of a run."""
        return RunLimits(
            max_iterations=self.max_iterations, max_budget=self.max_budget, max_time=self.max_time
        )

    @property
    def ceiling(self) -> RunLimits:
        """The limits that comments can extend a run to."""
        return RunLimits(
            max_iterations=int(self.max_iterations * self.max_extension),
            max_budget=self.max_budget * self.max_extension,
            max_time=self.max_time * self.max_extension,
        )

    @property
    def longest_run(self) -> timedelta:
        """Maximum duration with all extensions and verifications, and an hour for cloning, starting
        and publishing."""
        verifying = self.verification_seconds * (self.verification_rounds + 1) if self.verify else 0
        seconds = self.ceiling.max_time + self.setup_timeout + verifying
        return timedelta(seconds=seconds, hours=1)

    @property
    def secrets(self) -> tuple[str, ...]:
        """All secret values, for the redactor."""
        values = (
            self.api_key,
            self.github_token,
            self.app_private_key,
            self.webhook_secret,
            self.remote_token,
        )
        services = (service.api_key for service in self.services.values())
        given = (v.get_secret_value() for v in (*values, *services) if v)
        return tuple(value for value in (*given, *self.mcp_secrets) if value)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use only the constructor's arguments: `load_settings` reads all other sources."""
        return (init_settings,)


def extra(field: FieldInfo) -> dict[str, Any]:
    """Return the arguments `names`, `repository` and `option` that `setting` stored in a field."""
    return dict(field.json_schema_extra) if isinstance(field.json_schema_extra, dict) else {}


def variable_names(name: str, field: FieldInfo) -> list[str]:
    """Return the environment variables that set a setting, in order of precedence.

    The Actions runner upper-cases the name of an input and keeps its hyphens, so that both
    spellings are read.
    """
    known = [*extra(field)["names"]]
    inputs = [f"INPUT_{n.upper()}" for n in (name, *known)]
    inputs += [n.replace("_", "-").replace("INPUT-", "INPUT_", 1) for n in inputs]
    return [*inputs, f"RESOLVER_{name.upper()}", *known]


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
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for name, field in Settings.model_fields.items():
        if only and name not in only:
            continue
        chosen = _choose(name, field, options or {}, environment, repository or {})
        if chosen is not None:
            origin[name], values[name] = chosen
    allowed = [n for n, f in Settings.model_fields.items() if extra(f)["repository"]]
    faults = [
        f"{REPOSITORY_FILE}: {fault}"
        for fault in name_faults(repository or {}, allowed, Settings.model_fields)
    ]
    advice = [f"a repository may set: {', '.join(allowed)}"] if faults else []
    try:
        settings = Settings(**values)
    except ValidationError as error:
        faults += [value_fault(each, origin) for each in error.errors()]
        advice.append("see docs/settings.md for the values it takes")
    if faults:
        raise UsageError("; ".join(faults), advice[0])
    return settings


def _choose(
    name: str,
    field: FieldInfo,
    options: Mapping[str, Any],
    environment: Mapping[str, str],
    repository: Mapping[str, Any],
) -> tuple[str, Any] | None:
    """Return the source and the value of a setting from the source with the highest precedence.

    Returns None if no source sets it.
    """
    if options.get(name) is not None:
        return f"--{name.replace('_', '-')}", options[name]
    for variable in variable_names(name, field):
        text = environment.get(variable, "").strip()
        if text:
            return variable, _read(variable, field, text)
    if name in repository and extra(field)["repository"]:
        where, value = f"{REPOSITORY_FILE}, {name}", repository[name]
        return where, check_repository_image(value, where) if name == "image" else value
    return None


def _read(variable: str, field: FieldInfo, text: str) -> Any:
    """Return a variable's text in the form that its setting accepts.

    A list is split at commas and line breaks, a mapping is parsed as YAML; anything else stays
    text. Raises UsageError if the YAML is invalid.
    """
    if field.annotation == tuple[str, ...]:
        return tuple(part.strip() for part in text.replace("\n", ",").split(",") if part.strip())
    if get_origin(field.annotation) is not dict:
        return text
    try:
        return read_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise UsageError(
            f"{variable}{where}: not YAML: {getattr(error, 'problem', error)}",
            "write it as in docs/settings.md",
        ) from None


def repository_settings(content: bytes | None) -> dict[str, object]:
    """Return the parsed `.github/resolver.yml`, {} for none. Raises UsageError with the line."""
    if content is None:
        return {}
    try:
        data = read_yaml(content)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise UsageError(
            f"{REPOSITORY_FILE}{where}: not YAML: {getattr(error, 'problem', error)}",
            "correct the file on the default branch",
        ) from error
    if data is None:
        return {}
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError(
            f"{REPOSITORY_FILE}: settings are `name: value` lines", "see docs/settings.md"
        )
    return data
