"""Asks the thread about an action that waits for a person."""

import logging
from datetime import datetime

from resolver.assembly.confirmation import Waiting
from resolver.consent import Wanted
from resolver.errors import ResolverError
from resolver.forge.base import Forge
from resolver.model import TriggerKind
from resolver.record import Record

logger = logging.getLogger("resolver.thread.asking")


def waiting(record: Record, forge: Forge) -> Waiting:
    """How the run asks, and how long it waits. Where nobody can answer it does not wait."""
    job = record.job
    if not job.publish or job.trigger.kind is TriggerKind.LOCAL:
        return Waiting(seconds=0.0)

    def tell(wanted: Wanted) -> datetime | None:
        if record.telling is not None:
            record.telling.hold()
        try:
            return forge.ask(record.report().model_copy(update={"wanted": wanted}))
        except ResolverError as error:
            logger.warning("nobody could be asked about an action: %s", error.what)
            return None

    return Waiting(record.settings.confirmation_wait, tell)
