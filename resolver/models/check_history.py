"""Check history: the checks that a run's log shows, with their verdicts, and its edits.

`resolver.verification.check_tracker` builds it. Result tables, the decision to open a draft, and
checklists are made from it.
"""

from typing import Literal

from pydantic import Field

from resolver.models.base import FrozenModel

Verdict = Literal["passed", "failed", "not_run", "unfinished", "unknown"]
"""How a check was observed to end.

- not_run: the program, or its tests, did not exist.
- unfinished: it is still running.
- unknown: its exit code was hidden, or may be another program's.
"""

_ENDED = {
    "passed": "passes",
    "failed": "fails",
    "not_run": "did not run",
    "unfinished": "did not finish",
    "unknown": "has an unknown result",
}
"""The words that follow the command in a table, such as "pytest passes"."""


class ObservedCheck(FrozenModel):
    """A check that the agent ran, and how it was observed to end.

    Attributes:
        command: The command line.
        verdict: How it ended.
        exit_code: Its own exit code; None when another program's was seen instead (`pytest |
            tail`).
        event_id: Id of the event that shows its end.
        stale: True when code was edited after it ran.
    """

    command: str
    verdict: Verdict
    exit_code: int | None = None
    event_id: int = -1
    output: str = Field(default="", repr=False, description="The end of its output.")
    stale: bool = False

    @property
    def passed(self) -> bool:
        """True when it was observed to pass."""
        return self.verdict == "passed"

    @property
    def ended(self) -> str:
        """How it ended, as shown after the command: "exits 1"."""
        if self.verdict == "failed" and self.exit_code is not None:
            return f"exits {self.exit_code}"
        return _ENDED[self.verdict]


class CheckHistory(FrozenModel):
    """What a run's log shows about a change, in order. Claims of the agent are not used."""

    reproduced: ObservedCheck | None = Field(
        default=None, description="The last test that failed before anything was edited."
    )
    edited: bool = Field(default=False, description="True once a file was changed.")
    files: int | None = Field(
        default=None,
        description="Number of changed files; None when commands made edits, which don't say how "
        "many.",
    )
    checks: tuple[ObservedCheck, ...] = Field(
        default=(), description="The newest run of each check, in order."
    )
    unclear: bool = Field(
        default=False,
        description="True when a command may have contained a check whose result was not "
        "observed by itself: it also edited files, or it ran code that can't be "
        "classified.",
    )
    unclear_before_edit: bool = Field(
        default=False, description="True when such a command ran before the first edit, or made it."
    )
    unclear_after_edit: bool = Field(
        default=False, description="True when such a command ran since code was last edited."
    )

    @property
    def fresh(self) -> tuple[ObservedCheck, ...]:
        """The checks after which no code was edited."""
        return tuple(check for check in self.checks if not check.stale)

    @property
    def newest(self) -> ObservedCheck | None:
        """The check that decides about the change; None when no check is fresh or none counts.

        Of the fresh checks it is the newest that failed; else the newest that has not finished;
        else the newest that passed; else the newest whose result is unknown.
        """
        for verdict in ("failed", "unfinished", "passed", "unknown"):
            for check in reversed(self.fresh):
                if check.verdict == verdict:
                    return check
        return None
