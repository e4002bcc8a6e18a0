"""How a log is taken up by another process: what is added to it before the work goes on.

Each part is found when it is there already, so that being killed in between does no harm.
"""

import hashlib
from collections.abc import Mapping

from resolver import __version__
from resolver.config.templates import render
from resolver.controller.control import Approve, Control, Deny, Say
from resolver.controller.controller import ENDS
from resolver.controller.limits import extension_events
from resolver.events.actions import Message
from resolver.events.base import Source
from resolver.events.lifecycle import (
    ConfirmationAnswered,
    DelegateEvent,
    LimitsExtended,
    Resumed,
)
from resolver.events.log import Event, parse_logged_event
from resolver.events.observations import AgentStateChanged
from resolver.events.run_log import RunLog
from resolver.models.run import Continuation, RunLimits, RunState


def resume_run(log: RunLog, run: str, continuation: Continuation | None, *, ended: bool) -> None:
    """Say in the log that `run` goes on from here: the first event that this process adds.

    ended: whether the run had come to a regular end, so that nothing cut it off.
    """
    by = continuation.by if continuation else ""
    begun = log.begun(run) < len(log.state.events)
    if ended and log.is_done:
        reason = "the run had ended, and its change is published"
    elif ended:
        reason = "the run had ended, and goes on"
    elif begun or continuation is None:
        reason = "the run was cut off and goes on"
    else:
        reason = f"goes on from run {continuation.run}"
    log.stream.add(Resumed(version=__version__, run=run, reason=reason, by=by))


def change_limits(log: RunLog, bounds: Mapping[str, float]) -> None:
    """Put the bounds that a person gave along with the resume in the place of the log's.

    bounds: by the names of the fields of Limits, the totals of the whole run.
    """
    wanted = RunLimits.model_validate({**log.state.limits.model_dump(), **bounds})
    if wanted != log.state.limits:
        log.stream.add(LimitsExtended(limits=wanted))


def continue_run(log: RunLog, run: str, continuation: Continuation | None, most: RunLimits) -> None:
    """Add what was granted and said, and let the agent run again where it had come to an end.

    most: the totals that a request may extend the limits to.
    """
    state = log.state
    stopped = state.run_state in ENDS
    if continuation is not None and continuation.publishes:
        return
    if continuation is None:
        if stopped and not log.is_done:
            log.stream.add(AgentStateChanged(state=RunState.RUNNING))
        return
    since = state.events[log.begun(run) :]
    if any(isinstance(e, AgentStateChanged) for e in since):
        continue_run(log, run, None, most)
        return
    if not any(isinstance(e, LimitsExtended) for e in since):
        granted = extension_events(state.limits, continuation.extension, most, continuation.by)
        for event in granted:
            log.stream.add(event)
    said = any(isinstance(e, Message) and e.source is Source.USER for e in since)
    if not said and (continuation.words.strip() or stopped):
        log.stream.add(Message(content=instruction_of(continuation), source=Source.USER))
    if stopped:
        log.stream.add(AgentStateChanged(state=RunState.RUNNING))


def apply_approvals(
    log: RunLog, run: str, continuation: Continuation | None, control: Control
) -> None:
    """Ask of the run what a person has decided about the action that it waits for, unless it was
    taken before this process was cut off. Words without a decision mean no."""
    if continuation is None or log.state.run_state is not RunState.AWAITING_CONFIRMATION:
        return
    if any(_is_answer(event) for event in log.state.events[log.begun(run) :]):
        return
    decision, words = continuation.decision, continuation.words.strip()
    if decision is not None and decision.approved:
        control.send(Approve(by=decision.by, at=decision.at, number=decision.number))
        if decision.reason:
            control.send(Say(decision.reason, decision.by))
    elif decision is not None:
        control.send(
            Deny(by=decision.by, at=decision.at, reason=decision.reason, number=decision.number)
        )
    elif words:
        control.send(Deny(by=continuation.by, reason=words))


def _is_answer(event: Event) -> bool:
    while isinstance(event, DelegateEvent):
        event = parse_logged_event(event.event)
    return isinstance(event, ConfirmationAnswered)


def instruction_of(continuation: Continuation) -> str:
    """What the agent is told of the request to go on."""
    words = continuation.words.strip()
    seed = words
    while (marker := hashlib.sha256(seed.encode(errors="replace")).hexdigest()[:16]) in words:
        seed += marker
    return render("agent/continued.md.j2", words=words, by=continuation.by, marker=marker).strip()
