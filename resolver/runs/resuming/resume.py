"""Prepares a log to be resumed by another process: the events that are added before the work
continues.

Every function looks for its own events first, so that nothing is added twice if this process is
killed in between and the run is resumed again.
"""

from collections.abc import Mapping

from resolver import __version__
from resolver.config.templates import render
from resolver.controller.limits import extension_events
from resolver.events.actions import Message
from resolver.events.base import Source
from resolver.events.lifecycle import (
    LimitsExtended,
    Resumed,
)
from resolver.events.observations import AgentStateChanged
from resolver.events.run_log import RunLog
from resolver.models.run import FINAL_STATES, Continuation, RunLimits, RunState
from resolver.models.truncate import marker_for


def resume_run(log: RunLog, run: str, continuation: Continuation | None, *, ended: bool) -> None:
    """Log that `run` continues here. It is the first event that this process adds.

    ended: True if the run had ended regularly, so that nothing interrupted it.
    """
    by = continuation.by if continuation else None
    has_begun = log.start_index(run) < len(log.state.events)
    if ended and log.is_done:
        reason = "the run had ended, and its change is to be published"
    elif ended:
        reason = "the run had ended, and continues"
    elif has_begun or continuation is None:
        reason = "the run was interrupted and continues"
    else:
        reason = f"continues run {continuation.run}"
    log.stream.add(Resumed(version=__version__, run=run, reason=reason, by=by))


def change_limits(log: RunLog, overrides: Mapping[str, float]) -> None:
    """Replace limits of the log with those that a person gave for the resumed run.

    overrides: totals for the whole run, by the field names of `RunLimits`.
    """
    limits = RunLimits.model_validate({**log.state.limits.model_dump(), **overrides})
    if limits != log.state.limits:
        log.stream.add(LimitsExtended(limits=limits))


def continue_run(
    log: RunLog, run: str, continuation: Continuation | None, max_limits: RunLimits
) -> None:
    """Add the person's extension and message, and let the agent run again if it had ended.

    max_limits: totals up to which a request may extend the limits.
    """
    state = log.state
    has_ended = state.run_state in FINAL_STATES
    if continuation is not None and continuation.publishes:
        return
    events_of_run = state.events[log.start_index(run) :]
    has_continued = any(isinstance(e, AgentStateChanged) for e in events_of_run)
    if continuation is None or has_continued:
        if has_ended and not log.is_done:
            log.stream.add(AgentStateChanged(state=RunState.RUNNING))
        return
    if not any(isinstance(e, LimitsExtended) for e in events_of_run):
        extensions = extension_events(
            state.limits, continuation.extension, max_limits, continuation.by
        )
        for event in extensions:
            log.stream.add(event)
    has_message = any(isinstance(e, Message) and e.source is Source.USER for e in events_of_run)
    if not has_message and (continuation.message.strip() or has_ended):
        # A person may have given a reason for the stop, such as another approach.
        stop = state.reason if state.run_state is RunState.STOPPED else None
        content = instruction_of(continuation, stop)
        log.stream.add(Message(content=content, source=Source.USER))
    if has_ended:
        log.stream.add(AgentStateChanged(state=RunState.RUNNING))


def instruction_of(continuation: Continuation, stop: str | None = None) -> str:
    """Return the message to the agent about the request to continue.

    stop: how the run was stopped, with the reason that a person gave; None if it was not.
    """
    text = continuation.message.strip()
    # The marker delimits the persons' texts in the prompt. It must not occur in them, or a text
    # could pretend to end and continue as an instruction of Resolver.
    marker = marker_for(f"{stop or ''}\n{text}")
    values = {"text": text, "stop": stop, "by": continuation.by, "marker": marker}
    return render("agent/continued.md.j2", **values).strip()
