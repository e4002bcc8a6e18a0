"""The prepare stage, between an accepted request and the agent's work: read the task, clone, read
the repository's configuration from its default branch, and apply the remaining budget.

Work that an earlier run or an earlier attempt has already published for the same request is looked
up twice, because the second look-up costs requests to GitHub that only people who may start work
should be able to cause: `find_finished_work` runs before anything else, `find_pushed_work` after
authorization.
"""

import logging
import time
from dataclasses import replace
from pathlib import Path

from resolver.agents.registry import is_answering_agent
from resolver.config.settings import Settings
from resolver.config.sources import REPOSITORY_FILE, repository_settings
from resolver.config.templates import render
from resolver.events.run_log import RunLog
from resolver.git.clone import is_url, read_commit_date
from resolver.git.clone_cache import CloneCache
from resolver.git.conventions import read_conventions
from resolver.git.history import HISTORY_LEVELS
from resolver.git.pull_request import with_code
from resolver.git.push import issue_branch_prefix
from resolver.git.remote import RefListing
from resolver.git.workspace import (
    Workspace,
    with_default_branch,
    workspace_at_branch,
    workspace_at_pull_request,
)
from resolver.github.client.snapshot import RepositorySnapshot
from resolver.github.comments.progress import ProgressReporter
from resolver.github.events.reviews import requested_threads, whole_request
from resolver.github.github_forge import GitHubForge
from resolver.github.local_issue import read_issue_file
from resolver.models.pull_request import OpenPullRequest
from resolver.models.repository import Conventions
from resolver.models.run import Command, Publication, Task, TriggerKind
from resolver.publishing import update_branch
from resolver.publishing.review_comments import readable_pull_request
from resolver.runs.resuming.resume import resume_run
from resolver.runs.stages import (
    AcceptedRun,
    PreparedRun,
    PublishedRun,
    RunRequest,
    RunTask,
)
from resolver.runs.wiring.agents import choose_agent, read_agents
from resolver.runs.wiring.knowledge import list_tasks, read_skills
from resolver.security.invisible_text import with_invisible_shown


def find_finished_work(request: RunRequest, forge: GitHubForge | None) -> PublishedRun | None:
    """Return what an earlier run with the same key has published; None if the run is to start."""
    if forge is None or not request.publish:
        return None
    earlier = forge.find_publication(request.trigger)
    return _take_over_publication(request, earlier) if earlier else None


def find_pushed_work(request: RunRequest, forge: GitHubForge | None) -> PublishedRun | None:
    """Return what an earlier attempt of this run has pushed without writing its final comment."""
    if forge is None or not request.publish:
        return None
    prefix = issue_branch_prefix(request.trigger.subject or 0)
    earlier = forge.heads().pushed(request.trigger, request.run, prefix)
    return _take_over_publication(request, earlier) if earlier else None


def _take_over_publication(request: RunRequest, earlier: Publication) -> PublishedRun | None:
    """Return the earlier publication, as far as this run takes it over.

    A resumed run has its log to report from and publishes only what is missing. Any other run has
    nothing left to do except its comment.
    """
    is_resumed = request.resume and request.output.has_events
    if is_resumed and earlier.how == "added":
        return None  # a commit added to an existing branch is found again when it is pushed
    return PublishedRun(earlier.model_copy(update={"repeated": not is_resumed}))


logger = logging.getLogger("resolver.runs.pipeline")


def open_run_log(
    request: RunRequest, settings: Settings, progress: ProgressReporter | None
) -> RunLog:
    """Open the run's event log and subscribe the reporters of its progress."""
    output = request.output
    log = RunLog(
        output.log,
        request.redactor(settings),
        request.now,
        output.file_mode,
        request.host.require_lease,
        request.log_copy,
    )
    if request.progress:
        log.stream.subscribe("progress", request.progress)
    if progress:
        log.stream.subscribe("forge", progress.follow(log.state))
    return log


def load_task(
    request: RunRequest,
    settings: Settings,
    forge: GitHubForge | None,
    progress: ProgressReporter | None,
) -> RunTask:
    """Return the task: from the log of a resumed run, otherwise from GitHub or the local issue
    file."""
    if request.has_log:
        return _resumed_task(request, open_run_log(request, settings, progress))
    redactor = request.redactor(settings)
    if forge is None:
        assert request.issue is not None, "a checkout on this machine has an issue file"
        issue = read_issue_file(Path(request.issue), request.trigger, settings.base_branch or "")
        return RunTask(request, redactor(issue))
    request, task = _with_whole_review(request, settings, forge.read(request.trigger))
    return RunTask(request, redactor(task))


def _resumed_task(request: RunRequest, log: RunLog) -> RunTask:
    """Return the task of the log, and log that the run is resumed."""
    opening = log.opening
    # `has_log` implies an event, and the first event of every log is RunStarted
    assert opening is not None
    ended = request.output.outcome is not None
    resume_run(log, request.run, request.continuation, ended=ended)
    request.output.withdraw_outcome()
    task = opening.task
    task = task.model_copy(update={"source": request.source or task.source})
    if task.trigger.key == request.trigger.key:
        request = replace(request, trigger=task.trigger)
    return RunTask(request, task, log=log, base=opening.base)


def _with_whole_review(
    request: RunRequest, settings: Settings, task: Task
) -> tuple[RunRequest, Task]:
    """Return the request and the task for all of a submitted review.

    GitHub sends a submitted review as several events, in any order. The trigger is replaced with
    the one that stands for all of them, and the task gets the review threads that it asks about.
    """
    trigger, mention = request.trigger, settings.mention
    if task.pull is None or trigger.review_id is None:
        return request, task
    threads = requested_threads(trigger, task.pull, mention)
    whole_trigger = whole_request(trigger, task.pull, threads, mention)
    whole_task = task.model_copy(update={"trigger": whole_trigger, "asked": threads})
    return replace(request, trigger=whole_trigger), whole_task


def clone(
    run_task: RunTask, settings: Settings, folder: Path, snapshot: RepositorySnapshot | None = None
) -> tuple[Task, Workspace]:
    """Make the host's own clone, at the commit that the work starts from. Return the task, with
    what only the clone shows, and the clone.

    snapshot: the refs of the repository, if they were read.
    """
    started = time.monotonic()
    task = run_task.task
    workspace = _clone_workspace(run_task, settings, folder, snapshot)
    logger.info("cloned %s in %.1f s", task.source, time.monotonic() - started)
    if workspace.pull is None:
        branch = task.base_branch if task.follows else workspace.branch
        return task.model_copy(update={"base_branch": branch}), workspace
    pull = readable_pull_request(workspace.pull)
    threads = (with_code(thread, pull, with_invisible_shown) for thread in task.asked)
    return task.model_copy(update={"pull": pull, "asked": tuple(threads)}), workspace


def _clone_workspace(
    run_task: RunTask, settings: Settings, folder: Path, snapshot: RepositorySnapshot | None
) -> Workspace:
    """Return the workspace of a pull request, or of the branch and commit that the task starts
    from."""
    task = run_task.task
    credential = run_task.request.credential(settings)
    clones = run_task.request.host.clones
    cache = CloneCache(clones) if clones is not None else None
    if task.pull is not None:
        return Workspace.clone_pull_request(
            task.source,
            folder,
            task.pull,
            credential=credential,
            cache=cache,
            for_merge=task.trigger.command is Command.UPDATE,
        )
    workspace = Workspace.clone(
        task.source,
        folder,
        branch=(task.follows.branch if task.follows else task.base_branch) or None,
        commit=run_task.base,
        depth=HISTORY_LEVELS,
        credential=credential,
        cache=cache,
        listing=_known_refs(run_task, settings, snapshot),
    )
    is_resumed = run_task.base is not None and is_url(task.source)
    return with_default_branch(workspace, credential) if is_resumed else workspace


def _known_refs(
    run_task: RunTask, settings: Settings, snapshot: RepositorySnapshot | None
) -> RefListing | None:
    """Return the default branch of the repository in git's terms, None if git has to ask for it."""
    repository_url = settings.clone_url(run_task.request.trigger.repository)
    if snapshot is None or not snapshot.tip or run_task.task.source != repository_url:
        return None
    branch = f"refs/heads/{snapshot.branch}"
    return RefListing({branch: snapshot.tip}, branch)


def configure(
    accepted: AcceptedRun,
    run_task: RunTask,
    task: Task,
    workspace: Workspace,
    forge: GitHubForge | None,
    folder: Path,
) -> PreparedRun:
    """Read the repository's configuration from its default branch, choose the commit to start from
    and limit the run to the remaining budget.

    folder: for repositories that are cloned in addition to the target, such as shared skills.
    """
    request = run_task.request
    settings = request.load_settings(repository_settings(workspace.read_trusted(REPOSITORY_FILE)))
    dirty = (render("run/dirty.md.j2").strip(),) if workspace.source_is_dirty else ()
    if task.follows:
        workspace = replace(workspace, is_unmerged=True)
    agents = read_agents(workspace, settings)
    opening = run_task.log.opening if run_task.log else None
    trigger = opening.task.trigger if opening else request.trigger
    credential = request.credential(settings)
    library = read_skills(
        workspace,
        settings,
        trigger,
        credential,
        folder,
        accepted.snapshot.siblings if accepted.snapshot else (),
    )
    initial_agent = opening.agent if opening else settings.agent
    agent = choose_agent(request.trigger, initial_agent, agents, list_tasks(library))
    prepared = PreparedRun(
        request=request,
        settings=settings.model_copy(update={"agent": agent}),
        task=task,
        workspace=workspace,
        base_committed_at=None,
        conventions=Conventions(),
        agents=agents,
        library=library,
        max_cost=float("inf"),
        warnings=(*dirty, *agents.problems, *library.problems),
    )
    if run_task.log is None and workspace.pull is None and forge is not None:
        prepared = _at_starting_branch(prepared, forge)
    workspace = prepared.workspace
    is_of_request = workspace.pull is not None or prepared.task.follows is not None
    prepared = replace(
        prepared,
        conventions=read_conventions(workspace),
        base_committed_at=None
        if is_of_request
        else read_commit_date(workspace.git, workspace.base),
    )
    prepared = _within_budget(prepared, accepted, run_task.log)
    return prepared if is_answering_agent(agent, agents.agents) else _with_update_plan(prepared)


def _with_update_plan(prepared: PreparedRun) -> PreparedRun:
    """Plan how a pull request is brought up to date. Conflicts of the merge become part of the
    workspace."""
    if prepared.workspace.pull is None:
        return prepared
    update = update_branch.plan_update(prepared.task, prepared.workspace)
    return replace(prepared, workspace=update.workspace, task=update.task, update=update.kind)


def _at_starting_branch(prepared: PreparedRun, forge: GitHubForge) -> PreparedRun:
    """Return the run at the branch where work on an issue starts.

    That is the branch of Resolver's open pull request for the issue, to which the run then adds
    commits, or else the branch that the settings name. The configuration always comes from the
    default branch. A resumed log keeps its own base and does not get here.
    """
    workspace, settings, task = prepared.workspace, prepared.settings, prepared.task
    credential = prepared.credential()
    follows = _find_open_pull_request(prepared, forge) if _is_change_for_issue(prepared) else None
    if follows is not None:
        left_out_commits = (
            (f"pull request #{follows.number}: {follows.moved}",) if follows.moved else ()
        )
        update = {"follows": follows, "base_branch": follows.base_branch}
        left_out = (*task.left_out, *left_out_commits)
        return replace(
            prepared,
            workspace=workspace_at_pull_request(workspace, follows, credential),
            task=task.model_copy(update={**update, "left_out": left_out}),
        )
    branch = settings.base_branch
    if branch is None or branch == workspace.branch:
        return prepared
    return replace(
        prepared,
        workspace=workspace_at_branch(workspace, branch, credential),
        task=task.model_copy(update={"base_branch": branch}),
    )


def _is_change_for_issue(prepared: PreparedRun) -> bool:
    """Return True if the run is to change something for an issue. A failed check of a branch is
    about that branch instead."""
    is_change = not is_answering_agent(prepared.settings.agent, prepared.agents.agents)
    return is_change and prepared.request.trigger.kind is not TriggerKind.CHECK_FAILED


def _find_open_pull_request(prepared: PreparedRun, forge: GitHubForge) -> OpenPullRequest | None:
    """Return Resolver's open pull request for the issue; None if its branch is one that is never
    pushed to."""
    trigger = prepared.request.trigger
    pull = forge.heads().of_issue(trigger, issue_branch_prefix(trigger.subject or 0))
    if pull is None or pull.branch in {prepared.workspace.branch, prepared.settings.base_branch}:
        return None
    return prepared.redactor(pull)


def _within_budget(prepared: PreparedRun, accepted: AcceptedRun, log: RunLog | None) -> PreparedRun:
    """Return the run with its budget cut to what the request and the quotas leave."""
    request, settings = prepared.request, prepared.settings
    budget = min(request.budget, accepted.quota_left)
    max_cost = (log.spent_before(request.run) if log else 0.0) + budget
    if budget >= settings.max_budget:
        return replace(prepared, max_cost=max_cost)
    return replace(
        prepared,
        max_cost=max_cost,
        settings=settings.model_copy(update={"max_budget": budget}),
        warnings=(*prepared.warnings, render("run/budget_cut.md.j2", left=budget).strip()),
    )
