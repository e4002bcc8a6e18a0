"""What `resolver resolve` makes of its arguments, and the command it offers to resume a run."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resolver.cli.resolve import new_request, resume_command
from resolver.config.settings import load_settings
from resolver.errors import UsageError
from resolver.events.lifecycle import ModelReplied
from resolver.github.comments.report import RunFailure
from resolver.models.run import Completion, RunLimits, RunState
from resolver.runs.conversation.comments import Conclusion, conclude
from resolver.runs.stages import ExecutedRun, RunResult
from tests.github import reports
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import executed_values, run_log, run_request
from tests.trace import sample

SETTINGS = load_settings({}, {})


@pytest.mark.parametrize(
    ("target", "issue", "what", "next_step"),
    [
        (".", None, ". is a folder and no issue is given", "--issue FILE.md"),
        ("nonsense", None, "'nonsense' is not an issue", "OWNER/NAME#N"),
        (None, None, "no issue is given", "--issue FILE.md"),
        (".", "missing.md", "there is no file missing.md", "--issue"),
        ("elsewhere", "x.md", "elsewhere is not a folder", "git checkout"),
    ],
)
def test_a_target_that_is_none_is_refused_with_what_to_give(
    target: str | None, issue: str | None, what: str, next_step: str
) -> None:
    with pytest.raises(UsageError) as raised:
        new_request(target, Path(issue) if issue else None, SETTINGS)
    assert raised.value.what == what
    assert next_step in raised.value.next_step


def ended(folder: Path, state: RunState, **outcome: Any) -> RunResult:
    """Return the result of a run after two replies for 0.0002 dollars each, of three at most."""
    request = run_request(folder)
    log = run_log(folder / "events.jsonl")
    limits = RunLimits(max_iterations=3, max_budget=0.0003)
    log.stream.add(sample.started().model_copy(update={"limits": limits}))
    for _ in range(2):
        log.stream.add(ModelReplied(completion=Completion(model="openai/scripted", cost=0.0002)))
    reached = ExecutedRun(reports.outcome(state=state, **outcome), reports.patch())
    values = replace(replace(executed_values(request), log=log), executed=reached)
    return conclude(values, Conclusion(exit_code=4), MemoryForge(folder / "issue.md", "main"))


@pytest.mark.parametrize(
    ("limit", "raised"),
    [
        ("iterations", ["--max-iterations", "6"]),
        ("budget", ["--max-budget", "0.0008"]),
        ("time", ["--max-time", "7200"]),
    ],
)
def test_the_command_to_resume_raises_the_limit_that_was_reached(
    tmp_path: Path, limit: str, raised: list[str]
) -> None:
    folder = tmp_path / "with blanks"
    result = ended(folder, RunState.LIMIT, limit=limit)
    words = shlex.split(resume_command(result) or "")
    begin = ["resolver", "resolve", "--resume", str(folder / "output")]
    assert words == [*begin, *raised]


def test_work_that_is_done_or_can_be_published_is_not_resumed(tmp_path: Path) -> None:
    assert resume_command(ended(tmp_path / "1", RunState.FINISHED)) is None
    failed = ended(tmp_path / "2", RunState.ERROR)
    report = failed.report.model_copy(update={"publishable": "folder"})
    publishable = replace(failed, report=report)
    assert resume_command(publishable) is None


def test_a_run_that_failed_before_the_first_reply_is_not_resumed(tmp_path: Path) -> None:
    request = run_request(tmp_path)
    forge = MemoryForge(tmp_path / "issue.md", "main")
    failure = RunFailure(kind="error", what="the image could not be pulled")
    failed = conclude(executed_values(request), Conclusion(failure, 1), forge)
    assert failed.outcome_file.state is RunState.ERROR
    assert resume_command(failed) is None
