"""What the worker does with one delivery: the same pipeline as every other door."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resolver.doors import github_forge, host_of, run_id
from resolver.model import Trigger
from resolver.output import Output
from resolver.pipeline import Job, resolve
from resolver.settings import Settings, load_settings
from resolver.triggers.parse import Ignored, parse_event

logger = logging.getLogger("resolver.server")


def trigger_of(settings: Settings, event: str, payload: Mapping[str, Any]) -> Trigger | Ignored:
    """What the delivery asks for."""
    return parse_event(
        event,
        payload,
        mention=settings.mention,
        label=settings.label,
        bot_login=settings.bot_login,
        allowed_users=settings.allowed_users,
    )


def work_on(
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    event: str,
    payload: Mapping[str, Any],
) -> dict[str, Any]:
    """Do one delivery; what came of it, as JSON. Doing it again finds what was done before.

    The run's id and folder are derived from the event, so that a run which was cut off goes on
    under its own name; what its first attempt left is kept beside.
    """
    settings = load_settings(options, environment)
    trigger = trigger_of(settings, event, payload)
    if isinstance(trigger, Ignored):
        return {"state": "ignored", "reason": trigger.reason}
    run = run_id(trigger.key, trigger.at)
    logger.info("run %s starts for %s#%s", run, trigger.repository, trigger.number)
    job = Job(
        trigger=trigger,
        run=run,
        output=Output(Path(settings.data_dir) / run),
        load=lambda repository: load_settings(options, environment, repository),
        host=host_of(environment),
    )
    record = resolve(job, github_forge(settings, trigger.repository))
    logger.info("run %s ended with exit code %d", run, record.exit_code)
    return {"run": run, "exit_code": record.exit_code, "state": record.summary()["state"]}
