"""One attempt: a model works on a task in a sandbox, and its result is scored in another one."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from resolver.config.settings import REPOSITORY_FILE, Settings, repository_settings
from resolver.config.templates import render
from resolver.controller.control import Control
from resolver.errors import SandboxError, UsageError
from resolver.evaluation.repositories import open_task_repository
from resolver.evaluation.results import (
    OUTPUT_FOLDER,
    REFERENCE_FILE,
    AttemptResult,
    read_result,
    write_result,
)
from resolver.evaluation.scoring import (
    ScoreCause,
    TaskScore,
    build_scored_tree,
    score_execution,
)
from resolver.evaluation.task_format import INSTRUCTION_FILE, SOLUTION_PATCH, EvaluationTask
from resolver.events.stream import utc_now
from resolver.git.git import HostGit
from resolver.git.push import Identity, write_commit
from resolver.git.workspace import Workspace
from resolver.github.local_forge import LocalForge, local_trigger
from resolver.models.run import RunState
from resolver.runs.check_sandboxes import CheckSandboxes
from resolver.runs.common import run_id
from resolver.runs.output import REQUEST, Output, StoredRequest
from resolver.runs.pipeline import run_pipeline
from resolver.runs.stages import BudgetProvider, RunRequest, RunResult, unlimited_budget
from resolver.runs.wiring.sandbox import RunHost

ORACLE = "oracle"
"""The model that applies the real fix. It shows that the tasks can be resolved."""
NOP = "nop"
"""The model that changes nothing. It shows that no task is resolved by that."""

_REPOSITORY = "repository.git"
_REPLIES = "replies.yml"
_AUTHOR = Identity("Resolver", "resolver@localhost")

LoadSettings = Callable[[str, Mapping[str, object]], Settings]
"""Returns the settings for a model, given the parsed settings file of the repository."""

_CAUSE_BY_STATE: dict[RunState, ScoreCause] = {
    RunState.LIMIT: "limit",
    RunState.STUCK: "stuck",
    RunState.STOPPED: "stopped",
    RunState.ERROR: "error",
    RunState.REFUSED: "refused",
}


@dataclass(frozen=True)
class Attempt:
    """A model's attempt at a task. folder: where its files and its result are kept."""

    task: EvaluationTask
    model: str
    folder: Path
    load_settings: LoadSettings
    host: RunHost
    budget: BudgetProvider = unlimited_budget
    control: Control = field(default_factory=Control)


def make_attempt(attempt: Attempt) -> AttemptResult | None:
    """Run and score an attempt, or return its result if it has one.

    An attempt that was interrupted is resumed from its event log. None if it was stopped, or no
    budget is left for it: another call continues it.
    """
    repository = attempt.folder / _REPOSITORY
    if (known := read_result(attempt.folder)) is not None:
        # An evaluation that was killed here has left it.
        shutil.rmtree(repository, ignore_errors=True)
        return known
    attempt.folder.mkdir(parents=True, exist_ok=True)
    workspace = _open_repository(attempt.task, repository)
    request = _request(attempt, repository)
    try:
        issue = attempt.task.folder / INSTRUCTION_FILE
        forge = LocalForge(issue, workspace.branch, Workspace.branches(repository))
        result = run_pipeline(request, forge, lambda _: None)
    finally:
        request.output.close()
    if _is_unfinished(result):
        return None
    score = _score(attempt, workspace, result)
    made = _as_result(attempt, result, score)
    write_result(attempt.folder, made)
    shutil.rmtree(repository, ignore_errors=True)
    return made


def _is_unfinished(result: RunResult) -> bool:
    if result.outcome_file.state is RunState.STOPPED:
        return True
    return result.failure is not None and result.failure.kind == "over_budget"


def _open_repository(task: EvaluationTask, folder: Path) -> Workspace:
    """Return the repository of an attempt; that of an interrupted one is used again."""
    marker = folder.with_name(f"{folder.name}.complete")
    if marker.exists():
        base = HostGit(git_dir=folder).text("rev-parse", "refs/heads/main^{commit}")
        return Workspace(folder, str(folder), base, "main")
    shutil.rmtree(folder, ignore_errors=True)
    workspace = open_task_repository(task, folder)
    marker.touch()
    return workspace


def _request(attempt: Attempt, repository: Path) -> RunRequest:
    """Return the request of a new run, or of the one that was interrupted."""
    folder = attempt.folder / OUTPUT_FOLDER
    stored = _stored_request(folder)
    output = Output(folder, resume=stored is not None)
    if stored is None:
        now = utc_now()
        name = f"{attempt.task.id}:{attempt.model}:{now:%Y%m%d%H%M%S%f}"
        trigger = local_trigger(repository, run=name, login="evaluation", at=now)
        stored = StoredRequest(run=run_id(trigger.key, now), trigger=trigger)
    # The settings of a repository can name a model of their own for some work. The one that is
    # measured comes from the command line, which goes first.
    model = _model_name(attempt)
    return RunRequest(
        trigger=stored.trigger,
        run=stored.run,
        output=output,
        load_settings=lambda values: _task_settings(attempt, model, values),
        host=attempt.host,
        resume=output.has_events,
        control=attempt.control,
        budget=attempt.budget,
    )


def read_repository_settings(workspace: Workspace) -> dict[str, object]:
    """Return what the settings file of the repository says. Raises UsageError."""
    return repository_settings(workspace.read_trusted(REPOSITORY_FILE))


def _task_settings(attempt: Attempt, model: str, repository: Mapping[str, object]) -> Settings:
    """Return the settings with the image and the time limit of the task, if it has them."""
    settings = attempt.load_settings(model, repository)
    config, changes = attempt.task.config, dict[str, object]()
    if config.environment.docker_image:
        changes["image"] = config.environment.docker_image
    if config.agent.timeout_sec is not None:
        changes["max_time"] = min(settings.max_time, config.agent.timeout_sec)
    return settings.model_copy(update=changes)


def _stored_request(folder: Path) -> StoredRequest | None:
    if not (folder / REQUEST).is_file():
        return None
    try:
        return StoredRequest.model_validate_json((folder / REQUEST).read_bytes())
    except ValueError:
        return None


def _model_name(attempt: Attempt) -> str:
    """Return the model as the settings name it."""
    if attempt.model not in {ORACLE, NOP}:
        return attempt.model
    replies = attempt.folder / _REPLIES
    patch = attempt.task.solution()
    if attempt.model == NOP:
        replies.write_text(yaml.safe_dump(scripted_replies(b"")), "utf-8")
    elif patch:
        replies.write_text(yaml.safe_dump(scripted_replies(patch)), "utf-8")
    else:
        raise UsageError(
            f"the task {attempt.task.id} has no {SOLUTION_PATCH}", f"leave out --model {ORACLE}"
        )
    return f"scripted:{replies}"


def scripted_replies(patch: bytes) -> list[dict[str, object]]:
    """Return the replies of a model that applies a patch, or only finishes if it is empty."""
    command = render("eval/apply.sh.j2", patch=patch.decode("utf-8", "surrogateescape"))
    calls: list[dict[str, object]] = [{"execute_bash": {"command": command}}] if patch else []
    done = {"finish": {"message": "Done", "task_completed": "true"}}
    return [{"calls": [call]} for call in [*calls, done]]


def _score(attempt: Attempt, workspace: Workspace, result: RunResult) -> TaskScore:
    """Return the score of the change that the run published, as a branch of its repository."""
    commit = result.publication.commit
    if commit is None:
        state = result.outcome_file.state
        cause = _CAUSE_BY_STATE.get(state, "no_change")
        return TaskScore(cause, detail=result.outcome_file.reason)
    settings = _task_settings(attempt, "", read_repository_settings(workspace))
    return score_commit(attempt, workspace, commit, settings)


def score_commit(
    attempt: Attempt, workspace: Workspace, commit: str, settings: Settings
) -> TaskScore:
    """Return the score of a commit of the task's repository."""
    task, git = attempt.task, workspace.git
    if solution := task.solution():
        (attempt.folder / REFERENCE_FILE).write_bytes(solution)
    scored = build_scored_tree(workspace, commit, task.hidden_files(), solution)
    if scored.code == git.text("rev-parse", f"{workspace.base}^{{tree}}"):
        return TaskScore("no_change", detail="the change alters tests only")
    if scored.tampering:
        return TaskScore("tampering", tampering=scored.tampering)
    head = write_commit(git, workspace.base, scored.tree, "Change", _AUTHOR, utc_now(), ())
    run = f"score-{run_id(f'{task.id}:{attempt.model}', utc_now())}"
    try:
        sandboxes = CheckSandboxes(settings, attempt.host, run, workspace, {"head": head})
        if (unprepared := sandboxes.unprepared) is not None:
            return TaskScore("environment", detail=unprepared.detail)
        seconds = task.config.verifier.timeout_sec or settings.timeout_seconds.verification
        with sandboxes.open("head") as executor:
            execution = executor.execute(task.hidden.check, seconds)
    except SandboxError as error:
        return TaskScore("sandbox_error", detail=error.what)
    assert task.expected is not None, "a task without expected tests is never attempted"
    return score_execution(task.expected, task.hidden.check, execution)


def _as_result(attempt: Attempt, result: RunResult, score: TaskScore) -> AttemptResult:
    outcome = result.outcome_file
    return AttemptResult(
        task=attempt.task.id,
        model=attempt.model,
        resolved=score.is_resolved,
        cause=score.cause,
        detail=score.detail,
        tests=score.tests,
        tampering=score.tampering,
        verdict=outcome.evidence.verdict,
        verdict_reason=outcome.evidence.reason,
        iterations=outcome.iterations,
        cost=outcome.cost,
        tokens=outcome.tokens,
        seconds=round(outcome.seconds, 3),
        has_change=result.publication.commit is not None,
    )
