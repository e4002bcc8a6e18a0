"""What single events say about a span: its attributes, and the error that it ended with."""

from datetime import timedelta

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase
from resolver.events.log import Event
from resolver.models.run import Completion, RunState
from resolver.telemetry import conventions as c
from resolver.telemetry.span import AttributeValue, RunSpan

FAILED_STATES = frozenset({RunState.ERROR, RunState.STUCK, RunState.LIMIT})
"""States that are errors of an invocation."""


def chat_attributes(
    completion: Completion, service: str, conversation: str
) -> dict[str, AttributeValue]:
    """Return the attributes of a call of a model, without content."""
    attributes: dict[str, AttributeValue] = {
        c.OPERATION: c.CHAT,
        c.PROVIDER: c.provider_name(completion.model),
        c.REQUEST_MODEL: completion.model,
        c.CONVERSATION: conversation,
        c.INPUT_TOKENS: completion.tokens.input,
        c.OUTPUT_TOKENS: completion.tokens.output,
        c.CACHED_TOKENS: completion.tokens.cached,
        c.SERVICE: service,
    }
    if completion.finish_reason:
        attributes[c.FINISH_REASONS] = [completion.finish_reason]
    if completion.cost is not None:
        attributes[c.COST] = completion.cost
    return attributes


def tool_name(action: ActionBase) -> str:
    """Return the name of the tool: as the model called it, or the kind of the action.

    A call that could not be read has a name that the model made up, which is not used.
    """
    if action.tool_call is None or isinstance(action, a.Invalid):
        return str(getattr(action, "kind", ""))
    return action.tool_call.name


def tool_attributes(action: ActionBase) -> dict[str, AttributeValue]:
    """Return the attributes of an action's execution, without content."""
    attributes: dict[str, AttributeValue] = {
        c.OPERATION: c.EXECUTE_TOOL,
        c.TOOL_NAME: tool_name(action),
        c.TOOL_TYPE: "function",
        c.ACTION: str(getattr(action, "kind", "")),
    }
    if action.tool_call is not None:
        attributes[c.TOOL_CALL_ID] = action.tool_call.id
    if isinstance(action, a.McpCall):
        attributes[c.MCP_METHOD] = "tools/call"
    return attributes


def add_completed_span(parent: RunSpan, event: life.StageCompleted | life.CheckExecuted) -> None:
    """Add the span of a stage or a check, which has ended with the event, if it took any time."""
    attributes: dict[str, AttributeValue]
    if isinstance(event, life.StageCompleted):
        name, seconds, error = event.stage, event.seconds, ""
        attributes = {c.PHASE: event.stage}
    else:
        done = event.execution
        name, seconds = f"check {event.name}", 0.0 if event.is_cached else done.seconds
        error = "timeout" if done.exit_code is None else ""
        attributes = {c.CHECK_TREE: event.at}
        if done.exit_code is not None:
            attributes[c.EXIT_CODE] = done.exit_code
    if seconds > 0:
        start = event.timestamp - timedelta(seconds=seconds)
        parent.start_child(name, start, attributes).end(event.timestamp, error)


def is_tool(event: Event) -> bool:
    """Return True for an action that is executed and answered, and for one that can't be read."""
    return isinstance(event, a.Invalid) or (
        isinstance(event, ActionBase) and event.observation is not None
    )


def error_of(observation: ObservationBase) -> str:
    """Return the code of the error that an action ended with; "" for none.

    A command that ends with another exit code than 0 was executed, which is no error of the tool.
    """
    match observation:
        case o.ErrorObservation():
            return observation.code or "error"
        case o.CmdOutput(timed_out=True):
            return "timeout"
        case o.IPythonOutput(error=True) | o.BrowserOutput(error=True) | o.McpResult(error=True):
            return "tool_error"
        case o.DelegateResult() if observation.state in FAILED_STATES:
            return observation.state.value
        case _:
            return ""
