"""The agent that answers questions about the code: it reads and runs, and no change is kept."""

from resolver.agents.codeact import CodeActAgent
from resolver.agents.tags import write_tags
from resolver.events import actions as a
from resolver.events.lifecycle import SystemPrompt
from resolver.llm.base import Model
from resolver.memory.conversation import ConversationMemory, Dialect
from resolver.templates import render

READ_ONLY = "ReadOnlyAgent"

TOOLS = ("execute_bash", "execute_ipython_cell", "think", "plan", "finish")

_EXAMPLES = {
    "bash": a.CmdRun(command="grep -rn 'def parse' src && sed -n 40,80p src/parser.py"),
    "cell": a.IPythonRunCell(code="from parser import parse\nparse('1..2')"),
    "think": a.Think(content="Both callers pass None here, so the guard is in parse()."),
    "finish": a.Finish(message="Empty parts are kept on purpose: see `src/parser.py:41-44`."),
}


class ReadOnlyAgent(CodeActAgent):
    """Its closing message is the answer. Whoever runs it throws the working tree's change away.

    An action that edits a file is refused with words, and not done.
    """

    name = READ_ONLY
    answers = True

    def __init__(self, model: Model, dialect: Dialect) -> None:
        memory = ConversationMemory(dialect, sees_images=model.supports_vision)
        super().__init__(model, memory, dialect)
        self._tools = TOOLS

    def system_prompt(self) -> SystemPrompt:
        """Its own house rules and, in the tag dialect, its tools as text."""
        examples = {name: write_tags(action) for name, action in _EXAMPLES.items()}
        text = render("agent/readonly.md.j2", dialect=self._dialect, examples=examples)
        return SystemPrompt(content=text.strip(), tools=self._names(), dialect=self._dialect)
