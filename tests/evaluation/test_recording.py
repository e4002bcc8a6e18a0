"""Tests of what belongs to a recorded trajectory: its task, and the comparison of its change."""

from pathlib import Path

from resolver.evaluation.recording import find_differing_paths, find_task
from resolver.evaluation.repositories import apply_patch, open_task_repository
from resolver.evaluation.task_format import SOLUTION_PATCH, read_suite
from resolver.evaluation.trajectories import RecordedTrajectory

SUITE = {task.id: task for task in read_suite(Path(__file__).parents[2] / "suite")}


def recorded(id: str) -> RecordedTrajectory:
    return RecordedTrajectory(id, (), None, ())


def test_the_task_is_found_by_id_or_file_or_is_the_only_one() -> None:
    other = Path("x/other.traj.json")
    name = Path("x/c-trim.traj.json")
    assert find_task(SUITE, recorded("c-trim"), other) is SUITE["c-trim"]
    assert find_task(SUITE, recorded(""), name) is SUITE["c-trim"]
    assert find_task(SUITE, recorded("x"), other) is None
    assert find_task({"c-trim": SUITE["c-trim"]}, recorded("x"), other) is SUITE["c-trim"]


def test_changes_are_the_same_if_they_give_the_same_tree(tmp_path: Path) -> None:
    task = SUITE["python-slug"]
    patch = (task.folder / SOLUTION_PATCH).read_bytes()
    repository = open_task_repository(task, tmp_path / "repository.git")
    tree = apply_patch(repository.git, repository.base, patch)
    changed = ("slugs.py",)
    assert find_differing_paths(repository, tree, patch) == ()
    assert find_differing_paths(repository, repository.base, patch) == changed
    assert find_differing_paths(repository, tree, None) is None
    assert find_differing_paths(repository, tree, b"diff --git a/x b/x\nnonsense\n") is None
