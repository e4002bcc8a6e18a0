"""Puts the parts of a run together from the settings: agent, sandbox. Models are in services.py."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from resolver.agents.base import Agent
from resolver.agents.offer import Offer
from resolver.agents.registry import make_agent, model_of
from resolver.controller.delegation import Delegates
from resolver.errors import UsageError
from resolver.events.stream import EventStream
from resolver.llm.base import Model
from resolver.runtime.base import Machine, SandboxSpec
from resolver.runtime.docker import DockerMachine
from resolver.runtime.egress import EgressPolicy, system_resolve
from resolver.runtime.engine import connect_engine, engine_answers, remove_leftovers
from resolver.runtime.local import LocalMachine
from resolver.runtime.remote.access import RemoteAccess
from resolver.runtime.remote.machine import RemoteMachine
from resolver.runtime.runtime import Runtime
from resolver.runtime.toolbox import Toolbox
from resolver.services import ModelOn
from resolver.settings import REPOSITORY_FILE, Settings
from resolver.setup.environment import Environment, Repository, Wishes, choose_environment
from resolver.setup.images import BUILD_SECONDS
from resolver.setup.plan import find_setup
from resolver.workspace.workspace import Workspace

if TYPE_CHECKING:
    from docker import DockerClient


@dataclass(frozen=True)
class Host:
    """What a run takes from the machine it is started on; never read below the doors.

    environment: for the engine's address and the local sandbox's PATH.
    cache: folder for the toolbox.
    secrets: values that must never be written anywhere, beside those of the settings.
    notes: folder for what runs note of repositories; None where nothing is kept.
    """

    environment: Mapping[str, str]
    cache: Path
    secrets: tuple[str, ...] = ()
    notes: Path | None = None


def open_agent(settings: Settings, model: Model, offer: Offer) -> Agent:
    """The agent that the settings name."""
    return make_agent(settings.agent, model, settings.dialect, offer)


def open_delegates(settings: Settings, model_on: ModelOn, offer: Offer) -> Delegates:
    """What makes the agents that the run's own hands work to. offer: the run's own agent's."""

    def make(name: str, stream: EventStream, *, may_delegate: bool) -> Agent:
        theirs = replace(offer, delegates=may_delegate)
        asked = model_on(stream, agent=name, model=model_of(name, offer.definitions))
        return make_agent(name, asked, settings.dialect, theirs)

    return make


def runtime_kind(settings: Settings, host: Host) -> str:
    """ "docker", "local" or "remote"; `auto` is docker where an engine answers."""
    if settings.runtime != "auto":
        return settings.runtime
    return "docker" if engine_answers(host.environment) else "local"


def open_environment(
    settings: Settings, kind: str, workspace: Workspace, host: Host
) -> Environment:
    """The image that the sandbox is made from and the setup that is run in it."""
    wishes = Wishes(settings.image, settings.setup, settings.builds, settings.keep_setup)
    if kind == "local":
        return Environment("", find_setup(workspace.read_trusted, settings.setup))
    trusted = workspace.trusted
    repository = Repository(
        trusted.read,
        trusted.context,
        trusted.blobs,
        lambda: trusted.tree(trusted.base),
    )

    def engine() -> "DockerClient":
        return connect_engine(host.environment, BUILD_SECONDS)

    return choose_environment(wishes, repository, engine if kind == "docker" else None)


def open_runtime(settings: Settings, kind: str, run: str, host: Host, image: str) -> Runtime:
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


def repository_settings(content: bytes | None) -> dict[str, object]:
    """`.github/resolver.yml` parsed. Raises UsageError that names the line."""
    if content is None:
        return {}
    try:
        data = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
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
