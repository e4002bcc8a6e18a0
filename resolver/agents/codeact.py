"""The default agent: a model that acts by writing code, one step at a time.

Its system prompt has the general rules, and the tools as text for models without native tool calls.
An agent that a repository defines is this agent with instructions and tools of its own.
"""

from typing import Any

from resolver.agents.definitions import (
    MCP,
    NO_OPTIONAL_TOOLS,
    AgentDefinition,
    AvailableTools,
)
from resolver.agents.replies import find_offered_tools, next_action, read_reply
from resolver.agents.tags import show_tools
from resolver.agents.tools.calls import (
    BROWSER,
    mcp_section,
    native_names,
    native_specs,
)
from resolver.agents.tools.finish import correct_thread_answers, correct_title, refuse
from resolver.agents.tools.registry import (
    DelegateAgent,
    available_tools,
    tool_specs,
)
from resolver.config.templates import render
from resolver.errors import ContextWindowExceeded
from resolver.events.actions import CondensationRequest, FileEdit, FileWrite
from resolver.events.base import ActionBase
from resolver.events.lifecycle import SystemPrompt
from resolver.events.state import State
from resolver.llm.base import Model
from resolver.memory.conversation import ConversationMemory, Dialect
from resolver.models.base import JsonObject


def prompt_values(
    tools: tuple[str, ...],
    colleagues: tuple[DelegateAgent, ...] = (),
    *,
    is_read_only: bool = False,
    has_threads: bool = False,
) -> JsonObject:
    """Return the values that the templates of system prompts read about an agent's tools.

    The parameters are as in `tool_specs`.
    """
    specs = tool_specs(tools, colleagues, is_read_only, has_threads)
    return {
        "tools": tools,
        "colleagues": colleagues,
        "is_read_only": is_read_only,
        "shown_tools": show_tools(specs),  # for a model without native tool calls
    }


class CodeActAgent:
    """Queries the model with the conversation so far, and returns its actions one at a time.

    model: expected to have recorded each reply in the state by the time `complete` returns
    (`resolver.llm.base.RecordedModel`). If a reply is not recorded, only its first action is used,
    with `reply=None`.
    available: tools in addition to those of the sandbox.
    """

    name = "CodeActAgent"
    is_read_only = False
    """True if the result of the agent is its final message and no change is published."""

    def __init__(
        self, model: Model, dialect: Dialect, available: AvailableTools = NO_OPTIONAL_TOOLS
    ) -> None:
        self._model = model
        self._accepts_images = self.accepts_images(model)
        self._memory = ConversationMemory(dialect, sees_images=self._accepts_images)
        self._dialect = dialect
        self._tools = available_tools(available.requirements)
        self._colleagues = available.colleagues
        self._mcp = available.mcp
        self._thread_labels = available.thread_labels

    def accepts_images(self, model: Model) -> bool:
        """Return True if images are shown to the agent."""
        return model.supports_vision

    def system_prompt(self) -> SystemPrompt:
        """Return the general rules and, in the tag dialect, the tools as text."""
        return self._build_system_prompt("agent/system.md.j2")

    def step(self, state: State) -> ActionBase:
        """Return the next action of the last reply, or the first one of a new reply.

        An edit by a read-only agent becomes an `Invalid` with the reason. If the conversation
        exceeds the context window, the action is a CondensationRequest.

        Raises ModelError, and ContextWindowExceeded if the previous CondensationRequest was not
        answered.
        """
        action = correct_thread_answers(self._requested_action(state), self._thread_labels)
        if not self.is_read_only:
            return correct_title(action, state)
        if isinstance(action, FileWrite | FileEdit):
            return refuse(action, "agent/edit_refused.md.j2")
        return action

    def _requested_action(self, state: State) -> ActionBase:
        """Return the next action that the model asks for, whether it is available or not."""
        pending_action = next_action(state, self._dialect)
        if pending_action is not None:
            return pending_action
        first_new_event = len(state.events)
        specs = list(self._tool_specs()) if self._dialect == "tools" else None
        try:
            completion = self._model.complete(self._memory.messages(state), specs)
        except ContextWindowExceeded as error:
            if _is_unanswered(state):
                raise
            return CondensationRequest(tokens=error.tokens, max_tokens=error.max_tokens)
        # The reply is in the log by now, so the action gets its id. A resumed run finds the same
        # reply there and continues with the actions that were not taken yet.
        action = next_action(state, self._dialect, first_new_event)
        if action is not None:
            return action
        return read_reply(completion, self._dialect, *find_offered_tools(state))[0]

    def _build_system_prompt(self, template: str, **values: Any) -> SystemPrompt:
        """Return the template as an event, with the section about MCP tools appended."""
        offered = prompt_values(
            self._tools,
            self._colleagues,
            is_read_only=self.is_read_only,
            has_threads=bool(self._thread_labels),
        )
        text = render(template, dialect=self._dialect, **offered, **values)
        text = f"{text.strip()}\n\n{mcp_section(self._mcp, self._dialect)}".strip()
        return SystemPrompt(
            content=text, tools=self._tool_names(), dialect=self._dialect, mcp_tools=self._mcp
        )

    def _tool_specs(self) -> tuple[JsonObject, ...]:
        specs = tool_specs(
            self._tools, self._colleagues, self.is_read_only, bool(self._thread_labels)
        )
        return (*specs, *native_specs(self._mcp))

    def _tool_names(self) -> tuple[str, ...]:
        """Return the names of the agent's tools."""
        return (*self._tools, *native_names(self._mcp))


def _is_unanswered(state: State) -> bool:
    """Return True if the newest event is a CondensationRequest, without a Condensation."""
    return bool(state.events) and isinstance(state.events[-1], CondensationRequest)


class DefinedAgent(CodeActAgent):
    """Has the tools of its definition that are available in this run, and no others.

    Its prompt consists of the general rules and the text of the definition. Calls of other tools
    are refused with a reason.
    """

    def __init__(
        self, definition: AgentDefinition, model: Model, dialect: Dialect, available: AvailableTools
    ) -> None:
        super().__init__(model, dialect, available)
        self.name = definition.name
        self.is_read_only = definition.read_only
        self._definition = definition
        # A definition can't know which servers an installation has: it gets all of them or none.
        self._mcp = tuple(
            tool
            for tool in available.mcp
            if (BROWSER if tool.server == BROWSER else MCP) in definition.tools
        )
        available_names = available_tools(available.requirements)
        self._tools = tuple(name for name in definition.tools if name in available_names)

    def system_prompt(self) -> SystemPrompt:
        """Return the general rules, the definition's text and, in the tag dialect, the tools."""
        return self._build_system_prompt("agent/defined.md.j2", definition=self._definition)
