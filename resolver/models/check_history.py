"""Check history: the checks that a run's log shows, with their verdicts, and its edits.

`resolver.verification.check_tracker` makes it. Tables, drafts and checklists all read it.
"""

from typing import Literal

from pydantic import Field

from resolver.models.base import FrozenModel

Verdict = Literal["passed", "failed", "not_run", "unfinished", "unknown"]
"""What was seen of a check's end. not_run: the program or its tests were not there. unfinished: it
is still running. unknown: its exit code was hidden, or may be another program's."""

_ENDED = {
    "passed": "passes",
    "failed": "fails",
    "not_run": "did not run",
    "unfinished": "has not ended",
    "unknown": "ended unseen",
}


class ObservedCheck(FrozenModel):
    """A check that the agent ran, and how it was seen to end.

    exit_code: its own; None where another program's stood for it (`pytest | tail`). stale: code was
    edited after it. event_id: of its end.
    """

    command: str
    verdict: Verdict
    exit_code: int | None = None
    event_id: int = -1
    output: str = Field(default="", repr=False, description="The end of what it wrote.")
    stale: bool = False

    @property
    def passed(self) -> bool:
        """Whether it was seen to pass."""
        return self.verdict == "passed"

    @property
    def ended(self) -> str:
        """How it ended, as it stands behind the command: "exits 1"."""
        if self.verdict == "failed" and self.exit_code is not None:
            return f"exits {self.exit_code}"
        return _ENDED[self.verdict]


class CheckHistory(FrozenModel):
    """What a run's log shows of a change, in order. Nothing of it is a claim."""

    reproduced: ObservedCheck | None = Field(
        default=None, description="The last test that failed before anything was edited."
    )
    edited: bool = Field(default=False, description="True once a file was changed.")
    files: int | None = Field(
        default=None, description="How many files; None where commands edit, which don't say it."
    )
    checks: tuple[ObservedCheck, ...] = Field(
        default=(), description="The newest run of each check, in order."
    )
    unclear: bool = Field(
        default=False,
        description="True when a command may have held a check whose result was not seen by "
        "itself: it edited as well, or ran code of which that can't be told.",
    )
    unclear_before_edit: bool = Field(
        default=False, description="True when such a command ran before the first edit, or made it."
    )
    unclear_after_edit: bool = Field(
        default=False, description="True when such a command ran since code was last edited."
    )

    @property
    def fresh(self) -> tuple[ObservedCheck, ...]:
        """The checks that no code was edited after."""
        return tuple(check for check in self.checks if not check.stale)

    @property
    def newest(self) -> ObservedCheck | None:
        """The check that decides: of the fresh ones the newest that fails, else that has not ended,
        else that passed, else the newest."""
        for verdict in ("failed", "unfinished", "passed", "unknown"):
            for check in reversed(self.fresh):
                if check.verdict == verdict:
                    return check
        return None
