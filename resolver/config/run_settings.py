"""Settings of a run's limits and of its sandbox."""

from typing import ClassVar, Literal

from pydantic import field_validator

from resolver.config.allowed_hosts import AllowList
from resolver.config.declaration import SettingGroup, setting
from resolver.config.documentation import DOCS
from resolver.config.image_reference import ImagePattern

SETUP_SHARE = 0.25
VERIFICATION_SHARE = 1 / 3
MIN_STEP_SECONDS = 300.0
"""Shares of the run's time that the setup and one verification may take, and the least of both."""


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
        "Maximum duration of a run in seconds. The setup may take a quarter of it, and one "
        "verification of the change a third.",
        repository=True,
        gt=0,
        allow_inf_nan=False,
        action_input=True,
    )
    daily_budget: float | None = setting(
        None,
        "Maximum cost of all runs on a repository in a day (UTC), in US dollars; 50 times "
        f"`max_budget` when unset. See {DOCS}/how-to/guards.md.",
        gt=0,
        allow_inf_nan=False,
        option=False,
    )

    @property
    def setup_seconds(self) -> float:
        """Maximum duration of the setup."""
        return max(self.max_time * SETUP_SHARE, MIN_STEP_SECONDS)

    @property
    def verification_seconds(self) -> float:
        """Maximum duration of one verification of a change. The tests that the change affects are
        executed first, then the whole checks."""
        return max(self.max_time * VERIFICATION_SHARE, MIN_STEP_SECONDS)


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
        "a container of the engine on another machine that DOCKER_HOST names (`remote`). `auto` "
        "uses Docker if an engine answers, otherwise this machine.",
    )
    image: str = setting(
        "python:3.12-slim-bookworm",
        "Image of the sandbox: any Linux image, `devcontainer` or `dockerfile:PATH`. Set it to an "
        "image that has your project's tools. A repository can name images of registries only.",
        repository=True,
        action_input=True,
    )
    build_images: bool = setting(
        False,
        "Build the sandbox image if `image` is `dockerfile:PATH`. A build runs "
        "the repository's commands with the network of the engine.",
        option=False,
    )
    setup: str | None = setting(
        None,
        "Bash script that prepares the project's environment before the agent starts. When unset, "
        "`.agents/setup.sh`, `.openhands/setup.sh`, the run steps of `copilot-setup-steps.yml` or "
        "the create commands of the devcontainer are used.",
        repository=True,
        option=False,
    )
    memory: str = setting("4g", "Memory of the sandbox, like `512m` or `8g`.", option=False)
    egress: tuple[str, ...] = setting(
        (),
        "Hosts that programs in the sandbox may reach through its proxy: `packages`, `github`, "
        "`HOST`, `*.HOST`, `HOST:PORT`, `private:HOST:PORT`; none when empty. Set `packages` if "
        f"the agent has to install dependencies. See {DOCS}/how-to/egress.md.",
        action_input=True,
    )
    browser_image: str | None = setting(
        None,
        "Image with Playwright's MCP server, which gives the agent a browser. None when unset; it "
        f"needs the docker runtime. See {DOCS}/how-to/browser.md.",
        option=False,
    )
    service_images: tuple[str, ...] = setting(
        (),
        "Images of services that may run alongside the sandbox while checks are executed, "
        "such as `postgres`, `redis:7` or `ghcr.io/OWNER/*`. A declared check says "
        "which of them it needs. None when empty; they need the docker runtime. See "
        f"{DOCS}/how-to/checks.md.",
        option=False,
    )

    @field_validator("egress")
    @classmethod
    def _egress_can_be_read(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        AllowList.parse(value)
        return value

    @field_validator("service_images")
    @classmethod
    def _are_image_patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            ImagePattern.parse(pattern)
        return value

    @property
    def allow_list(self) -> AllowList:
        """The hosts that the sandbox may reach."""
        return AllowList.parse(self.egress)
