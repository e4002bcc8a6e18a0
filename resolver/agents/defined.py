"""An agent that a repository defines."""

from resolver.agents.available_tools import AvailableTools
from resolver.agents.codeact import CodeActAgent
from resolver.agents.definitions import MCP, AgentDefinition
from resolver.agents.system_prompt import render_tag_dialect
from resolver.agents.tools import available_tools
from resolver.config.templates import render
from resolver.events.lifecycle import SystemPrompt
from resolver.llm.base import Model
from resolver.memory.conversation import ConversationMemory, Dialect


class DefinedAgent(CodeActAgent):
    """Has the tools of its definition that are available in this run, and no others.

    Its prompt consists of the general rules and the text of the definition. Calls of other tools
    are refused with a reason.
    """

    def __init__(
        self, definition: AgentDefinition, model: Model, dialect: Dialect, offer: AvailableTools
    ) -> None:
        memory = ConversationMemory(dialect, sees_images=model.supports_vision)
        super().__init__(model, memory, dialect, offer)
        self.name = definition.name
        self.answers = definition.read_only
        self._definition = definition
        # A definition can't know which servers an installation has: it gets all of them or none.
        self._mcp = offer.mcp if MCP in definition.tools else ()
        there = available_tools(offer.delegates, offer.browser, offer.recall, offer.remember)
        self._tools = tuple(name for name in definition.tools if name in there)

    def system_prompt(self) -> SystemPrompt:
        """Return the general rules, the definition's text and, in the tag dialect, the tools."""
        text = render(
            "agent/defined.md.j2",
            dialect=self._dialect,
            definition=self._definition,
            **render_tag_dialect(self._tools, self._colleagues, answers=self.answers),
        )
        return self._prompt(text)
