"""Every knob, once. One model feeds the command line, the environment, the Action's inputs
and `.github/resolver.yml`; docs/settings.md is generated from it.

First wins: options, Action inputs (`INPUT_*`), environment (`RESOLVER_*` and the names people
already have, like LLM_MODEL), `.github/resolver.yml` of the target's default branch (only the
knobs marked `repository`), defaults.
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
"""Knobs by which it is known who asked, who may, and where to answer."""


class Settings(ModelSettings, AgentSettings, GitHubSettings):
    """All settings of one run. Frozen; made once at a door and handed down."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    agent: str = setting(
        "CodeActAgent", "Agent that does the work; ReadOnlyAgent answers a question."
    )

    # bounds
    max_iterations: int = setting(
        250,
        "Most iterations of a run. An iteration is one reply of the agent's model, or of the model "
        "of an agent that it hands work to.",
        repository=True,
        ge=1,
        le=10_000,
    )
    max_budget: float = setting(
        5.0, "Most US dollars a run may cost.", repository=True, gt=0, allow_inf_nan=False
    )
    max_time: float = setting(
        3600.0, "Most seconds a run may take.", repository=True, gt=0, allow_inf_nan=False
    )
    max_extension: float = setting(
        3.0,
        "How many times its limits a run may reach when people grant it more in comments; "
        "1 means that nothing can be granted.",
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

    # sandbox
    runtime: Literal["auto", "docker", "local", "remote"] = setting(
        "auto",
        "Where the agent works: a Docker container, this machine, or a sandbox of the server at "
        "`remote_url`. `auto` is docker where an engine answers.",
    )
    remote_url: str | None = setting(
        None, "Server of the remote runtime (`resolver sandbox serve`).", option=False
    )
    remote_token: SecretStr | None = setting(
        None, "Token of the remote runtime: its RESOLVER_SANDBOX_TOKEN.", option=False
    )
    remote_ca: str | None = setting(
        None,
        "File of certificates that the remote runtime is trusted by, instead of the system's.",
        option=False,
    )
    remote_plain_http: bool = setting(
        False, "Send the token to another machine without TLS (`http:`).", option=False
    )
    image: str = setting(
        "python:3.12-slim-bookworm",
        "Image of the sandbox: any Linux image, `devcontainer` or `dockerfile:PATH`. A repository "
        "names images of registries only.",
        repository=True,
    )
    builds: bool = setting(
        False,
        "Build the sandbox's image where `image` is `devcontainer` or `dockerfile:PATH`. A build "
        "runs the repository's commands with the engine's network.",
        option=False,
    )
    setup: str = setting(
        "",
        "Bash that prepares the project's environment before the agent starts; else "
        "`.agents/setup.sh`, `.openhands/setup.sh`, the run steps of `copilot-setup-steps.yml` or "
        "the devcontainer's create commands are used.",
        repository=True,
        option=False,
    )
    setup_timeout: float = setting(
        900.0, "Seconds the setup may take.", repository=True, option=False, gt=0, le=3600
    )
    keep_setup: bool = setting(
        True,
        "Keep the prepared environment as an image on the engine for the next run.",
        option=False,
    )
    memory: str = setting("4g", "Memory limit of the sandbox.", option=False)
    cpus: float = setting(2.0, "Cores the sandbox may use.", option=False, gt=0)
    egress: tuple[str, ...] = setting(
        (),
        "What programs in the sandbox may reach through its proxy: `packages`, `github`, "
        "`HOST`, `*.HOST`, `HOST:PORT`, `private:HOST:PORT`. Nothing unless given; see egress.md.",
    )
    egress_max_bytes: int = setting(
        1_000_000_000, "Most bytes all connections of a run carry, both ways.", option=False, gt=0
    )
    pids: int = setting(1024, "Processes and threads the sandbox may have.", option=False, ge=16)
    disk: float = setting(10.0, "Gigabytes the sandbox may write.", option=False, gt=0)

    # forge
    github_token: SecretStr | None = setting(
        None,
        "Token that reads the issue, pushes the branch and opens the pull request.",
        "GITHUB_TOKEN",
        option=False,
    )
    github_api_url: str = setting(
        "https://api.github.com", "REST API.", "GITHUB_API_URL", option=False
    )
    github_server_url: str = setting(
        "https://github.com",
        "Server that is cloned from and pushed to.",
        "GITHUB_SERVER_URL",
        option=False,
    )
    github_graphql_url: str = setting(
        "https://api.github.com/graphql", "GraphQL API.", "GITHUB_GRAPHQL_URL", option=False
    )
    mention: str = setting(
        "@agent", "Word that asks for work in a comment, an issue or a review.", option=False
    )
    label: str = setting(
        "agent", "Label that asks for work on an issue or a pull request.", option=False
    )
    bot_login: str = setting(
        "",
        "Login that Resolver writes as, and that is assigned and asked for reviews; asked of the "
        "forge when empty.",
        option=False,
    )
    keep_log: bool = setting(
        True,
        "In an Action: push each run's log as `refs/resolver/runs/...` of the repository, so that "
        "`@agent continue` finds it. Who can read the repository can read it.",
        option=False,
    )
    control_poll: float = setting(
        10.0,
        "Seconds between two looks for comments that steer a run at work, where no webhook brings "
        "them; 0 means never.",
        option=False,
        ge=0,
        le=600,
    )
    clone_depth: int = setting(
        50,
        "First-parent commits of history that the agent sees, with the newest of what they merged; "
        "0 means all.",
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
        "Paths a change must not touch; a change that does is kept, not published.",
        option=False,
    )
    max_patch_bytes: int = setting(
        10_000_000, "Largest change that is published.", option=False, gt=0
    )
    max_patch_files: int = setting(
        300, "Most files a published change may touch.", option=False, gt=0
    )

    # server
    webhook_secret: SecretStr | None = setting(
        None, "Secret that signs the webhook's deliveries.", "GITHUB_WEBHOOK_SECRET", option=False
    )
    database_url: str = setting(
        "sqlite:///resolver.db",
        "Where deliveries and runs are kept (SQLite or PostgreSQL).",
        option=False,
    )
    data_dir: str = setting(
        "resolver-runs", "Folder of the server for the output of its runs.", option=False
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
        """What the sandbox may reach."""
        return AllowList.parse(self.egress)

    @property
    def limits(self) -> RunLimits:
        """The bounds of a run."""
        return RunLimits(
            max_iterations=self.max_iterations, max_budget=self.max_budget, max_time=self.max_time
        )

    @property
    def ceiling(self) -> RunLimits:
        """The most that comments can extend the bounds of a run to."""
        return RunLimits(
            max_iterations=int(self.max_iterations * self.max_extension),
            max_budget=self.max_budget * self.max_extension,
            max_time=self.max_time * self.max_extension,
        )

    @property
    def longest_run(self) -> timedelta:
        """When a run has ended for sure, whatever comments grant it: an hour is for cloning,
        starting and publishing."""
        return timedelta(seconds=self.ceiling.max_time + self.setup_timeout, hours=1)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret value there is, for the redactor."""
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
        """Only what `load_settings` gives: the environment is read there, by our names."""
        return (init_settings,)


def extra(field: FieldInfo) -> dict[str, Any]:
    """The `knob` arguments of a field."""
    return dict(field.json_schema_extra) if isinstance(field.json_schema_extra, dict) else {}


def variable_names(name: str, field: FieldInfo) -> list[str]:
    """Environment variables that set a knob, strongest first.

    The runner upper-cases an input's name and keeps its hyphens, so both forms are read.
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
    """Settings from all sources. Raises UsageError that names the source and the knob.

    options: values given on the command line; None means not given.
    environment: defaults to the process's own.
    repository: parsed `.github/resolver.yml` of the default branch.
    only: the knobs that are looked at, all where none is given; the others keep their defaults.
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
    """The text of a variable as its knob takes it: a list by its commas and lines, a table as
    YAML. Raises UsageError."""
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
    """`.github/resolver.yml` parsed. Raises UsageError that names the line."""
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
