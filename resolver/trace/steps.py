"""Converts events to what a person reads: single steps, and the view of a whole log.

How each kind of event appears in a trace is in the templates `trace/step.txt.j2` and
`trace/note.txt.j2`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeGuard

from resolver.config.templates import template_values
from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, EventBase, Source
from resolver.events.log import (
    OBSERVATION_TYPES,
    Event,
    Unknown,
    own_fields,
    parse_logged_event,
)
from resolver.events.state import State
from resolver.models.run import FINAL_STATES, Completion, PlanItem, RunState
from resolver.trace.plain import clean, clean_diff, one_line, plural, relative_command
from resolver.trace.view import (
    Entry,
    Mood,
    TraceBlock,
    TraceHeader,
    TraceStep,
    TraceView,
    as_json,
    cost_parts,
    describe_verdict,
    evidence_of,
    note_of,
    unknown_fields,
)

_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")
_DIFF_STARTS = ("diff --git ", "--- a/")
MAX_FINDINGS = 40
"""Maximum number of findings of a verification that the header lists."""

MAX_DELEGATE_DEPTH = 4
"""Maximum number of levels of delegates that are shown; Resolver itself goes two deep."""


def build_view(events: Iterable[Event]) -> TraceView:
    """Return the view of a log, with any events in any order. Unknown kinds become notes."""
    events = list(events)
    entries = _entries(events, MAX_DELEGATE_DEPTH, life.roots_of(events))
    return TraceView(_header(events), tuple(entries))


def _entries(events: Sequence[Event], depth: int, roots: Sequence[str]) -> list[Entry]:
    """Return the steps and notes of the events.

    depth: levels of delegates whose events are nested in their steps.
    """
    observations = _observations_by_action(events)
    nested = _events_by_delegate(events) if depth else {}
    replies_of_steps = {e.reply for e in events if isinstance(e, ActionBase)}
    replies = {e.id: e.completion for e in events if isinstance(e, life.ModelReplied)}
    entries: list[Entry] = []
    count = 0
    for event in events:
        if is_step(event):
            count += 1
            reply = replies.pop(event.reply, None) if event.reply is not None else None
            step = step_of(event, count, observations.get(event.id), roots)
            if event.id in nested:
                nested_entries = _entries(nested[event.id], depth - 1, roots)
                step = replace(step, nested=tuple(nested_entries))
            entries.append(_with_reply(step, reply) if reply else step)
        elif event.cause is None or observations.get(event.cause) is not event:
            is_shown_elsewhere = (
                _is_reply_of_step(event, replies_of_steps) or _delegate_of(event) in nested
            )
            note = None if is_shown_elsewhere else note_of(event)
            entries += [note] if note else []
    return entries


def _events_by_delegate(events: Sequence[Event]) -> dict[int, list[Event]]:
    """Return the events of each delegate that a step among these events has started."""
    nested: dict[int, list[Event]] = {e.id: [] for e in events if isinstance(e, a.Delegate)}
    for event in events:
        if isinstance(event, life.DelegateEvent) and event.delegate in nested:
            nested[event.delegate].append(parse_logged_event(event.event))
    return {id: delegate_events for id, delegate_events in nested.items() if delegate_events}


def _delegate_of(event: Event) -> int | None:
    return event.delegate if isinstance(event, life.DelegateEvent) else None


def is_step(event: EventBase) -> TypeGuard[ActionBase]:
    """Return True for actions that count as steps: no messages of a person and no state changes."""
    if not isinstance(event, ActionBase) or isinstance(event, a.CondensationRequest):
        return False
    return not (isinstance(event, a.Message) and event.source is Source.USER)


def _is_reply_of_step(event: Event, used: set[int | None]) -> bool:
    return isinstance(event, life.ModelReplied) and event.id in used


def _observations_by_action(events: Sequence[Event]) -> dict[int, Event]:
    """Return the observation of each action by the action's id.

    It is the first event that names the action as its cause.
    """
    actions = {e.id for e in events if is_step(e)}
    observations: dict[int, Event] = {}
    for event in events:
        is_observation = isinstance(event, (*OBSERVATION_TYPES, Unknown))
        if is_observation and not isinstance(event, o.AgentStateChanged) and event.cause in actions:
            observations.setdefault(event.cause or 0, event)
    return observations


def step_of(
    action: ActionBase, number: int, observation: Event | None, roots: Sequence[str] = ()
) -> TraceStep:
    """Return the step of one action with its observation.

    observation: the observation; None if there is none (yet).
    roots: paths of the repository in the sandboxes of the log. Commands and paths are shown
        relative to them.
    """
    values = {"own_fields": own_fields, "as_json": as_json, "plural": plural}
    shown = template_values("trace/step.txt.j2", action=action, observation=observation, **values)
    subject, text = relative_command(shown["subject"], roots), shown["body"] or ""
    if isinstance(action, a.CmdRun):
        text = relative_command(text, roots)
    title = one_line(subject)
    if "\n" in subject.strip():
        title += " …"
    request = _clean_block(TraceBlock(text, shown["language"]))
    step = TraceStep(
        number=number,
        event_id=action.id,
        kind=str(getattr(action, "kind", "")),
        verb=shown["verb"],
        subject=title or None,
        thought=clean(action.thought).strip() or None,
        prose=clean(shown["prose"]).strip() or None,
        action=request if clean(request.text).strip() not in ("", title) else None,
        badge=shown["badge"],
        mood=shown["mood"],
    )
    return step if observation is None else _with_observation(step, action, observation)


def _clean_block(block: TraceBlock) -> TraceBlock:
    """Return the block for display. In a diff, invisible characters are part of the code."""
    clean_text = clean_diff if block.language == "diff" else clean
    return TraceBlock(clean_text(block.text), block.language)


def _with_observation(step: TraceStep, action: ActionBase, observation: Event) -> TraceStep:
    """Return the step with the result of its observation."""
    outputs = tuple(
        TraceBlock(block.text.rstrip("\n"), block.language)
        for block in map(_clean_block, _outputs(observation))
        if block.text.strip() and block.text.strip() != step.prose
    )
    shows_diff = any(block.language == "diff" for block in outputs)
    return replace(
        step,
        # The diff that an edit resulted in says more than the arguments of the edit.
        action=None if shows_diff and isinstance(action, a.FileEdit) else step.action,
        outputs=outputs,
        seconds=_measured_seconds(action, observation) if action.observation else None,
        images=tuple(image for image in o.images_of(observation) if _IMAGE.fullmatch(image)),
    )


def _outputs(observation: Event) -> Iterable[TraceBlock]:
    """Yield the texts of an observation."""
    if isinstance(observation, o.FileEditResult) and observation.diff.strip():
        yield TraceBlock(observation.diff, "diff")
        return
    if isinstance(observation, o.PlanUpdated):
        return  # the plan itself is shown already
    text = str(getattr(observation, "content", ""))
    is_diff = isinstance(observation, o.CmdOutput) and text[:200].lstrip().startswith(_DIFF_STARTS)
    yield TraceBlock(text, "diff" if is_diff else None)
    match observation:
        case o.McpResult(structured=dict() as structured):
            yield TraceBlock(as_json(structured), "json")
        case Unknown():
            yield TraceBlock(as_json(unknown_fields(observation)), "json")
        case _:
            pass


def _with_reply(step: TraceStep, reply: Completion) -> TraceStep:
    return replace(
        step,
        thought=step.thought or clean(reply.reasoning).strip() or None,
        cost=reply.cost,
        tokens=reply.tokens,
    )


def _measured_seconds(action: EventBase, observation: EventBase) -> float:
    seconds = float(getattr(observation, "seconds", 0.0))
    waited = observation.timestamp - action.timestamp
    return seconds if seconds > 0 else waited.total_seconds()


def _header(events: list[Event]) -> TraceHeader:
    """Return the header, folded from the events."""
    state = State.fold(events)
    verifications = [event for event in events if isinstance(event, life.VerificationCompleted)]
    newest = verifications[-1] if verifications else None
    findings = evidence_of(newest) if newest else []
    if len(findings) > MAX_FINDINGS:
        findings[MAX_FINDINGS - 1 :] = [f"and {len(findings) - MAX_FINDINGS + 1} more"]
    header = TraceHeader(
        state=state.run_state.value,
        mood=_mood_of(state.run_state),
        reason=one_line(state.reason or "", 300),
        verdict=one_line(describe_verdict(newest.evidence)) if newest else None,
        evidence=tuple(one_line(text, 300) for text in findings[:MAX_FINDINGS]),
        closing=clean(state.finish.message).strip() if state.finish else None,
        cost=state.cost,
        priced=state.priced,
        parts=cost_parts(state),
        tokens=state.tokens,
        iterations=state.iterations,
        seconds=state.seconds,
        plan=tuple(_clean_item(item) for item in state.plan),
        started=events[0].timestamp.strftime("%Y-%m-%d %H:%M UTC") if events else None,
    )
    start = next((event for event in events if isinstance(event, life.RunStarted)), None)
    return _with_start(header, start) if start else header


def _clean_item(item: PlanItem) -> PlanItem:
    return item.model_copy(update={"title": one_line(item.title, 300)})


def _with_start(header: TraceHeader, start: life.RunStarted) -> TraceHeader:
    task, trigger = start.task, start.task.trigger
    return replace(
        header,
        run=one_line(start.run),
        title=one_line(task.title, 300),
        request=clean(trigger.instruction or task.body).strip(),
        repository=one_line(trigger.repository),
        number=trigger.number,
        url=task.url if re.fullmatch(r"https?://[^\s\"'<>]+", task.url) else None,
        requested_by=one_line(trigger.actor.login),
        left_out=tuple(one_line(text, 300) for text in task.left_out),
        model=one_line(start.model),
        agent=one_line(start.agent),
        runtime=one_line(start.runtime),
        version=one_line(start.version),
        base=one_line(start.base),
    )


def _mood_of(state: RunState) -> Mood:
    if state is RunState.FINISHED:
        return "good"
    return "bad" if state in FINAL_STATES else "plain"
