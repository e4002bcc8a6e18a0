"""Changes the queue of a server for `resolver admin`, also while servers and workers run."""

from datetime import datetime

from resolver.entrypoints.webhook.request_queue import QueuedRequest, RequestQueue, RequestState
from resolver.errors import UsageError
from resolver.models.run import Actor, Command, Trigger
from resolver.storage.run_store import is_run_id

OPERATOR = "the operator of the server"
"""Stands for a login where an operator stops a run. No account of GitHub has spaces in its name."""


def start_deferred(queue: RequestQueue, id: str) -> QueuedRequest:
    """Let a deferred request be started now, and return it as it was.

    id: of the request or of its run. Raises UsageError if there is none, or it is not deferred.
    """
    request = _find(queue, id)
    _require_state(request, RequestState.DEFERRED)
    queue.start_now(request.id)
    return request


def end_request(queue: RequestQueue, id: str, now: datetime) -> QueuedRequest:
    """End a request that waits or is deferred, or stop an active run. Return it as it was.

    The conversation of a waiting request gets no comment. For an active run, a stop is left like
    that of a comment.
    id: of the request or of its run. Raises UsageError if there is none, or it has ended.
    """
    request = _find(queue, id)
    if request.state is RequestState.WORKING and request.run:
        queue.leave_command([request], _operator_stop(request, now))
    else:
        _require_state(request, RequestState.WAITING, RequestState.DEFERRED)
        queue.cancel(request.id)
    return request


def _find(queue: RequestQueue, id: str) -> QueuedRequest:
    request = queue.get(id)
    if request is None and is_run_id(id):
        request = next((request for request in queue.unfinished() if request.run == id), None)
    if request is None:
        raise UsageError(
            f"no open request has the id {id!r}", "see `resolver admin runs` for the ids"
        )
    return request


def _require_state(request: QueuedRequest, *allowed: RequestState) -> None:
    if request.state not in allowed:
        raise UsageError(
            f"{request.id} is {request.state}, not {' or '.join(allowed)}",
            "see `resolver admin runs`; to repeat a request that is done, ask again in the "
            "conversation",
        )


def _operator_stop(request: QueuedRequest, now: datetime) -> Trigger:
    """Return the trigger of a stop by the operator of the server."""
    key = f"operator:{request.id}:{request.started_at}"
    changes = {"key": key, "actor": Actor(login=OPERATOR), "command": Command.STOP, "at": now}
    return request.trigger.model_copy(update={**changes, "instruction": ""})
