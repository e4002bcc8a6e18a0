"""Asks the conversation about an action that waits for a person."""

import logging
from datetime import datetime

from resolver.assembly.confirmation import ApprovalRequester
from resolver.consent import PendingApproval
from resolver.errors import ResolverError
from resolver.forge.base import Forge
from resolver.reporting import build_report
from resolver.stages import StageValues

logger = logging.getLogger("resolver.thread.asking")


def approval_requester(values: StageValues, forge: Forge) -> ApprovalRequester:
    """Return how the run asks, and how long it waits. Where nobody can answer it does not wait."""
    request = values.current_request
    if not request.publish or request.is_local:
        return ApprovalRequester(seconds=0.0)

    def ask(wanted: PendingApproval) -> datetime | None:
        if values.progress is not None:
            values.progress.hold()
        try:
            return forge.ask(build_report(values, wanted=wanted))
        except ResolverError as error:
            logger.warning("nobody could be asked about an action: %s", error.what)
            return None

    return ApprovalRequester(values.current_settings.confirmation_wait, ask)
