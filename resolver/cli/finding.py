"""The result of one check of `resolver doctor`."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

from resolver.errors import ResolverError


@dataclass(frozen=True)
class DoctorFinding:
    """The result of a check. `required` means that no run can start if the check fails."""

    good: bool
    what: str
    next_step: str = ""
    required: bool = True

    @property
    def mark(self) -> str:
        """The result in one word: "ok", "missing", or "note" if it is not required."""
        return "ok" if self.good else ("missing" if self.required else "note")

    @property
    def advice(self) -> str:
        """The next step after a failed check, "" if it passed."""
        return "" if self.good else self.next_step

    def as_json(self) -> dict[str, str | bool]:
        """Return the finding as JSON."""
        return {**asdict(self), "next_step": self.advice}


def check_finding(
    what: str, question: Callable[[], str | None], required: bool = True
) -> DoctorFinding:
    """Run a check and return its result.

    `question` returns a text if the check passes and None if it fails. If it raises a
    ResolverError, the finding says why the check could not be done.
    """
    try:
        answer = question()
    except ResolverError as error:
        return DoctorFinding(False, f"{what}: {error.what}", error.next_step, required)
    return DoctorFinding(answer is not None, f"{what}: {answer or 'no'}", required=required)
