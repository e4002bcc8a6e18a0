"""The agent that answers questions about the code. Its changes are discarded."""

from resolver.agents.answering import AnsweringAgent
from resolver.events import actions as a

READ_ONLY = "ReadOnlyAgent"

TOOLS = ("execute_bash", "execute_ipython_cell", "think", "plan", "finish")

_EXAMPLES = {
    "bash": a.CmdRun(command="grep -rn 'def parse' src && sed -n 40,80p src/parser.py"),
    "cell": a.IPythonRunCell(code="from parser import parse\nparse('1..2')"),
    "think": a.Think(content="Both callers pass None here, so the guard is in parse()."),
    "finish": a.Finish(message="Empty parts are kept on purpose: see `src/parser.py:41-44`."),
}


class ReadOnlyAgent(AnsweringAgent):
    """Answers a question with its final message. Changes to the working tree are discarded.

    Actions that edit a file are refused with a reason.
    """

    name = READ_ONLY
    template = "agent/readonly.md.j2"
    tools = TOOLS
    examples = _EXAMPLES
