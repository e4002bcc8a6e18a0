"""Describes the machine that a run is started on and creates the sandbox that the settings name."""

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
    EnvironmentOptions,
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
    """The properties of the machine that a run is started on.

    The entry points build it; nothing below them reads the environment itself.

    environment: for the address of the container engine and the local sandbox's PATH.
    cache: folder for the toolbox.
    secrets: values that must never be written anywhere, in addition to those of the settings.
    notes: folder for the notes of runs about repositories; None to keep none.
    clones: folder for clones that later runs reuse; None to keep none.
    tokens: the tokens for GitHub; those of an App are issued while runs are active.
    """

    environment: Mapping[str, str]
    cache: Path
    secrets: tuple[str, ...] = ()
    notes: Path | None = None
    clones: Path | None = None
    tokens: ForgeTokens = field(default_factory=ForgeTokens)

    def redactor(self, settings: Settings) -> Redactor:
        """Return a redactor that knows the secrets of the settings and of the environment, and
        every token from the moment it is issued."""
        return Redactor((*settings.secrets, *self.secrets), self.tokens.issued_tokens)


def runtime_kind(settings: Settings, host: RunHost) -> str:
    """Return "docker", "local" or "remote". The setting "auto" means docker if an engine answers,
    otherwise local."""
    if settings.runtime != "auto":
        return settings.runtime
    return "docker" if engine_answers(host.environment) else "local"


def open_environment(
    settings: Settings, kind: str, workspace: Workspace, host: RunHost
) -> Environment:
    """Return the image that the sandbox is created from and the set-up that is run in it."""
    options = settings.image_options
    environment_options = EnvironmentOptions(
        settings.image, settings.setup, options.build, options.keep_prepared
    )
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

    return choose_environment(environment_options, repository, engine if kind == "docker" else None)


def open_runtime(
    settings: Settings,
    kind: str,
    run: str,
    host: RunHost,
    image: str,
    local_names: tuple[str, ...] = (),
) -> Runtime:
    """Return the sandbox, not yet started: use it as a context manager. Leftovers of an earlier,
    killed attempt of the run are removed.

    local_names: names that resolve to the loopback address in a Docker sandbox, for services.
    """
    limits = settings.sandbox_limits
    spec = SandboxSpec(
        image=image,
        run=run,
        memory=limits.memory,
        cpus=limits.cpus,
        pids=limits.pids,
        disk=int(limits.disk_gigabytes * 10**9),
        egress=settings.allow_list.entries,
    )
    machine: Machine
    if kind == "docker":
        engine = connect_engine(host.environment)
        remove_leftovers(engine, run)
        machine = DockerMachine(spec, Toolbox(host.cache), engine, local_names)
    elif kind == "remote":
        machine = RemoteMachine(spec, remote_access(settings))
    else:
        machine = LocalMachine(spec, host.environment)
    policy = EgressPolicy(settings.allow_list, limits.egress_bytes, system_resolve)
    return Runtime(machine, settings.timeout_seconds.command, policy)


def remote_access(settings: Settings) -> RemoteAccess:
    """Return the address and token of the remote runtime's server. Raises UsageError if one is
    missing."""
    if not settings.remote.url or settings.remote_token is None:
        raise UsageError(
            "the remote runtime needs a server and its token",
            "set RESOLVER_REMOTE to the server's address, and RESOLVER_REMOTE_TOKEN",
        )
    return RemoteAccess(
        settings.remote.url,
        settings.remote_token.get_secret_value(),
        ca=settings.remote.ca_file,
        plain_http=settings.remote.allow_plain_http,
    )
