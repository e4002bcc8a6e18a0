"""An agent that a repository brings: the house rules, then its file's own words."""

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
    """Has the tools of its definition, as far as this run has them, and no others.

    What it asks for beside them is refused with words, and not done.
    """

    def __init__(
        self, definition: AgentDefinition, model: Model, dialect: Dialect, offer: AvailableTools
    ) -> None:
        memory = ConversationMemory(dialect, sees_images=model.supports_vision)
        super().__init__(model, memory, dialect, offer)
        self.name = definition.name
        self.answers = definition.read_only
        self._definition = definition
        # its file can't name the servers that each host has: it takes all of them, or none
        self._mcp = offer.mcp if MCP in definition.tools else ()
        there = available_tools(offer.delegates, offer.browser, offer.recall, offer.remember)
        self._tools = tuple(name for name in definition.tools if name in there)

    def system_prompt(self) -> SystemPrompt:
        """The house rules, the definition's words and, in the tag dialect, its tools as text."""
        text = render(
            "agent/defined.md.j2",
            dialect=self._dialect,
            definition=self._definition,
            **render_tag_dialect(self._tools, self._colleagues, answers=self.answers),
        )
        return self._prompt(text)
