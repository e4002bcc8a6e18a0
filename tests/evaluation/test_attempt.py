"""Tests of an attempt that is made again: what is kept of one that was interrupted."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from resolver.config.settings import Settings, load_settings
from resolver.evaluation.attempt import NOP, Attempt, _open_repository, _request, make_attempt
from resolver.evaluation.results import AttemptResult, write_result
from resolver.evaluation.task_format import read_suite
from resolver.git.git import HostGit
from resolver.runs.output import StoredRequest
from resolver.runs.wiring.sandbox import RunHost
from tests.parts.evaluation_tasks import write_suite


def settings_of(model: str, repository: Mapping[str, object]) -> Settings:
    return load_settings({"model": model}, {}, repository)


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    write_suite(tmp_path / "suite", 1)
    [task] = read_suite(tmp_path / "suite")
    folder = tmp_path / "results"
    folder.mkdir()
    return Attempt(task, NOP, folder, settings_of, RunHost({}, tmp_path / "cache"))


def test_an_attempt_with_a_result_is_not_made_again_and_leaves_no_repository(
    attempt: Attempt,
) -> None:
    result = AttemptResult(
        task=attempt.task.id, model=NOP, resolved=True, cause="", verdict="checked"
    )
    write_result(attempt.folder, result)
    repository = attempt.folder / "repository.git"
    repository.mkdir()
    assert make_attempt(attempt) == result
    assert not repository.exists(), "a kill after the result has left it"


def test_an_interrupted_attempt_continues_as_the_same_run_from_its_log(attempt: Attempt) -> None:
    repository = attempt.folder / "repository.git"
    first = _request(attempt, repository)
    assert not first.resume
    stored = StoredRequest(run=first.run, trigger=first.trigger)
    first.output.write_request(stored)
    first.output.log.write_text("{}\n")
    first.output.close()
    second = _request(attempt, repository)
    second.output.close()
    assert (second.run, second.trigger, second.resume) == (first.run, first.trigger, True)


def test_only_a_complete_repository_of_an_interrupted_attempt_is_used_again(
    attempt: Attempt,
) -> None:
    folder = attempt.folder / "repository.git"
    folder.mkdir()  # the kill came before the end of its creation
    made = _open_repository(attempt.task, folder)
    git = HostGit(git_dir=folder)
    git.run("update-ref", "refs/heads/agent/done", made.base)
    again = _open_repository(attempt.task, folder)
    assert (again.base, again.branch) == (made.base, "main")
    assert git.text("rev-parse", "refs/heads/agent/done").strip() == made.base
