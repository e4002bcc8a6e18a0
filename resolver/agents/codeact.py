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
    """Asks the model with the conversation so far, and takes its reply action by action.

    model: every reply of it is expected in the state by the time `complete` returns
        (`resolver.llm.base.RecordedModel`). When it is not there, only the reply's first action
        is taken, and it carries `reply=None`.
    memory: makes the messages; its dialect is `dialect`.
    offer: what it may use beside the sandbox.
    """

    name = "CodeActAgent"
    answers = False
    """Whether its words are its result, and no change is."""

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
        """The house rules and, in the tag dialect, the tools as text."""
        text = system_text(self._dialect, self._tools, self._colleagues)
        return self._prompt(text)

    def step(self, state: State) -> ActionBase:
        """The next action of the last reply; when there is none left, of a new one. What is none
        of its tools, or an edit where nothing is kept, becomes the words that refuse it.

        A conversation that is too long gives a CondensationRequest. Raises ModelError, and
        ContextWindowExceeded when the last such request was not answered.
        """
        wanted = correct_thread_answers(self._wanted(state), self._threads)
        return refuse_if_unavailable(wanted, self._tools, self._names(), edits=not self.answers)

    def _wanted(self, state: State) -> ActionBase:
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
        action = next_action(state, self._dialect, before)
        if action is not None:
            return action
        return read_reply(completion, self._dialect, *tools_offered_in(state))[0]

    def _prompt(self, text: str) -> SystemPrompt:
        """Its system prompt, with what it is told of the tools of MCP servers behind `text`."""
        text = f"{text.strip()}\n\n{tools_text(self._mcp, self._dialect)}".strip()
        return SystemPrompt(
            content=text, tools=self._names(), dialect=self._dialect, mcp_tools=self._mcp
        )

    def _specs(self) -> tuple[JsonObject, ...]:
        own = tool_specs(self._tools, self._colleagues, self.answers, bool(self._threads))
        return (*own, *native_specs(self._mcp))

    def _names(self) -> tuple[str, ...]:
        """Its tools, as it writes them."""
        if self._dialect == "tools":
            return (*self._tools, *native_names(self._mcp))
        return (*available_tags(self._tools), *((TAG,) if self._mcp else ()))


def _is_unanswered(state: State) -> bool:
    """True when the newest event that matters is a CondensationRequest without Condensation."""
    return bool(state.events) and isinstance(state.events[-1], CondensationRequest)
