"""Base class of the agents whose result is their final message."""

from collections.abc import Mapping
from typing import Any, ClassVar

from resolver.agents.available_tools import AvailableTools
from resolver.agents.codeact import CodeActAgent
from resolver.agents.tags import write_tags
from resolver.config.templates import render
from resolver.events.base import ActionBase
from resolver.events.lifecycle import SystemPrompt
from resolver.llm.base import Model
from resolver.memory.conversation import ConversationMemory, Dialect


class AnsweringAgent(CodeActAgent):
    """An agent whose result is its final message. Changes to the working tree are discarded.

    Calls of tools that it does not have, and edits, are refused with a reason.

    template: template of the system prompt.
    tools: all tools of the agent.
    examples: actions that the template shows as tags, by name.
    """

    answers = True
    template: ClassVar[str]
    tools: ClassVar[tuple[str, ...]]
    examples: ClassVar[Mapping[str, ActionBase]]

    def __init__(self, model: Model, dialect: Dialect, threads: tuple[str, ...] = ()) -> None:
        self._sees = self.looks(model)
        memory = ConversationMemory(dialect, sees_images=self._sees)
        super().__init__(model, memory, dialect, AvailableTools(threads=threads))
        self._tools = self.tools

    def looks(self, model: Model) -> bool:
        """Return True if images are shown to the agent."""
        return model.supports_vision

    def system_prompt(self) -> SystemPrompt:
        """Return the agent's own system prompt, with its tools as text in the tag dialect."""
        examples = {name: write_tags(action) for name, action in self.examples.items()}
        words = self._further_words()
        return self._prompt(
            render(self.template, dialect=self._dialect, examples=examples, **words)
        )

    def _further_words(self) -> dict[str, Any]:
        """Return additional values for the template."""
        return {}
