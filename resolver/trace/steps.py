"""Converts events to what a person reads: single steps, and the view of a whole log.

This module and view.py are the only ones that know how each kind of event appears in a trace.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeGuard

from resolver.errors import LogError
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
from resolver.models.approval import SecurityRisk
from resolver.models.run import Completion, PlanItem, RunState
from resolver.trace.plain import clean, clean_diff, one_line, plural, relative_command
from resolver.trace.view import (
    Entry,
    Language,
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
            nested[event.delegate].append(inner_event(event))
    return {id: delegate_events for id, delegate_events in nested.items() if delegate_events}


def _delegate_of(event: Event) -> int | None:
    return event.delegate if isinstance(event, life.DelegateEvent) else None


def inner_event(event: life.DelegateEvent) -> Event:
    """Return the event of the delegate; an Unknown event if it can't be parsed."""
    try:
        return parse_logged_event(event.event)
    except LogError:
        return Unknown(id=event.id, timestamp=event.timestamp, kind="unreadable")


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
    verb, subject, body = _describe_action(action)
    subject = relative_command(subject, roots)
    if body is not None and isinstance(action, a.CmdRun):
        body = replace(body, text=relative_command(body.text, roots))
    title = one_line(subject)
    if "\n" in subject.strip():
        title += " …"
    shows_body = body is not None and clean(body.text).strip() not in ("", title)
    step = TraceStep(
        number=number,
        event_id=action.id,
        kind=str(getattr(action, "kind", "")),
        verb=verb,
        subject=title,
        thought=clean(action.thought).strip(),
        prose=clean(_prose(action)).strip(),
        action=TraceBlock(_clean_block(body), body.language) if body and shows_body else None,
    )
    if isinstance(action, a.Finish):
        badge = None if action.task_completed else "task not completed"
        step = replace(step, badge=badge, mood="good" if action.task_completed else "bad")
    elif isinstance(action, a.Invalid):
        step = replace(step, badge="not done", mood="bad")
    if observation is not None:
        step = _with_observation(step, action, observation)
    elif action.observation:
        step = replace(step, badge="no answer")
    if action.security_risk is SecurityRisk.HIGH:
        step = replace(step, badge=f"{step.badge}, high risk" if step.badge else "high risk")
    return step


def _describe_action(action: ActionBase) -> tuple[str, str, TraceBlock | None]:
    """Return verb, subject, and the whole request if one line may not hold it."""
    match action:
        case a.CmdRun():
            verb = "Type" if action.is_input else "Run"
            return verb, action.command, TraceBlock(action.command, "bash")
        case a.IPythonRunCell():
            return "Run Python", action.code, TraceBlock(action.code, "python")
        case a.FileRead():
            lines = action.view_range
            return (
                "Read",
                action.path + (f", lines {lines[0]} to {lines[1]}" if lines else ""),
                None,
            )
        case a.FileWrite():
            return "Create", action.path, TraceBlock(action.content, _code_language(action.path))
        case a.FileEdit():
            return _EDIT_VERBS[action.command], action.path, _edit_as_diff(action)
        case a.McpCall():
            arguments = TraceBlock(as_json(action.arguments), "json") if action.arguments else None
            return "Call", f"{action.server}/{action.name}", arguments
        case a.CodeSearch():
            folder_suffix = f" below {action.path}" if action.path else ""
            return "Search the code for", ", ".join(action.terms) + folder_suffix, None
        case a.CodeExplore():
            details = [action.direction, f"{plural(action.depth, 'edge')} deep", *action.edges]
            return (
                "Explore the code from",
                f"{', '.join(action.start)} ({', '.join(details)})",
                None,
            )
        case a.Recall(source=Source.ENVIRONMENT):
            return "Load", f"{action.query}: {action.why}", None
        case a.Recall():
            return "Recall", action.query or "the list of skills", TraceBlock(action.query)
        case a.Delegate():
            return "Delegate to", action.agent, TraceBlock(action.task)
        case a.ReviewComment(path=path, line=line):
            start_line = f"{action.start_line}-" if action.start_line else ""
            suggestion = TraceBlock(action.suggestion) if action.suggestion else None
            return "Comment on", f"{path}:{start_line}{line} ({action.severity})", suggestion
        case a.PlanUpdate(items=items):
            completed = sum(item.status == "done" for item in items)
            plan_lines = (f"{_PLAN_MARKS[item.status]} {item.title}" for item in items)
            return "Plan", f"{completed} of {len(items)} done", TraceBlock("\n".join(plan_lines))
        case _:
            kind = str(getattr(action, "kind", "action"))
            verb = _PLAIN_VERBS.get(kind, kind.replace("_", " ").capitalize())
            return (verb, "", None) if action.observation is None else (verb, *_own_values(action))


def _own_values(action: ActionBase) -> tuple[str, TraceBlock | None]:
    """Return the first value of the action's own fields, and all fields if there are more."""
    values = own_fields(action)
    subject = str(next(iter(values.values()), ""))
    return subject, TraceBlock(as_json(values), "json") if len(values) > 1 else TraceBlock(subject)


_EDIT_VERBS = {"str_replace": "Edit", "insert": "Insert into", "undo_edit": "Undo the last edit of"}
_PLAN_MARKS = {"todo": "○", "doing": "▸", "done": "✓"}
_PLAIN_VERBS = {
    "message": "Say",
    "think": "Think",
    "finish": "Finish",
    "reject": "Decline",
    "invalid": "Reply not followed",
}


def _edit_as_diff(action: a.FileEdit) -> TraceBlock:
    old_lines = [f"-{line}" for line in (action.old_str or "").splitlines()]
    new_lines = [f"+{line}" for line in (action.new_str or "").splitlines()]
    position = [f"@@ after line {action.insert_line} @@"] if action.insert_line is not None else []
    return TraceBlock("\n".join([*position, *old_lines, *new_lines]), "diff")


def _prose(action: ActionBase) -> str:
    """Return the prose in an action that a person should read in full."""
    match action:
        case a.Message() | a.Think():
            return action.content
        case a.Finish():
            places = (f"- {place.where} {place.symbol}".rstrip() for place in action.places)
            answers = (f"- {answer.id}: {answer.answer}" for answer in action.threads)
            return "\n".join([action.message, *places, *answers])
        case a.ReviewComment():
            return action.body
        case a.Reject() | a.Invalid():
            return action.reason
        case _:
            return ""


def _clean_block(block: TraceBlock) -> str:
    """Return the block's text for display. In a diff, invisible characters are part of the code."""
    return clean_diff(block.text) if block.language == "diff" else clean(block.text)


def _with_observation(step: TraceStep, action: ActionBase, observation: Event) -> TraceStep:
    """Return the step with the result of its observation."""
    badge, mood = _result_badge(observation)
    outputs = tuple(
        TraceBlock(text.rstrip("\n"), block.language)
        for block in _outputs(observation)
        if (text := _clean_block(block)).strip() and text.strip() != step.prose
    )
    shows_diff = any(block.language == "diff" for block in outputs)
    return replace(
        step,
        # The diff that an edit resulted in says more than the arguments of the edit.
        action=None if shows_diff and isinstance(action, a.FileEdit) else step.action,
        outputs=outputs,
        badge=step.badge or badge,
        mood=step.mood if step.mood != "plain" else mood,
        seconds=_measured_seconds(action, observation) if action.observation else None,
        images=tuple(image for image in _images(observation) if _IMAGE.fullmatch(image)),
    )


def _result_badge(observation: Event) -> tuple[str | None, Mood]:
    """Return the observation's result in a word or two, and its mood."""
    match observation:
        case o.CmdOutput(exit_code=None):
            return ("timed out", "bad") if observation.timed_out else ("still running", "plain")
        case o.CmdOutput():
            return f"exit code {observation.exit_code}", "bad" if observation.exit_code else "good"
        case o.ErrorObservation():
            return "not done", "bad"
        case o.IPythonOutput(error=True) | o.McpResult(error=True):
            return "error", "bad"
        case o.DelegateResult():
            return observation.state.value.replace(
                "_", " "
            ), "good" if observation.state is RunState.FINISHED else "bad"
        case _:
            return None, "plain"


def _outputs(observation: Event) -> Iterable[TraceBlock]:
    """Yield the texts of an observation."""
    if isinstance(observation, o.FileEditResult) and observation.diff.strip():
        yield TraceBlock(observation.diff, "diff")
        return
    if isinstance(observation, o.PlanUpdated):
        return  # the plan itself is shown already
    yield TraceBlock(str(getattr(observation, "content", "")), _language(observation))
    match observation:
        case o.McpResult(structured=dict() as structured):
            yield TraceBlock(as_json(structured), "json")
        case Unknown():
            yield TraceBlock(as_json(unknown_fields(observation)), "json")
        case _:
            pass


def _code_language(path: str) -> Language | None:
    endings: dict[str, Language] = {"py": "python", "sh": "bash", "json": "json"}
    return endings.get(path.rpartition(".")[2])


def _language(observation: Event) -> Language | None:
    text = str(getattr(observation, "content", ""))[:200].lstrip()
    is_diff = isinstance(observation, o.CmdOutput) and text.startswith(("diff --git ", "--- a/"))
    return "diff" if is_diff else None


def _images(observation: Event) -> tuple[str, ...]:
    match observation:
        case o.IPythonOutput() | o.FileReadResult() | o.McpResult():
            return observation.images
        case _:
            return ()


def _with_reply(step: TraceStep, reply: Completion) -> TraceStep:
    return replace(
        step,
        thought=step.thought or clean(reply.reasoning).strip(),
        cost=reply.cost,
        tokens=reply.tokens,
    )


def _measured_seconds(action: EventBase, observation: EventBase) -> float:
    seconds = float(getattr(observation, "seconds", 0.0))
    return seconds if seconds > 0 else _between(action.timestamp, observation.timestamp)


def _between(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds()


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
        mood=_MOODS.get(state.run_state, "plain"),
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


_MOODS: dict[RunState, Mood] = {
    RunState.FINISHED: "good",
    RunState.REJECTED: "bad",
    RunState.ERROR: "bad",
    RunState.STOPPED: "bad",
    RunState.STUCK: "bad",
    RunState.LIMIT: "bad",
}
