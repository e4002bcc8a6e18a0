"""Puts the parts of a run together from the settings: model, agent, sandbox."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from resolver.agents.base import Agent
from resolver.agents.registry import make_agent
from resolver.errors import UsageError
from resolver.events.lifecycle import ModelReplied, ModelRetried, SystemPrompt
from resolver.events.log import Event
from resolver.events.store import read_log
from resolver.events.stream import EventStream
from resolver.llm.base import Model, RecordedModel
from resolver.llm.litellm_model import ModelConfig
from resolver.llm.registry import make_model
from resolver.llm.replay import ReplayModel
from resolver.model import Completion
from resolver.runtime.base import Machine, SandboxSpec
from resolver.runtime.docker import DockerMachine
from resolver.runtime.engine import connect_engine, engine_answers, remove_leftovers
from resolver.runtime.local import LocalMachine
from resolver.runtime.runtime import Runtime
from resolver.runtime.toolbox import Toolbox
from resolver.settings import REPOSITORY_FILE, Settings

REPLAY = "replay:"


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
    """The model as a person is told it: a recording without its folder."""
    if settings.model.startswith(REPLAY):
        return REPLAY + Path(settings.model.removeprefix(REPLAY)).name
    return settings.model


def open_model(settings: Settings, recording: Sequence[Event], stream: EventStream) -> Model:
    """The model, each reply and each retry of which becomes an event."""

    def on_reply(completion: Completion) -> None:
        stream.add(ModelReplied(completion=completion))

    def on_retry(attempt: int, wait: float, reason: str) -> None:
        stream.add(ModelRetried(attempt=attempt, wait=wait, reason=reason))

    if recording:
        replies = [e.completion for e in recording if isinstance(e, ModelReplied)]
        prompts = [e for e in recording if isinstance(e, SystemPrompt)]
        tools = not prompts or prompts[0].dialect == "tools"
        model: Model = ReplayModel(replies, name=settings.model, supports_tools=tools)
    else:
        config = ModelConfig(
            model=settings.model,
            api_key=settings.api_key,
            base_url=settings.base_url,
            api_version=settings.api_version,
            temperature=settings.temperature,
            timeout=settings.model_timeout,
            retries=settings.model_retries,
            input_cost_per_token=settings.input_cost_per_token,
            output_cost_per_token=settings.output_cost_per_token,
        )
        model = make_model(config, on_retry=on_retry, sleep=time.sleep)
    return RecordedModel(model, on_reply)


def open_agent(settings: Settings, model: Model) -> Agent:
    """The agent that the settings name."""
    return make_agent(settings.agent, model, dialect=settings.dialect)


def runtime_kind(settings: Settings, host: Host) -> str:
    """ "docker" or "local"; `auto` is docker where an engine answers."""
    if settings.runtime != "auto":
        return settings.runtime
    return "docker" if engine_answers(host.environment) else "local"


def open_runtime(settings: Settings, kind: str, run: str, host: Host) -> Runtime:
    """The sandbox, not yet started: enter it. What a killed attempt of the run left is removed."""
    spec = SandboxSpec(
        image=settings.image,
        run=run,
        memory=settings.memory,
        cpus=settings.cpus,
        pids=settings.pids,
    )
    machine: Machine
    if kind == "docker":
        engine = connect_engine(host.environment)
        remove_leftovers(engine, run)
        machine = DockerMachine(spec, Toolbox(host.cache), engine)
    else:
        machine = LocalMachine(spec, host.environment)
    return Runtime(machine, settings.command_timeout)


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
