"""The machine that a run is started on, and the sandbox that the settings ask for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from resolver.config.settings import Settings
from resolver.errors import UsageError
from resolver.git.workspace import Workspace
from resolver.runs.wiring.tokens import ForgeTokens
from resolver.runtime.base import Machine, SandboxSpec
from resolver.runtime.docker import DockerMachine
from resolver.runtime.egress import EgressPolicy, system_resolve
from resolver.runtime.engine import connect_engine, engine_answers, remove_leftovers
from resolver.runtime.environment.environment import (
    Environment,
    EnvironmentWishes,
    SetupRepository,
    choose_environment,
)
from resolver.runtime.environment.images import BUILD_SECONDS, BuildSource
from resolver.runtime.environment.plan import find_setup
from resolver.runtime.local import LocalMachine
from resolver.runtime.remote.access import RemoteAccess
from resolver.runtime.remote.machine import RemoteMachine
from resolver.runtime.runtime import Runtime
from resolver.runtime.toolbox import Toolbox
from resolver.security.redaction import Redactor

if TYPE_CHECKING:
    from docker import DockerClient


@dataclass(frozen=True)
class RunHost:
    """What a run takes from the machine it is started on; never read below the doors.

    environment: for the engine's address and the local sandbox's PATH.
    cache: folder for the toolbox.
    secrets: values that must never be written anywhere, beside those of the settings.
    notes: folder for what runs note of repositories; None where nothing is kept.
    clones: folder for the clones of earlier runs; None where nothing is kept.
    tokens: what GitHub is shown; those of an App come to be while runs are at work.
    """

    environment: Mapping[str, str]
    cache: Path
    secrets: tuple[str, ...] = ()
    notes: Path | None = None
    clones: Path | None = None
    tokens: ForgeTokens = field(default_factory=ForgeTokens)

    def redactor(self, settings: Settings) -> Redactor:
        """Knows every secret: of the settings, of the environment, and each token as it is made."""
        return Redactor((*settings.secrets, *self.secrets), self.tokens.minted)


def runtime_kind(settings: Settings, host: RunHost) -> str:
    """ "docker", "local" or "remote"; `auto` is docker where an engine answers."""
    if settings.runtime != "auto":
        return settings.runtime
    return "docker" if engine_answers(host.environment) else "local"


def open_environment(
    settings: Settings, kind: str, workspace: Workspace, host: RunHost
) -> Environment:
    """The image that the sandbox is made from and the setup that is run in it."""
    wishes = EnvironmentWishes(settings.image, settings.setup, settings.builds, settings.keep_setup)
    if kind == "local":
        return Environment("", find_setup(workspace.read_trusted, settings.setup))
    trusted = workspace.trusted
    repository = SetupRepository(
        workspace.identity,
        BuildSource(trusted.read, trusted.context, lambda: trusted.tree(trusted.base)),
        lambda: workspace.tree(workspace.base),
    )

    def engine() -> "DockerClient":
        return connect_engine(host.environment, BUILD_SECONDS)

    return choose_environment(wishes, repository, engine if kind == "docker" else None)


def open_runtime(settings: Settings, kind: str, run: str, host: RunHost, image: str) -> Runtime:
    """The sandbox, not yet started: enter it. What a killed attempt of the run left is removed."""
    spec = SandboxSpec(
        image=image,
        run=run,
        memory=settings.memory,
        cpus=settings.cpus,
        pids=settings.pids,
        disk=int(settings.disk * 10**9),
        egress=settings.allow_list.entries,
    )
    machine: Machine
    if kind == "docker":
        engine = connect_engine(host.environment)
        remove_leftovers(engine, run)
        machine = DockerMachine(spec, Toolbox(host.cache), engine)
    elif kind == "remote":
        machine = RemoteMachine(spec, remote_access(settings))
    else:
        machine = LocalMachine(spec, host.environment)
    policy = EgressPolicy(settings.allow_list, settings.egress_max_bytes, system_resolve)
    return Runtime(machine, settings.command_timeout, policy)


def remote_access(settings: Settings) -> RemoteAccess:
    """The way to the server of the remote runtime. Raises UsageError where something is missing."""
    if not settings.remote_url or settings.remote_token is None:
        raise UsageError(
            "the remote runtime needs a server and its token",
            "set RESOLVER_REMOTE_URL and RESOLVER_REMOTE_TOKEN",
        )
    return RemoteAccess(
        settings.remote_url,
        settings.remote_token.get_secret_value(),
        ca=settings.remote_ca,
        plain_http=settings.remote_plain_http,
    )
