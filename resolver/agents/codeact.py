"""The default agent: a model that acts by writing code, one step at a time."""

from resolver.agents.available_tools import NOTHING, AvailableTools
from resolver.agents.mcp_tools import TAG, native_names, native_specs, tools_text
from resolver.agents.replies import next_action, read_reply, tools_offered_in
from resolver.agents.system_prompt import system_text
from resolver.agents.tags import available_tags
from resolver.agents.thread_arguments import correct_thread_answers
from resolver.agents.tool_access import refuse_if_unavailable
from resolver.agents.tools import available_tools, tool_specs
from resolver.errors import ContextWindowExceeded
from resolver.events.actions import CondensationRequest
from resolver.events.base import ActionBase
from resolver.events.lifecycle import SystemPrompt
from resolver.events.state import State
from resolver.llm.base import Model
from resolver.memory.conversation import ConversationMemory, Dialect
from resolver.models.run import JsonObject


class CodeActAgent:
    """Queries the model with the conversation so far, and returns its actions one at a time.

    model: expected to have recorded each reply in the state by the time `complete` returns
    (`resolver.llm.base.RecordedModel`). If a reply is not recorded, only its first action is used,
    with `reply=None`.
    memory: creates the messages; its dialect must be `dialect`.
    offer: tools in addition to those of the sandbox.
    """

    name = "CodeActAgent"
    answers = False
    """True if the result of the agent is its final message and no change is published."""

    def __init__(
        self,
        model: Model,
        memory: ConversationMemory,
        dialect: Dialect,
        offer: AvailableTools = NOTHING,
    ) -> None:
        self._model = model
        self._memory = memory
        self._dialect = dialect
        self._tools = available_tools(offer.delegates, offer.browser, offer.recall, offer.remember)
        self._colleagues = offer.colleagues
        self._mcp = offer.mcp
        self._threads = offer.threads

    def system_prompt(self) -> SystemPrompt:
        """Return the general rules and, in the tag dialect, the tools as text."""
        text = system_text(self._dialect, self._tools, self._colleagues)
        return self._prompt(text)

    def step(self, state: State) -> ActionBase:
        """Return the next action of the last reply, or the first one of a new reply.

        A call of a tool that the agent does not have, or an edit by a read-only agent, becomes an
        `Invalid` with the reason. If the conversation exceeds the context window, the action is a
        CondensationRequest.

        Raises ModelError, and ContextWindowExceeded if the previous CondensationRequest was not
        answered.
        """
        wanted = correct_thread_answers(self._wanted(state), self._threads)
        return refuse_if_unavailable(wanted, self._tools, self._names(), edits=not self.answers)

    def _wanted(self, state: State) -> ActionBase:
        """Return the next action that the model asks for, whether it is available or not."""
        rest = next_action(state, self._dialect)
        if rest is not None:
            return rest
        before = len(state.events)
        specs = list(self._specs()) if self._dialect == "tools" else None
        try:
            completion = self._model.complete(self._memory.messages(state), specs)
        except ContextWindowExceeded:
            if _is_unanswered(state):
                raise
            return CondensationRequest()
        # The reply is in the log by now, so the action gets its id. A resumed run finds the same
        # reply there and continues with the actions that were not taken yet.
        action = next_action(state, self._dialect, before)
        if action is not None:
            return action
        return read_reply(completion, self._dialect, *tools_offered_in(state))[0]

    def _prompt(self, text: str) -> SystemPrompt:
        """Return the system prompt event, with the section about MCP tools appended to `text`."""
        text = f"{text.strip()}\n\n{tools_text(self._mcp, self._dialect)}".strip()
        return SystemPrompt(
            content=text, tools=self._names(), dialect=self._dialect, mcp_tools=self._mcp
        )

    def _specs(self) -> tuple[JsonObject, ...]:
        own = tool_specs(self._tools, self._colleagues, self.answers, bool(self._threads))
        return (*own, *native_specs(self._mcp))

    def _names(self) -> tuple[str, ...]:
        """Return the names of the agent's tools, as it writes them."""
        if self._dialect == "tools":
            return (*self._tools, *native_names(self._mcp))
        return (*available_tags(self._tools), *((TAG,) if self._mcp else ()))


def _is_unanswered(state: State) -> bool:
    """Return True if the newest event is a CondensationRequest, without a Condensation."""
    return bool(state.events) and isinstance(state.events[-1], CondensationRequest)
