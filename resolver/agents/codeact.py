"""The default agent: a model that acts by writing code, one step at a time."""

from resolver.agents.offer import NOTHING, Offer
from resolver.agents.replies import next_action, read_reply
from resolver.agents.system_prompt import system_text
from resolver.agents.tags import offered_tags
from resolver.agents.tools import offered_tools, tool_specs
from resolver.errors import ContextWindowExceeded
from resolver.events.actions import CondensationRequest
from resolver.events.base import ActionBase
from resolver.events.lifecycle import SystemPrompt
from resolver.events.state import State
from resolver.llm.base import Model
from resolver.memory.conversation import ConversationMemory, Dialect


class CodeActAgent:
    """Asks the model with the conversation so far, and takes its reply action by action.

    model: every reply of it is expected in the state by the time `complete` returns
        (`resolver.llm.base.RecordedModel`). When it is not there, only the reply's first action
        is taken, and it carries `reply=None`.
    memory: makes the messages; its dialect is `dialect`.
    offer: what it may use beside the sandbox.
    """

    name = "CodeActAgent"

    def __init__(
        self,
        model: Model,
        memory: ConversationMemory,
        dialect: Dialect,
        offer: Offer = NOTHING,
    ) -> None:
        self._model = model
        self._memory = memory
        self._dialect = dialect
        self._tools = offered_tools(offer.delegates, offer.browser)

    def system_prompt(self) -> SystemPrompt:
        """The house rules and, in the tag dialect, the tools as text."""
        text = system_text(self._dialect, "delegate" in self._tools, "browser" in self._tools)
        tools = self._tools if self._dialect == "tools" else offered_tags(self._tools)
        return SystemPrompt(content=text, tools=tools, dialect=self._dialect)

    def step(self, state: State) -> ActionBase:
        """The next action of the last reply; when there is none left, of a new one.

        A conversation that is too long gives a CondensationRequest. Raises ModelError, and
        ContextWindowExceeded when the last such request was not answered.
        """
        rest = next_action(state, self._dialect)
        if rest is not None:
            return rest
        before = len(state.events)
        specs = list(tool_specs(self._tools)) if self._dialect == "tools" else None
        try:
            completion = self._model.complete(self._memory.messages(state), specs)
        except ContextWindowExceeded:
            if _is_unanswered(state):
                raise
            return CondensationRequest()
        action = next_action(state, self._dialect, before)
        return action if action is not None else read_reply(completion, self._dialect)[0]


def _is_unanswered(state: State) -> bool:
    """True when the newest event that matters is a CondensationRequest without Condensation."""
    return bool(state.events) and isinstance(state.events[-1], CondensationRequest)
