"""Puts the parts of a run together from the settings: model, agent, sandbox."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import yaml

from resolver.agents.base import Agent
from resolver.agents.offer import Offer
from resolver.agents.registry import make_agent
from resolver.controller.delegation import Delegates, reply_in
from resolver.errors import UsageError
from resolver.events.lifecycle import (
    ModelReplied,
    ModelRetried,
    ModelSwitched,
    ServiceReplied,
    SystemPrompt,
)
from resolver.events.log import Event
from resolver.events.reading import read_log
from resolver.events.state import State
from resolver.events.stream import EventStream
from resolver.llm.base import Model, RecordedModel
from resolver.llm.completion_files import FiledModel, Redact
from resolver.llm.config import ModelConfig
from resolver.llm.registry import Others, make_models
from resolver.llm.replay import ReplayModel
from resolver.llm.router import parse_rule
from resolver.llm.scripted import scripted_model
from resolver.model import Completion
from resolver.runtime.base import Machine, SandboxSpec
from resolver.runtime.docker import DockerMachine
from resolver.runtime.egress import EgressPolicy, system_resolve
from resolver.runtime.engine import connect_engine, engine_answers, remove_leftovers
from resolver.runtime.local import LocalMachine
from resolver.runtime.remote.access import RemoteAccess
from resolver.runtime.remote.machine import RemoteMachine
from resolver.runtime.runtime import Runtime
from resolver.runtime.toolbox import Toolbox
from resolver.settings import REPOSITORY_FILE, Settings
from resolver.setup.environment import Environment, Repository, Wishes, choose_environment
from resolver.setup.images import BUILD_SECONDS
from resolver.setup.plan import find_setup
from resolver.workspace.workspace import Workspace

if TYPE_CHECKING:
    from docker import DockerClient

REPLAY = "replay:"
SCRIPTED = "scripted:"


@dataclass(frozen=True)
class Host:
    """What a run takes from the machine it is started on; never read below the doors.

    environment: for the engine's address and the local sandbox's PATH.
    cache: folder for the toolbox.
    secrets: values that must never be written anywhere, beside those of the settings.
    """

    environment: Mapping[str, str]
    cache: Path
    secrets: tuple[str, ...] = ()


def recording_of(settings: Settings) -> list[Event]:
    """The events of the log that `replay:FILE` names; empty when the model is a live one."""
    if not settings.model.startswith(REPLAY):
        return []
    recording = list(read_log(Path(settings.model.removeprefix(REPLAY))))
    if not any(isinstance(event, ModelReplied) for event in recording):
        raise UsageError(
            f"{settings.model.removeprefix(REPLAY)} holds no reply of a model",
            "give an events.jsonl of an earlier run",
        )
    return recording


def model_name(settings: Settings) -> str:
    """The model as a person is told it: a recording or a script without its folder."""
    for kind in (REPLAY, SCRIPTED):
        if settings.model.startswith(kind):
            return kind + Path(settings.model.removeprefix(kind)).name
    return settings.model


AGENT = "agent"
"""The service whose replies are the steps of a run."""


class ModelOn(Protocol):
    """Makes a model whose replies and retries become events of the stream."""

    def __call__(self, stream: EventStream, service: str = AGENT) -> Model: ...


def model_config(settings: Settings) -> ModelConfig:
    """The model that the settings name, and how it is asked."""
    return ModelConfig(
        model=settings.model,
        api_key=settings.api_key,
        base_url=settings.base_url,
        api_version=settings.api_version,
        region=settings.model_region,
        project=settings.model_project,
        temperature=settings.temperature,
        reasoning_effort=settings.reasoning_effort,
        seed=settings.seed,
        stop=settings.stop_words,
        stream=settings.model_stream,
        timeout=settings.model_timeout,
        retries=settings.model_retries,
        input_cost_per_token=settings.input_cost_per_token,
        output_cost_per_token=settings.output_cost_per_token,
    )


def open_models(
    settings: Settings, recording: Sequence[Event], state: State, run: str, redact: Redact
) -> ModelOn:
    """The models of the run's own stream and of its delegates' streams. The replies of a recording
    or a script are given in their order, whoever asks.

    state: the run's, for the money that is left. run, redact: for the files of the calls.
    """
    written = _replay(settings, recording) if recording else _script(settings)
    folder = Path(settings.completions_dir) / run if settings.completions_dir else None
    config = model_config(settings)
    rules = tuple(parse_rule(text) for text in settings.model_rules)
    others = Others(settings.fallback_models, rules)

    def money_left() -> float:
        return state.limits.max_budget - state.priced

    def model_on(stream: EventStream, service: str = AGENT) -> Model:
        def on_reply(completion: Completion) -> None:
            if service == AGENT:
                stream.add(ModelReplied(completion=completion))
            else:
                stream.add(ServiceReplied(service=service, completion=completion))

        def on_retry(attempt: int, wait: float, reason: str) -> None:
            stream.add(ModelRetried(attempt=attempt, wait=wait, reason=reason))

        def on_switch(before: str, now: str, reason: str) -> None:
            stream.add(ModelSwitched(from_model=before, to_model=now, reason=reason))

        model = written or make_models(
            config,
            others,
            on_retry=on_retry,
            on_switch=on_switch,
            sleep=time.sleep,
            money_left=money_left,
            share_left=lambda: money_left() / state.limits.max_budget,
        )
        return RecordedModel(FiledModel(model, folder, redact) if folder else model, on_reply)

    return model_on


def _replay(settings: Settings, recording: Sequence[Event]) -> Model:
    replies = [reply for event in recording if (reply := reply_in(event)) is not None]
    prompts = [e for e in recording if isinstance(e, SystemPrompt)]
    tools = not prompts or prompts[0].dialect == "tools"
    return ReplayModel(replies, name=settings.model, supports_tools=tools)


def _script(settings: Settings) -> Model | None:
    if not settings.model.startswith(SCRIPTED):
        return None
    return scripted_model(Path(settings.model.removeprefix(SCRIPTED)), model_name(settings))


def open_agent(settings: Settings, model: Model, offer: Offer) -> Agent:
    """The agent that the settings name."""
    return make_agent(settings.agent, model, settings.dialect, offer)


def open_delegates(settings: Settings, model_on: ModelOn, offer: Offer) -> Delegates:
    """What makes the agents that the run's own hands work to. offer: the run's own agent's."""

    def make(name: str, stream: EventStream, *, may_delegate: bool) -> Agent:
        theirs = replace(offer, delegates=may_delegate)
        return make_agent(name, model_on(stream), settings.dialect, theirs)

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
        return Environment("", find_setup(workspace.read, settings.setup))
    repository = Repository(
        workspace.read,
        workspace.context,
        workspace.blobs,
        lambda: workspace.tree(workspace.base),
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
