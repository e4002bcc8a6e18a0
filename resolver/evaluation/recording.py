"""Executes a recorded trajectory in Resolver's sandbox, and compares the change with the recorded
one.

No model is called and no key is needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from resolver.config.settings import Settings
from resolver.config.temporary_directory import temporary_directory
from resolver.controller.controller import Executor
from resolver.errors import WorkspaceError
from resolver.evaluation.attempt import (
    Attempt,
    LoadSettings,
    read_repository_settings,
    score_commit,
)
from resolver.evaluation.repositories import open_task_repository
from resolver.evaluation.scoring import TaskScore
from resolver.evaluation.task_format import EvaluationTask
from resolver.evaluation.trajectories import RecordedTrajectory
from resolver.events.actions import SandboxAction
from resolver.events.base import ObservationBase
from resolver.events.run_log import RunLog
from resolver.events.stream import utc_now
from resolver.git.overlay import apply_patch
from resolver.git.tree import read_changes
from resolver.git.workspace import Workspace
from resolver.models.run import Patch
from resolver.runs.common import run_id
from resolver.runs.execute import open_sandbox, take_change
from resolver.runs.resuming.rebuild import Reexecution, RelocatedExecutor, reexecute
from resolver.runs.wiring.sandbox import RunHost, runtime_kind

PatchComparison = Literal["same", "different", "unknown"]
"""same: both changes give the same tree. unknown: the recording has no change, or one that does not
apply."""


@dataclass(frozen=True)
class ReplayedTrajectory:
    """A trajectory that was executed again.

    differing: paths whose content is not the recorded one. score: that of its change, by the hidden
    tests; None if the task has none.
    """

    task: str
    execution: Reexecution
    left_out: int
    patch: Patch
    comparison: PatchComparison
    differing: tuple[str, ...]
    score: TaskScore | None


@dataclass(frozen=True)
class TrimmingExecutor:
    """An executor whose results have no space at their end, for a comparison with such results."""

    executor: Executor

    def execute(self, action: SandboxAction) -> ObservationBase:
        """Execute the action."""
        observation = self.executor.execute(action)
        content = str(getattr(observation, "content", "")).rstrip()
        return observation.model_copy(update={"content": content})


def replay_trajectory(
    task: EvaluationTask,
    trajectory: RecordedTrajectory,
    load_settings: LoadSettings,
    host: RunHost,
    folder: Path,
) -> ReplayedTrajectory:
    """Execute a trajectory on the repository of its task, and score the change.

    folder: for the files of the replay. Raises UsageError, WorkspaceError or SandboxError.
    """
    repository = open_task_repository(task, folder / "repository.git")
    settings = load_settings("", read_repository_settings(repository))
    execution, patch = _execute(task, trajectory, settings, host, repository)
    score = None if task.problem else TaskScore("no_change")
    if score is not None and not patch.is_empty:
        attempt = Attempt(task, "replay", folder, load_settings, host)
        score = score_commit(attempt, repository, patch.tree, settings)
    differing = find_differing_paths(repository, patch.tree, trajectory.patch)
    return ReplayedTrajectory(
        task=task.id,
        execution=execution,
        left_out=trajectory.left_out,
        patch=patch,
        comparison="unknown" if differing is None else "different" if differing else "same",
        differing=differing or (),
        score=score,
    )


def _execute(
    task: EvaluationTask,
    trajectory: RecordedTrajectory,
    settings: Settings,
    host: RunHost,
    repository: Workspace,
) -> tuple[Reexecution, Patch]:
    """Execute the commands in a fresh sandbox, and take the change out as git objects."""
    run, kind = run_id(f"replay:{task.id}", utc_now()), runtime_kind(settings, host)
    with (
        temporary_directory() as folder,
        RunLog(folder / "events.jsonl", host.redactor(settings), utc_now) as log,
        open_sandbox(run, settings, host, kind, repository, log) as sandbox,
    ):
        runtime = sandbox.runtime
        roots = (*trajectory.roots, runtime.root)
        inner = TrimmingExecutor(runtime) if trajectory.is_trimmed else runtime
        executor = RelocatedExecutor(inner, trajectory.roots, runtime.root)
        execution = reexecute(trajectory.events, executor, roots, include_views=True)
        patch, _ = take_change(settings, folder, repository, runtime, log)
    return execution, patch


def find_differing_paths(
    repository: Workspace, tree: str, recorded: bytes | None
) -> tuple[str, ...] | None:
    """Return the paths in which a tree differs from what a recorded change gives.

    None if there is no recorded change, or it does not apply to the base commit.
    """
    if not recorded:
        return None
    try:
        expected = apply_patch(repository.git, repository.base, recorded)
    except WorkspaceError:
        return None
    changes = read_changes(repository.git, expected, tree)
    return tuple(change.path.decode("utf-8", "replace") for change in changes)


def find_task(
    tasks: Mapping[str, EvaluationTask], trajectory: RecordedTrajectory, path: Path
) -> EvaluationTask | None:
    """Return the task of a trajectory: by its id, by the name of its file, or the only one."""
    name = path.name.partition(".")[0]
    for key in (trajectory.id, name):
        if key in tasks:
            return tasks[key]
    return next(iter(tasks.values())) if len(tasks) == 1 else None
