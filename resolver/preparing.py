"""Between the task and the work: the host's own clone, what the repository says to Resolver on its
default branch, and the money that there is.
"""

import logging
import time
from dataclasses import replace
from pathlib import Path

from resolver.agents.registry import answers
from resolver.assembly.agents import Callee, agent_for, read_agents
from resolver.assembly.knowledge import read_knowledge
from resolver.forge.base import Forge
from resolver.forge.invisible import with_invisible_shown
from resolver.forge.issue_form import find_form
from resolver.model import Command, Task, TriggerKind
from resolver.publishing.review import legible
from resolver.pull import OpenPull
from resolver.record import Record
from resolver.settings import REPOSITORY_FILE, repository_settings
from resolver.templates import render
from resolver.triggers.rounds import asked_in, left_for_later, whole_request
from resolver.workspace.clone import commit_made_at, is_url
from resolver.workspace.clone_cache import CloneCache
from resolver.workspace.conventions import read_conventions, read_issue_templates
from resolver.workspace.elsewhere import at_branch, at_pull, beside_default
from resolver.workspace.excerpts import with_code
from resolver.workspace.naming import branches_of_issue
from resolver.workspace.workspace import Workspace

logger = logging.getLogger("resolver.pipeline")


def read_round(record: Record, task: Task) -> Task:
    """The task; of a submitted review with the conversations that it asks about, and as one request
    whichever of its events came first. What the run was asked for is then that."""
    trigger, mention = record.job.trigger, record.settings.mention
    if task.pull is None or trigger.review_id is None:
        return task
    asked = asked_in(trigger, task.pull, mention)
    whole = whole_request(trigger, task.pull, asked, mention)
    more = left_for_later(trigger, task.pull, asked)
    record.job = replace(record.job, trigger=whole)
    left_out = (*task.left_out, more) if more else task.left_out
    return task.model_copy(update={"trigger": whole, "asked": asked, "left_out": left_out})


def clone(record: Record, task: Task, folder: Path) -> Workspace:
    """The host's own clone, at the commit that the work starts from."""
    started = time.monotonic()
    workspace = _cloned(record, task, folder)
    record.base = workspace.base
    if workspace.pull is None:
        record.base_made = commit_made_at(workspace.git, workspace.base)
        branch = task.base_branch if task.follows else workspace.branch
        record.task = task.model_copy(update={"base_branch": branch})
    else:
        pull = legible(workspace.pull)
        asked = (with_code(each, pull, workspace.read, with_invisible_shown) for each in task.asked)
        record.task = task.model_copy(update={"pull": pull, "asked": tuple(asked)})
    if workspace.source_is_dirty:
        record.warnings.append(render("run/dirty.md.j2").strip())
    logger.info("cloned %s in %.1f s", task.source, time.monotonic() - started)
    return workspace


def _cloned(record: Record, task: Task, folder: Path) -> Workspace:
    depth, credential = record.settings.clone_depth, record.credential()
    clones = record.job.host.clones
    cache = CloneCache(clones) if clones is not None else None
    if task.trigger.command is Command.UPDATE:
        depth = 0  # where two histories met last is only seen in all of both
    if task.pull is not None:
        return Workspace.clone_pull(
            task.source, folder, task.pull, depth=depth, credential=credential, cache=cache
        )
    cloned = Workspace.clone(
        task.source,
        folder,
        branch=(task.follows.branch if task.follows else task.base_branch) or None,
        commit=record.base,
        depth=depth,
        credential=credential,
        cache=cache,
    )
    goes_on = record.base is not None and is_url(task.source)
    return beside_default(cloned, depth, credential) if goes_on else cloned


def read_repository(record: Record, forge: Forge, workspace: Workspace, folder: Path) -> None:
    """The repository's settings, agents, instructions and skills, and which agent does the work.

    folder: for what is fetched beside it.
    """
    trusted = workspace.read_trusted(REPOSITORY_FILE)
    record.settings = record.job.load(repository_settings(trusted))
    if workspace.pull is not None or (record.task and record.task.follows):
        _keep_no_setup(record)
    record.conventions = read_conventions(workspace)
    record.task = record.task and _with_form(record.task, workspace)
    record.agents = read_agents(workspace, record.settings)
    record.warnings.extend(record.agents.problems)
    opening = record.log.opening if record.log else None
    begun = opening.agent if opening else record.settings.agent
    asked = opening.task.trigger if opening else record.job.trigger
    record.knowledge = read_knowledge(
        workspace,
        record.settings,
        asked,
        record.job.host,
        record.credential(),
        folder,
        forge.is_public,
    )
    record.warnings.extend(record.knowledge.library.problems)
    skills = [Callee(*task) for task in record.knowledge.tasks]
    agent = agent_for(record.job.trigger, begun, record.agents, skills)
    record.settings = record.settings.model_copy(update={"agent": agent})


def _with_form(task: Task, workspace: Workspace) -> Task:
    """The task with the form that its issue was written with; a pull request has none."""
    if task.trigger.is_pull_request or not task.body:
        return task
    form = find_form(read_issue_templates(workspace), task.title, task.body)
    return task.model_copy(update={"form": form})


def start_elsewhere(record: Record, forge: Forge, workspace: Workspace) -> Workspace:
    """On an issue, the clone at our open pull request for it, to which the work then adds, else at
    the branch that the settings name; what the repository says to Resolver is read at the default
    branch all the same. A log that is gone on from has its own."""
    task, trigger = record.task, record.job.trigger
    begins = task is not None and record.log is None and workspace.pull is None
    if task is None or not begins or trigger.kind is TriggerKind.LOCAL:
        return workspace
    depth, credential = record.settings.clone_depth, record.credential()
    if _may_follow(record) and (follows := _open_pull(record, forge, workspace)) is not None:
        moved = at_pull(workspace, follows, depth, credential)
        more = (f"pull request #{follows.number}: {follows.moved}",) if follows.moved else ()
        known = {"follows": follows, "base_branch": follows.base_branch}
        record.task = task.model_copy(update={**known, "left_out": (*task.left_out, *more)})
        record.base, record.base_made = moved.base, None
        _keep_no_setup(record)
        return moved
    branch = record.settings.base_branch
    if branch in {"", workspace.branch}:
        return workspace
    moved = at_branch(workspace, branch, depth, credential)
    record.base = moved.base
    record.base_made = commit_made_at(moved.git, moved.base)
    record.task = task.model_copy(update={"base_branch": branch})
    return moved


def _may_follow(record: Record) -> bool:
    """Whether the run is to change something. A failed check of a branch is about that one."""
    trigger = record.job.trigger
    changes = not answers(record.settings.agent, record.agents.agents)
    return changes and trigger.kind is not TriggerKind.CHECK_FAILED


def _open_pull(record: Record, forge: Forge, workspace: Workspace) -> OpenPull | None:
    """Ours for the issue, unless it comes from a branch that is never pushed to."""
    trigger = record.job.trigger
    found = forge.heads().of_issue(trigger, branches_of_issue(trigger.subject or 0))
    kept = {workspace.branch, record.settings.base_branch}
    if found is None or found.branch in kept:
        return None
    return record.redactor().redact_model(found)


def _keep_no_setup(record: Record) -> None:
    """What setup runs is somebody's unmerged code: no later run begins with what it left."""
    record.settings = record.settings.model_copy(update={"keep_setup": False})


def cut_budget(record: Record) -> None:
    """Bound the run by the money that its operator has left for it."""
    left = min(record.job.purse(record.settings), record.ceilings_left)
    log = record.log
    record.most_money = (log.spent_before(record.job.run) if log else 0.0) + left
    if left < record.settings.max_budget:
        record.settings = record.settings.model_copy(update={"max_budget": left})
        record.warnings.append(render("run/budget_cut.md.j2", left=left).strip())
