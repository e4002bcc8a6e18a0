"""The default agent: a model that acts by writing code, one step at a time.

Its system prompt has the general rules, and the tools as text for models without native tool calls.
All agents are this one, with a system prompt and tools of their own.
"""

from resolver.agents.built_in import CODE_ACT
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
from resolver.agents.tools.code_search import check_places
from resolver.agents.tools.finish import correct_thread_answers, correct_title, refuse
from resolver.agents.tools.registry import TOOLS, tool_specs
from resolver.config.templates import render
from resolver.errors import ContextWindowExceeded
from resolver.events.actions import CondensationRequest, FileEdit, FileWrite
from resolver.events.base import ActionBase
from resolver.events.lifecycle import SystemPrompt
from resolver.events.state import State
from resolver.llm.base import Model
from resolver.memory.conversation import ConversationMemory, Dialect
from resolver.models.base import JsonObject


class CodeActAgent:
    """Queries the model with the conversation so far, and returns its actions one at a time.

    It has the tools of its definition that the run offers, and no others.

    model: expected to have recorded each reply in the state by the time `complete` returns
    (`resolver.llm.base.RecordedModel`). If a reply is not recorded, only its first action is used,
    with `reply=None`.
    available: what the run offers.
    """

    def __init__(
        self,
        model: Model,
        dialect: Dialect,
        available: AvailableTools = NO_OPTIONAL_TOOLS,
        definition: AgentDefinition = CODE_ACT,
    ) -> None:
        self.name = definition.name
        self._model = model
        self._dialect = dialect
        self._available = available
        self._definition = definition
        self._accepts_images = definition.sees_images and model.supports_vision
        self._memory = ConversationMemory(dialect, sees_images=self._accepts_images)
        met: tuple[str | None, ...] = (None, *available.requirements)
        self._tools = tuple(
            name for name in definition.tools if name in TOOLS and TOOLS[name].requires in met
        )
        # A definition can't know which servers an installation has: it gets all of them or none.
        self._mcp = tuple(
            tool
            for tool in available.mcp
            if (BROWSER if tool.server == BROWSER else MCP) in definition.tools
        )

    def system_prompt(self) -> SystemPrompt:
        """Return the rules, the text of the definition and, in the tag dialect, the tools.

        The section about MCP tools is the last one.
        """
        specs = self._own_tool_specs()
        text = render(
            self._definition.template,
            definition=self._definition,
            dialect=self._dialect,
            tools=self._tools,
            colleagues=self._available.colleagues,
            is_read_only=self._definition.read_only,
            shown_tools=show_tools(specs),  # for a model without native tool calls
            accepts_images=self._accepts_images,
        )
        text = f"{text.strip()}\n\n{mcp_section(self._mcp, self._dialect)}".strip()
        names = (*self._tools, *native_names(self._mcp))
        return SystemPrompt(content=text, tools=names, dialect=self._dialect, mcp_tools=self._mcp)

    def step(self, state: State) -> ActionBase:
        """Return the next action of the last reply, or the first one of a new reply.

        An edit by a read-only agent becomes an `Invalid` with the reason. If the conversation
        exceeds the context window, the action is a CondensationRequest.

        Raises ModelError, and ContextWindowExceeded if the previous CondensationRequest was not
        answered.
        """
        action = self._requested_action(state)
        action = correct_thread_answers(action, self._available.thread_labels)
        action = check_places(action, self._available.count_lines)
        if not self._definition.read_only:
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

    def _own_tool_specs(self) -> tuple[JsonObject, ...]:
        return tool_specs(
            self._tools,
            self._available.colleagues,
            self._definition.read_only,
            bool(self._available.thread_labels),
        )

    def _tool_specs(self) -> tuple[JsonObject, ...]:
        return (*self._own_tool_specs(), *native_specs(self._mcp))


def _is_unanswered(state: State) -> bool:
    """Return True if the newest event is a CondensationRequest, without a Condensation."""
    return bool(state.events) and isinstance(state.events[-1], CondensationRequest)
