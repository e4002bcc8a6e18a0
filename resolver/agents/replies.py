"""Conversion of a model's reply to the actions it asks for, in either dialect.

The conversion is deterministic: a resumed run parses the logged reply again to get the remaining
actions.
"""

from collections.abc import Sequence

from resolver.agents.tags import parse_tags
from resolver.agents.tools.calls import parse_tool_call
from resolver.config.templates import render
from resolver.events.actions import Finish, Invalid, Message, Think
from resolver.events.base import ActionBase
from resolver.events.lifecycle import ModelReplied, SystemPrompt
from resolver.events.state import State
from resolver.memory.conversation import Dialect
from resolver.models.run import Completion, McpTool

EXIT_REPLY = "/exit"
"""A reply that consists of this word ends the run. Models know it from chats in a terminal."""

OUTPUT_LIMIT_REASON = "length"
"""Finish reason of a reply that the provider cut off at the output limit."""


def read_reply(
    completion: Completion,
    dialect: Dialect,
    mcp: Sequence[McpTool] = (),
    tool_names: Sequence[str] = (),
) -> tuple[ActionBase, ...]:
    """Return the actions of the reply in order, at least one.

    mcp: the MCP tools that were offered, from the log.
    tool_names: the names of all tools that were offered; empty for all that there are.

    Tool calls take precedence over tags in the text. The text next to them is the thought of the
    first action. Actions after a `Finish` are dropped. A reply without actions is a message that
    waits for an answer, whatever code it quotes. `/exit` alone is a `Finish`.
    """
    is_truncated = completion.finish_reason == OUTPUT_LIMIT_REASON
    if completion.tool_calls:
        last = len(completion.tool_calls) - 1
        actions = [
            parse_tool_call(call, is_truncated and index == last, mcp, tool_names)
            for index, call in enumerate(completion.tool_calls)
        ]
        thought = completion.text.strip()
        actions[0] = actions[0].model_copy(update={"thought": thought})
        return _until_finish(actions)
    actions = list(parse_tags(completion.text, is_truncated, mcp, tool_names))
    if dialect == "tools" and any(not isinstance(action, Think) for action in actions):
        return (Invalid(reason=render("agent/tags_in_text.md.j2").strip()),)
    if dialect == "tags" and actions:
        return _until_finish(actions)
    return (_action_without_call(completion, is_truncated),)


def next_action(state: State, dialect: Dialect, start: int = 0) -> ActionBase | None:
    """Return the next action of the last reply among the events from `start` on, if any is left."""
    taken = 0
    for index in range(len(state.events) - 1, start - 1, -1):
        event = state.events[index]
        if isinstance(event, ModelReplied):
            actions = read_reply(event.completion, dialect, *find_offered_tools(state))
            if taken >= len(actions):
                return None
            return actions[taken].model_copy(update={"reply": event.id})
        taken += isinstance(event, ActionBase) and event.reply is not None
    return None


def has_pending_actions(state: State) -> bool:
    """Return True if the last reply asks for actions that were not taken yet.

    Always False before the first iteration and for agents without a model.
    """
    if not state.iterations:
        return False
    prompt = _find_system_prompt(state)
    return prompt is not None and next_action(state, prompt.dialect) is not None


def find_offered_tools(state: State) -> tuple[tuple[McpTool, ...], tuple[str, ...]]:
    """Return the MCP tools and the names of all tools that the model was offered."""
    prompt = _find_system_prompt(state)
    return (prompt.mcp_tools, prompt.tools) if prompt else ((), ())


def _find_system_prompt(state: State) -> SystemPrompt | None:
    return next((event for event in state.events if isinstance(event, SystemPrompt)), None)


def _until_finish(actions: list[ActionBase]) -> tuple[ActionBase, ...]:
    for index, action in enumerate(actions):
        if isinstance(action, Finish):
            return tuple(actions[: index + 1])
    return tuple(actions)


def _action_without_call(completion: Completion, is_truncated: bool) -> ActionBase:
    if completion.text.strip() == EXIT_REPLY:
        return Finish(message="", task_completed=False)  # `/exit` does not claim success
    if completion.text.strip() and not is_truncated:
        return Message(content=completion.text, wait_for_response=True)
    reason = render(
        "agent/no_action.md.j2", cut=is_truncated, finish_reason=completion.finish_reason
    ).strip()
    return Invalid(reason=reason)
