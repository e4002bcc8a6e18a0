"""The results of an evaluation: one file for each task and model, and a file about the whole."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field, ValidationError

from resolver.errors import UsageError
from resolver.evaluation.scoring import ScoreCause
from resolver.evaluation.suite_maker import write_atomically
from resolver.models.base import FrozenModel
from resolver.models.run import Tokens
from resolver.models.verification import TamperingFinding, VerificationVerdict

EVALUATION_FILE = "evaluation.json"
RESULT_FILE = "result.json"
OUTPUT_FOLDER = "output"
"""The output folder of the run of a task: its log, trace and patch."""
REFERENCE_FILE = "reference.diff"
"""The real fix, for a comparison with the run's patch.diff."""


class AttemptResult(FrozenModel):
    """The result of one model on one task."""

    task: str
    model: str
    resolved: bool
    cause: ScoreCause = Field(description='Why it is not resolved; "" if it is.')
    detail: str = Field(default="", description="A message, or the end of the tests' output.")
    tests: tuple[str, ...] = Field(default=(), description="Hidden tests that the cause is about.")
    tampering: tuple[TamperingFinding, ...] = ()
    verdict: VerificationVerdict = Field(description="Resolver's own verdict about its change.")
    verdict_reason: str = ""
    iterations: int = 0
    cost: float | None = Field(default=0.0, description="US dollars; null if a price is unknown.")
    tokens: Tokens = Tokens()
    seconds: float = Field(default=0.0, description="Duration of the agent's work.")
    has_change: bool = False

    @property
    def is_false_claim(self) -> bool:
        """True if Resolver called the change verified and the hidden tests say otherwise."""
        return self.verdict == "verified" and not self.resolved


class EvaluationFile(FrozenModel):
    """The subject of an evaluation. budget: US dollars for all attempts; null for no limit."""

    format: int = 1
    suite: str
    tasks: tuple[str, ...]
    models: tuple[str, ...]
    budget: float | None = None
    version: str = ""


class Evaluation(FrozenModel):
    """A results folder. results: those that there are; an evaluation may be unfinished."""

    folder: Path
    file: EvaluationFile
    results: tuple[AttemptResult, ...]

    def of_model(self, model: str) -> tuple[AttemptResult, ...]:
        """Return the results of a model, in the order of the tasks."""
        return tuple(result for result in self.results if result.model == model)


def attempt_folder(folder: Path, model: str, task: str) -> Path:
    """Return the folder of one model's attempt at one task."""
    return folder / model_slug(model) / task


def model_slug(model: str) -> str:
    """Return the name of a model as the name of a folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip(".-") or "model"


def write_result(folder: Path, result: AttemptResult) -> None:
    """Write the result of an attempt into its folder. It is complete whenever it exists."""
    write_atomically(folder / RESULT_FILE, result.model_dump_json(indent=1).encode())


def read_result(folder: Path) -> AttemptResult | None:
    """Return the result of an attempt; None if it has not ended."""
    try:
        return AttemptResult.model_validate_json((folder / RESULT_FILE).read_bytes())
    except (OSError, ValidationError):
        return None


def write_evaluation(folder: Path, file: EvaluationFile) -> EvaluationFile:
    """Write what is evaluated into a results folder, and return it with what was there before.

    Raises UsageError if the folder has results of another suite.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / EVALUATION_FILE).exists():
        earlier = read_evaluation_file(folder)
        if set(earlier.tasks) != set(file.tasks):
            raise UsageError(
                f"{folder} has results of other tasks", "choose another --output for this suite"
            )
        file = file.model_copy(update={"models": _union(earlier.models, file.models)})
    write_atomically(folder / EVALUATION_FILE, file.model_dump_json(indent=1).encode())
    return file


def read_evaluation_file(folder: Path) -> EvaluationFile:
    """Return what was evaluated. Raises UsageError if the folder is not a results folder."""
    try:
        data = json.loads((folder / EVALUATION_FILE).read_bytes())
        return EvaluationFile.model_validate(data)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{folder} has no results of an evaluation: {error}",
            "give the --output folder of `resolver eval run`",
        ) from None


def read_evaluation(folder: Path) -> Evaluation:
    """Return the results in a folder. Raises UsageError if it is not a results folder."""
    file = read_evaluation_file(folder)
    found = (
        read_result(attempt_folder(folder, model, task))
        for model in file.models
        for task in file.tasks
    )
    results = tuple(result for result in found if result is not None)
    return Evaluation(folder=folder, file=file, results=results)


def _union(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
