"""One line of what `resolver doctor` has found, and how it asks for one."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

from resolver.errors import ResolverError


@dataclass(frozen=True)
class DoctorFinding:
    """Something that was looked at. required: without it no run can start."""

    good: bool
    what: str
    next_step: str = ""
    required: bool = True

    @property
    def mark(self) -> str:
        """In one word, how it is."""
        return "ok" if self.good else ("missing" if self.required else "note")

    @property
    def advice(self) -> str:
        """What to do about it: nothing where it is good."""
        return "" if self.good else self.next_step

    def as_json(self) -> dict[str, str | bool]:
        """The finding for programs."""
        return {**asdict(self), "next_step": self.advice}


def check_finding(
    what: str, question: Callable[[], str | None], required: bool = True
) -> DoctorFinding:
    """What came of a question: its answer, None for no, or why it can't be answered."""
    try:
        answer = question()
    except ResolverError as error:
        return DoctorFinding(False, f"{what}: {error.what}", error.next_step, required)
    return DoctorFinding(answer is not None, f"{what}: {answer or 'no'}", required=required)
