"""Asks the conversation to approve an action that waits for a person."""

import logging
from datetime import datetime

from resolver.errors import ResolverError
from resolver.github.forge import Forge
from resolver.models.approval import PendingApproval
from resolver.runs.reporting import build_report
from resolver.runs.stages import StageValues
from resolver.runs.wiring.confirmation import ApprovalRequester

logger = logging.getLogger("resolver.runs.conversation.confirmation")


def approval_requester(values: StageValues, forge: Forge) -> ApprovalRequester:
    """Return how the run asks for approval and how long it waits. It does not wait if nobody can
    answer."""
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

    return ApprovalRequester(values.current_settings.confirmation_options.wait_seconds, ask)
