"""The system prompt: general rules, and the tools as text for models without native tool calls."""

from collections.abc import Collection, Sequence
from typing import Any

from resolver.agents.argument_types import MAX_TIMEOUT
from resolver.agents.tags import write_tags
from resolver.agents.tools import DelegateAgent
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.memory.conversation import Dialect
from resolver.models.run import PlanItem

_EXAMPLES = {
    "bash": a.CmdRun(command="python -m pytest tests/test_parser.py -x -q 2>&1 | tail -n 40"),
    "slow": a.CmdRun(command="make test", timeout=900.0),
    "input": a.CmdRun(command="C-c", is_input=True),
    "cell": a.IPythonRunCell(code="from parser import parse\nparse('1..2')"),
    "view": a.FileRead(path="src/parser.py", view_range=(40, 80)),
    "create": a.FileWrite(path="tests/test_dots.py", content="from parser import parse\n"),
    "replace": a.FileEdit(
        command="str_replace",
        path="src/parser.py",
        old_str="    return text.split('.')",
        new_str="    return [part for part in text.split('.') if part]",
    ),
    "insert": a.FileEdit(
        command="insert", path="src/parser.py", insert_line=0, new_str="import re"
    ),
    "undo": a.FileEdit(command="undo_edit", path="src/parser.py"),
    "quoted": a.CmdRun(command="grep -rn '</execute_bash>' docs"),
    "think": a.Think(content="Both callers pass None here, so the guard belongs in parse()."),
    "plan": a.PlanUpdate(
        items=(
            PlanItem(title="reproduce the crash with a test", status="done"),
            PlanItem(title="fix parse()", status="doing"),
            PlanItem(title="run the whole suite"),
        )
    ),
    "delegate": a.Delegate(
        agent="CodeActAgent",
        task="Find every caller of parse() in src/ and report file, line and what it passes.",
    ),
    "recall": a.Recall(query="flaky tests"),
    "remember": a.Remember(note="`make test` needs `make build` first; one suite takes 4 minutes."),
    "browse": a.BrowseInteractive(code="goto('http://127.0.0.1:8000/login')"),
    "steps": a.BrowseInteractive(code="fill('12', 'alice')\nclick('15')"),
    "finish": a.Finish(
        message="Keep empty parts out of parse()",
        root_cause="`parse('1..2')` kept the empty part between two dots.",
        change="`parse()` in src/parser.py leaves empty parts out; a test was added.",
        verification="`python -m pytest tests -q`: 1 failed before, 41 passed after.",
        remaining="I did not try it on Windows.",
    ),
    "report": a.Finish(message="Empty parts are kept on purpose: see `src/parser.py:41-44`."),
}
"""Examples in the prompt.

The code that the parser is tested against renders them, so they are always valid.
"""


def system_text(
    dialect: Dialect, tools: Collection[str], colleagues: Sequence[DelegateAgent] = ()
) -> str:
    """Return the system prompt of CodeActAgent with these tools.

    colleagues: agents that it may delegate to.
    """
    return render(
        "agent/system.md.j2", dialect=dialect, **render_tag_dialect(tools, colleagues)
    ).strip()


def render_tag_dialect(
    tools: Collection[str], colleagues: Sequence[DelegateAgent] = (), *, answers: bool = False
) -> dict[str, Any]:
    """Return the template values for the description of the tag dialect.

    answers: the result of the agent is its final message; it publishes no change.
    """
    return {
        "tools": tools,
        "colleagues": colleagues,
        "answers": answers,
        "examples": {name: write_tags(action) for name, action in _EXAMPLES.items()},
        "most_seconds": int(MAX_TIMEOUT),
    }
