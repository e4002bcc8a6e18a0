"""`resolver doctor`: what a run needs, checked, with the next step where something is missing."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from resolver.agents.registry import AGENTS
from resolver.assembly.models import REPLAY, SCRIPTED, SERVICES, model_config, service_config
from resolver.assembly.sandbox import remote_access
from resolver.commands.options import settings_options_but
from resolver.doors import github_forge, host_of, require_model
from resolver.errors import ResolverError
from resolver.events.lifecycle import AGENT
from resolver.llm.config import ModelConfig
from resolver.llm.probe import probe
from resolver.llm.registry import make_model
from resolver.llm.router import parse_rule
from resolver.runtime.engine import connect_engine, has_image
from resolver.settings import Settings, load_settings

CONFIGURED = "configured"
"""What `--model` without a name stands for."""

ASKING_SECONDS = 60.0
"""How long the model may take for one word: a large one on a cold machine needs it."""


@dataclass(frozen=True)
class Finding:
    """One line of the report. required: without it no run can start."""

    good: bool
    what: str
    next_step: str = ""
    required: bool = True


@click.command()
@click.option("--repository", help="OWNER/NAME to check the token against.")
@click.option(
    "--model",
    is_flag=False,
    flag_value=CONFIGURED,
    metavar="[NAME]",
    help="Make one tiny call to this model, or to those of the settings; costs a few tokens.",
)
@click.option("--ask", is_flag=True, help="The same as --model without a name.")
@settings_options_but("model")
@click.pass_obj
def command(
    environment: Mapping[str, str],
    /,
    repository: str | None,
    model: str | None,
    ask: bool,
    **options: Any,
) -> int:
    """Check that this machine and these settings can run Resolver. Changes nothing."""
    named = None if model == CONFIGURED else model
    settings = load_settings({**options, "model": named}, environment)
    findings = list(_examine(settings, environment, repository))
    if ask or model is not None:
        configs = {"the model": model_config(settings)} if named else dict(_models_of(settings))
        findings += _ask_all(configs)
    for finding in findings:
        mark = "ok     " if finding.good else ("missing" if finding.required else "note   ")
        click.echo(f"{mark}  {finding.what}")
        if not finding.good and finding.next_step:
            click.echo(f"         -> {finding.next_step}")
    return 1 if any(f.required and not f.good for f in findings) else 0


def _examine(settings: Settings, environment: Any, repository: str | None) -> Iterator[Finding]:
    for program in ("git", "bash"):
        yield Finding(
            shutil.which(program) is not None, program, f"install it: apt-get install {program}"
        )
    yield from _sandbox(settings, environment)
    yield _asked("model", lambda: _model(settings))
    for name in settings.services:
        if name not in (*SERVICES, *AGENTS):
            yield Finding(
                False, f"services: {name} is no service and no agent of Resolver's own",
                f"the services are {', '.join(SERVICES)}, the agents {', '.join(AGENTS)}; it is "
                "used where a repository defines an agent of this name", required=False,
            )  # fmt: skip
    has_key = settings.api_key is not None
    yield Finding(
        has_key, "key of the model (LLM_API_KEY)",
        "set LLM_API_KEY, unless the provider's own variable is set", required=False,
    )  # fmt: skip
    token = settings.github_token is not None
    yield Finding(token, "GitHub token", "set GITHUB_TOKEN to work on GitHub", required=False)
    if token and repository:
        yield _asked("account", lambda: github_forge(settings, repository).whoami())
        may = github_forge(settings, repository).operator_may_push
        yield _asked(f"push to {repository}", lambda: "allowed" if may() else None)


def _sandbox(settings: Settings, environment: Any) -> Iterator[Finding]:
    if settings.runtime == "remote":
        yield _asked("remote runtime", lambda: _remote(settings))
        return
    engine = _asked("Docker engine", lambda: _version(environment))
    local = settings.runtime == "local"
    yield Finding(engine.good, engine.what, engine.next_step, settings.runtime == "docker")
    if engine.good and not local:
        there = has_image(host_of(environment).environment, settings.image)
        yield Finding(
            there, f"image {settings.image}", "it is pulled at the first run", required=False
        )


def _model(settings: Settings) -> str:
    require_model(settings)
    return settings.model


def _models_of(settings: Settings) -> Iterator[tuple[str, ModelConfig]]:
    """Every model that the settings name, with words for it: of services, fallbacks and rules."""
    yield "the model", model_config(settings)
    ruled = (parse_rule(text).agent for text in settings.model_rules)
    for name in dict.fromkeys((*SERVICES, *settings.services, *filter(None, ruled))):
        agent = name not in SERVICES
        config, others = service_config(settings, AGENT if agent else name, name if agent else "")
        yield f"the model of {name}", config
        for other in others.names:
            yield f"{other} for {name}", others.beside(config, other)


def _ask_all(configs: Mapping[str, ModelConfig]) -> Iterator[Finding]:
    """One call to each model, once."""
    done: list[ModelConfig] = []
    for whose, config in configs.items():
        live = config.model and not config.model.startswith((REPLAY, SCRIPTED))
        if live and config not in done:
            done.append(config)
            yield _asked(f"asking {whose}", partial(_ask, config))


def _ask(config: ModelConfig) -> str:
    patient = config.model_copy(update={"retries": 0, "timeout": ASKING_SECONDS})
    return probe(make_model(patient, on_retry=lambda *_: None, sleep=time.sleep), config.set_by)


def _remote(settings: Settings) -> str:
    access = remote_access(settings)
    try:
        given = access.limits()
    finally:
        access.close()
    return f"{given.runtime}, {given.running} of {given.sandboxes} sandboxes are in use"


def _version(environment: Any) -> str:
    client = connect_engine(environment)
    try:
        return str(client.version()["Version"])
    finally:
        client.close()


def _asked(what: str, question: Callable[[], str | None]) -> Finding:
    try:
        answer = question()
    except ResolverError as error:
        return Finding(False, f"{what}: {error.what}", error.next_step)
    return Finding(answer is not None, f"{what}: {answer or 'no'}")
