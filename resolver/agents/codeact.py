"""The default agent: a model that acts by writing code, one step at a time."""

from resolver.agents.replies import read_reply
from resolver.agents.system_prompt import system_text
from resolver.agents.tags import TAG_NAMES
from resolver.agents.tools import TOOL_NAMES, tool_specs
from resolver.errors import ContextWindowExceeded
from resolver.events.actions import CondensationRequest
from resolver.events.base import ActionBase
from resolver.events.lifecycle import ModelReplied, SystemPrompt
from resolver.events.state import State
from resolver.llm.base import Model
from resolver.memory.conversation import ConversationMemory, Dialect


class CodeActAgent:
    """Asks the model with the conversation so far, and takes its reply action by action.

    model: every reply of it is expected in the state by the time `complete` returns
        (`resolver.llm.base.RecordedModel`). When it is not there, only the reply's first action
        is taken, and it carries `reply=None`.
    memory: makes the messages; its dialect is `dialect`.
    """

    name = "CodeActAgent"

    def __init__(self, model: Model, memory: ConversationMemory, dialect: Dialect) -> None:
        self._model = model
        self._memory = memory
        self._dialect = dialect

    def system_prompt(self) -> SystemPrompt:
        """The house rules and, in the tag dialect, the tools as text."""
        tools = TOOL_NAMES if self._dialect == "tools" else TAG_NAMES
        return SystemPrompt(content=system_text(self._dialect), tools=tools, dialect=self._dialect)

    def step(self, state: State) -> ActionBase:
        """The next action of the last reply; when there is none left, of a new one.

        A conversation that is too long gives a CondensationRequest. Raises ModelError, and
        ContextWindowExceeded when the last such request was not answered.
        """
        rest = self._next_of(state, 0)
        if rest is not None:
            return rest
        before = len(state.events)
        specs = list(tool_specs()) if self._dialect == "tools" else None
        try:
            completion = self._model.complete(self._memory.messages(state), specs)
        except ContextWindowExceeded:
            if _is_unanswered(state):
                raise
            return CondensationRequest()
        action = self._next_of(state, before)
        return action if action is not None else read_reply(completion, self._dialect)[0]

    def _next_of(self, state: State, start: int) -> ActionBase | None:
        """The next action of the last reply among the events from `start` on."""
        taken = 0
        for index in range(len(state.events) - 1, start - 1, -1):
            event = state.events[index]
            if isinstance(event, ModelReplied):
                actions = read_reply(event.completion, self._dialect)
                if taken >= len(actions):
                    return None
                return actions[taken].model_copy(update={"reply": event.id})
            taken += isinstance(event, ActionBase) and event.reply is not None
        return None


def _is_unanswered(state: State) -> bool:
    """True when the newest event that matters is a CondensationRequest without Condensation."""
    return bool(state.events) and isinstance(state.events[-1], CondensationRequest)
