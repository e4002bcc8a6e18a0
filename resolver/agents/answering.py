"""What agents have in common whose words are their result: house rules and tools of their own."""

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
    """Whoever runs it throws the working tree's change away. What it asks for beside its tools is
    refused with words, and not done; so is an edit.

    template: of its system prompt. tools: all that it has. examples: actions that the template
    shows as tags, by name.
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
        """Whether it is shown images."""
        return model.supports_vision

    def system_prompt(self) -> SystemPrompt:
        """Its own house rules and, in the tag dialect, its tools as text."""
        examples = {name: write_tags(action) for name, action in self.examples.items()}
        words = self._further_words()
        return self._prompt(
            render(self.template, dialect=self._dialect, examples=examples, **words)
        )

    def _further_words(self) -> dict[str, Any]:
        """What else its template needs."""
        return {}
