"""Renders an event log in the Agent Trajectory Interchange Format (ATIF), version 1.7.

Each reply of the model is a step with its tool calls and their observations. What a delegate did is
a trajectory of its own, in `subagent_trajectories`, to which the observation of the delegation
refers.

Source: RFC 0001 of Harbor, https://www.harborframework.com/docs/agents/trajectory-format
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from resolver.events.actions import Message
from resolver.events.base import ActionBase, EventBase, ObservationBase
from resolver.events.lifecycle import (
    AGENT,
    DelegateEvent,
    ModelReplied,
    RunStarted,
    ServiceReplied,
    SystemPrompt,
    roots_of,
)
from resolver.events.log import Event, parse_logged_event
from resolver.models.run import Completion, Tokens

ATIF_VERSION = "ATIF-v1.7"

_EVENT_FIELDS = frozenset(EventBase.model_fields) | {"kind", "thought", "reply"}


def render_atif(events: Iterable[Event]) -> str:
    """Return the trajectory of a log as JSON."""
    return json.dumps(build_trajectory(list(events)), indent=2)


def build_trajectory(events: Sequence[Event], trajectory_id: str = "") -> dict[str, Any]:
    """Return the trajectory of a log, or of a delegate's stream of events."""
    opening = next((e for e in events if isinstance(e, RunStarted)), None)
    run = opening.run if opening else "unknown"
    own_id = trajectory_id or run
    nested = _nested_streams(events)
    roots = roots_of(events)
    delegates = {number: f"{own_id}-delegate-{number}" for number in nested}
    steps = _steps(events, delegates)
    agent: dict[str, Any] = {
        "name": "resolver",
        "version": opening.version if opening else "unknown",
    }
    if opening is not None:
        agent |= {"model_name": opening.model, "extra": {"agent": opening.agent}}
    trajectory: dict[str, Any] = {
        "schema_version": ATIF_VERSION,
        "session_id": run if opening else own_id,
        "trajectory_id": own_id,
        "agent": agent,
        # The format requires a step.
        "steps": steps or [{"step_id": 1, "source": "system", "message": ""}],
        "final_metrics": _final_metrics(events, nested, len(steps)),
    }
    if roots:
        # Where the repository is in the sandbox, for a reader that executes the calls again.
        trajectory["extra"] = {"roots": list(roots)}
    if nested:
        trajectory["subagent_trajectories"] = [
            build_trajectory(stream, delegates[number]) for number, stream in nested.items()
        ]
    return trajectory


def _nested_streams(events: Sequence[Event]) -> dict[int, list[Event]]:
    """Return the events of each delegate, by the id of the delegation."""
    found: dict[int, list[Event]] = {}
    for event in events:
        if isinstance(event, DelegateEvent):
            found.setdefault(event.delegate, []).append(parse_logged_event(event.event))
    return found


def _steps(events: Sequence[Event], delegates: dict[int, str]) -> list[dict[str, Any]]:
    actions: dict[int, list[ActionBase]] = {}
    answers: dict[int, list[EventBase]] = {}
    for event in events:
        if isinstance(event, ActionBase) and event.reply is not None:
            actions.setdefault(event.reply, []).append(event)
        if isinstance(event, ObservationBase) and event.cause is not None:
            answers.setdefault(event.cause, []).append(event)
    steps: list[dict[str, Any]] = []
    for event in events:
        step = _step(event, actions, answers, delegates)
        if step is not None:
            timestamp = event.timestamp.isoformat()
            steps.append({"step_id": len(steps) + 1, "timestamp": timestamp, **step})
    return steps


def _step(
    event: Event,
    actions: dict[int, list[ActionBase]],
    answers: dict[int, list[EventBase]],
    delegates: dict[int, str],
) -> dict[str, Any] | None:
    match event:
        case SystemPrompt():
            return {"source": "system", "message": event.content}
        case Message(reply=None) if event.source != AGENT:
            return {"source": "user", "message": event.content}
        case ModelReplied():
            return _agent_step(event, actions.get(event.id, []), answers, delegates)
    return None


def _agent_step(
    event: ModelReplied,
    actions: Sequence[ActionBase],
    answers: dict[int, list[EventBase]],
    delegates: dict[int, str],
) -> dict[str, Any]:
    completion = event.completion
    calls = [
        {
            "tool_call_id": call.id,
            "function_name": call.name,
            "arguments": _arguments(call.arguments),
        }
        for call in completion.tool_calls
    ]
    known = {call["tool_call_id"] for call in calls}
    results: list[dict[str, Any]] = [_result(answer) for answer in answers.get(event.id, [])]
    for action in actions:
        call_id = action.tool_call.id if action.tool_call else f"action_{action.id}"
        if call_id not in known:
            # An action that was written as tags in the text of the reply.
            known.add(call_id)
            calls.append(_call_of_action(action, call_id))
        for answer in answers.get(action.id, []):
            result: dict[str, Any] = {"source_call_id": call_id, **_result(answer)}
            if action.id in delegates:
                result["subagent_trajectory_ref"] = [{"trajectory_id": delegates[action.id]}]
            results.append(result)
    step: dict[str, Any] = {
        "source": "agent",
        "model_name": completion.model,
        "message": completion.text,
        "metrics": _metrics(completion),
    }
    if completion.reasoning:
        step["reasoning_content"] = completion.reasoning
    if calls:
        step["tool_calls"] = calls
    if results:
        step["observation"] = {"results": results}
    return step


def _call_of_action(action: ActionBase, call_id: str) -> dict[str, Any]:
    fields = action.model_dump(mode="json", exclude_defaults=True, exclude=set(_EVENT_FIELDS))
    return {
        "tool_call_id": call_id,
        "function_name": str(getattr(action, "kind", "")),
        "arguments": fields,
    }


def _arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a call; those that are no JSON object under the name `raw`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {"raw": text}
    return value if isinstance(value, dict) else {"raw": text}


def _result(event: EventBase) -> dict[str, Any]:
    """Return an observation: its text, and what else is known of it, such as an exit code."""
    hidden = _EVENT_FIELDS - {"kind"} | {"content", "images"}
    fields = event.model_dump(mode="json", exclude_defaults=True, exclude=set(hidden))
    content = str(getattr(event, "content", ""))
    return {"content": content, "extra": {"kind": getattr(event, "kind", ""), **fields}}


def _metrics(completion: Completion) -> dict[str, Any]:
    metrics: dict[str, Any] = {
        "prompt_tokens": completion.tokens.input,
        "completion_tokens": completion.tokens.output,
        "cached_tokens": completion.tokens.cached,
    }
    if completion.cost is not None:
        metrics["cost_usd"] = completion.cost
    return metrics


def _final_metrics(
    events: Sequence[Event], nested: Mapping[int, Sequence[Event]], steps: int
) -> dict[str, Any]:
    """Return the totals. The format counts the cost of subagents here, and their tokens there."""
    replies = _completions(events)
    tokens = sum((reply.tokens for reply in replies), start=Tokens())
    costs = [reply.cost for stream in (events, *nested.values()) for reply in _completions(stream)]
    metrics: dict[str, Any] = {
        "total_prompt_tokens": tokens.input,
        "total_completion_tokens": tokens.output,
        "total_cached_tokens": tokens.cached,
        "total_steps": steps,
    }
    if None not in costs:
        metrics["total_cost_usd"] = sum(cost for cost in costs if cost is not None)
    return metrics


def _completions(events: Iterable[Event]) -> list[Completion]:
    return [e.completion for e in events if isinstance(e, ModelReplied | ServiceReplied)]
