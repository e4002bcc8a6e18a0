"""The agent that reviews a change: it reads, executes and comments on lines."""

from resolver.agents.answering import AnsweringAgent
from resolver.events import actions as a

REVIEWER = "ReviewerAgent"

TOOLS = (
    "execute_bash",
    "execute_ipython_cell",
    "think",
    "plan",
    "review_comment",
    "submit_review",
)

_EXAMPLES = {
    "bash": a.CmdRun(command="grep -rn 'parse(' src && python -m pytest tests/test_parser.py -q"),
    "cell": a.IPythonRunCell(code="from parser import parse\nparse('1..2')"),
    "think": a.Think(content="Both callers pass None here, so the guard is in parse()."),
    "comment": a.ReviewComment(
        path="src/parser.py",
        line=42,
        severity="high",
        body="`parse('')` now raises IndexError: `parts` is empty then. The command line calls it "
        "with what the person typed (src/cli.py:17).",
        suggestion="    return parts[-1] if parts else None",
    ),
    "several": a.ReviewComment(
        path="src/parser.py",
        start_line=50,
        line=58,
        severity="low",
        body="This is `split_parts()` of src/text.py once more.",
    ),
    "submit": a.Finish(
        message="The parser now leaves empty parts out, as the issue asks. One input that worked "
        "before raises now (see src/parser.py:42).",
        verdict="request_changes",
        verification="`python -m pytest tests -q`: 41 passed. `parse('')`: IndexError.",
    ),
}


class ReviewerAgent(AnsweringAgent):
    """Writes comments and a final message that become one review.

    Changes to the working tree are discarded, and actions that edit a file are refused with a
    reason.
    """

    name = REVIEWER
    template = "agent/reviewer.md.j2"
    tools = TOOLS
    examples = _EXAMPLES
