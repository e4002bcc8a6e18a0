"""What a run's log shows of a change, step by step, and the words for it. Made in
`resolver.thread.course`, told by a comment of a run at work and by its result.
"""

from pydantic import Field

from resolver.forge.escape import code_span, shortened
from resolver.model import Noun


class Check(Noun):
    """A check that the agent ran, and how it was seen to end.

    exit_code: its own; None where another program's stood for it (`pytest | tail`), and its output
    says how it ended.
    """

    command: str
    passed: bool
    exit_code: int | None = None

    @property
    def ended(self) -> str:
        """How it ended, as it stands behind the command: "exits 1"."""
        if self.passed:
            return "passes"
        return "fails" if self.exit_code is None else f"exits {self.exit_code}"


class Course(Noun):
    """What a run's log shows of a change, in order. Nothing of it is a claim."""

    reproduced: Check | None = Field(
        default=None, description="The last check that failed before anything was edited."
    )
    edited: bool = Field(default=False, description="True once a file was changed.")
    files: int | None = Field(
        default=None, description="How many files; None where commands edit, which don't say it."
    )
    newest: Check | None = Field(
        default=None,
        description="Of the checks since the last edit one that fails, else the newest.",
    )


def check_words(check: Check | None, in_table: bool = False) -> dict[str, object] | None:
    """Command, end, and whether it passed, for a template."""
    if check is None:
        return None
    command = code_span(shortened(" ".join(check.command.split()), 150), in_table=in_table)
    return {"command": command, "passed": check.passed, "ended": check.ended}
