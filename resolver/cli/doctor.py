"""`resolver doctor`: checks what a run needs, and names the next step if something is missing."""

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any

import click

from resolver.cli.options import SettingsCommand, settings_options_but
from resolver.cli.repository_check import (
    DoctorFinding,
    check_app,
    check_finding,
    check_repository_for,
    findings_until_error,
)
from resolver.config.settings import Settings, load_settings
from resolver.events.lifecycle import AGENT
from resolver.github.client.access import check_repository
from resolver.llm.base import ModelConfig
from resolver.llm.preflight import probe
from resolver.llm.registry import make_model
from resolver.runs.common import open_host, require_model
from resolver.runs.wiring.models import (
    REPLAY,
    SCRIPTED,
    SERVICES,
    model_config,
    service_config,
)
from resolver.runs.wiring.sandbox import RunHost, engine_environment, runtime_kind
from resolver.runtime.engine import connect_engine, has_image
from resolver.trace.plain import for_terminal

CONFIGURED_MODEL = "configured"
"""The value of `--model` without a name."""

MODEL_TIMEOUT_SECONDS = 60.0
"""Timeout in seconds for one reply of the model: a large model on a cold machine is slow."""


@click.command(cls=SettingsCommand)
@click.argument("repository", required=False, metavar="[OWNER/NAME]")
@click.option(
    "--model",
    is_flag=False,
    flag_value=CONFIGURED_MODEL,
    metavar="[NAME]",
    help="Make one small call to this model, or to the models of the settings (a few tokens).",
)
@settings_options_but("model")
@click.pass_obj
def command(
    environment: Mapping[str, str],
    /,
    repository: str | None,
    model: str | None,
    **options: Any,
) -> int:
    """Check that this machine and these settings can run Resolver. Changes nothing.

    With OWNER/NAME, also check what the token or the App may do there, the repository's settings
    file, the rules of its branches, and whether CI runs on what the agent pushes. The exit code is
    1 if something is missing that every run needs.
    """
    model_name = None if model == CONFIGURED_MODEL else model
    settings = load_settings({**options, "model": model_name}, environment)
    if repository is not None:
        check_repository(repository)
    findings = list(_examine(settings, open_host(environment), repository))
    if model is not None:
        configs = (
            {"the model": model_config(settings)} if model_name else dict(_models_of(settings))
        )
        findings += _probe_models(configs)
    for finding in findings:
        click.echo(for_terminal(f"{finding.mark:7}  {finding.what}"))
        if finding.advice:
            click.echo(for_terminal(f"         -> {finding.advice}"))
    return 1 if any(f.required and not f.good for f in findings) else 0


def _examine(settings: Settings, host: RunHost, repository: str | None) -> Iterator[DoctorFinding]:
    for program in ("git", "bash"):
        yield DoctorFinding(
            shutil.which(program) is not None, program, f"install it: apt-get install {program}"
        )
    yield from _check_sandbox(settings, host)
    yield check_finding("model", lambda: _check_model(settings))
    yield DoctorFinding(
        settings.api_key is not None, "key of the model (LLM_API_KEY)",
        "set LLM_API_KEY, unless the provider's own variable is set", required=False,
    )  # fmt: skip
    if settings.has_app:
        yield from findings_until_error("GitHub App", check_app(settings, host))
    has_credential = settings.github_token is not None or settings.has_app
    yield DoctorFinding(
        has_credential, "GitHub token or App",
        "set GITHUB_TOKEN, or RESOLVER_APP_ID and RESOLVER_APP_PRIVATE_KEY, to work on GitHub",
        required=repository is not None,
    )  # fmt: skip
    if has_credential and repository:
        yield from findings_until_error(
            repository, check_repository_for(settings, host, repository)
        )


def _check_sandbox(settings: Settings, host: RunHost) -> Iterator[DoctorFinding]:
    is_required = settings.runtime in ("docker", "remote")
    engine = check_finding(
        "Docker engine", lambda: _engine_version(settings, host), required=is_required
    )
    yield engine
    if engine.good and settings.runtime != "local":
        is_present = has_image(engine_environment(settings, host.environment), settings.image)
        yield DoctorFinding(
            is_present, f"image {settings.image}", "it is pulled at the first run", required=False
        )


def _check_model(settings: Settings) -> str:
    require_model(settings)
    return settings.model


def _models_of(settings: Settings) -> Iterator[tuple[str, ModelConfig]]:
    """Yield every model in the settings with a description.

    These are the default model, and those of services and fallbacks.
    """
    yield "the model", model_config(settings)
    for name in dict.fromkeys((*SERVICES, *settings.services)):
        is_agent = name not in SERVICES
        config, fallbacks = service_config(
            settings, AGENT if is_agent else name, name if is_agent else ""
        )
        yield f"the model of {name}", config
        for fallback in fallbacks.fallbacks:
            yield f"{fallback} for {name}", fallbacks.config_of(config, fallback)


def _probe_models(configs: Mapping[str, ModelConfig]) -> Iterator[DoctorFinding]:
    """Call each live model once."""
    probed: list[ModelConfig] = []
    for label, config in configs.items():
        is_live = config.model and not config.model.startswith((REPLAY, SCRIPTED))
        if is_live and config not in probed:
            probed.append(config)
            yield check_finding(f"asking {label}", partial(_probe_model, config))


def _probe_model(config: ModelConfig) -> str:
    single_attempt = config.model_copy(update={"num_retries": 0, "timeout": MODEL_TIMEOUT_SECONDS})
    return probe(
        make_model(single_attempt, on_retry=lambda *_: None, sleep=time.sleep), config.set_by
    )


def _engine_version(settings: Settings, host: RunHost) -> str:
    if settings.runtime == "remote":
        runtime_kind(settings, host)  # raises UsageError without an address
    with closing(connect_engine(engine_environment(settings, host.environment))) as client:
        return str(client.version()["Version"])
