"""Between the task and the work: the host's own clone, what the repository says to Resolver on its
default branch, and the money that there is.
"""

import logging
import time
from pathlib import Path

from resolver.assembly.agents import Callee, agent_for, read_agents
from resolver.assembly.knowledge import read_knowledge
from resolver.model import Task
from resolver.publishing.review import legible
from resolver.record import Record
from resolver.settings import REPOSITORY_FILE, repository_settings
from resolver.templates import render
from resolver.workspace.workspace import Workspace

logger = logging.getLogger("resolver.pipeline")


def clone(record: Record, task: Task, folder: Path) -> Workspace:
    """The host's own clone, at the commit that the work starts from."""
    started = time.monotonic()
    workspace = _cloned(record, task, folder)
    record.base = workspace.base
    if workspace.pull is None:
        record.task = task.model_copy(update={"base_branch": workspace.branch})
    else:
        record.task = task.model_copy(update={"pull": legible(workspace.pull)})
    if workspace.source_is_dirty:
        record.warnings.append(render("run/dirty.md.j2").strip())
    logger.info("cloned %s in %.1f s", task.source, time.monotonic() - started)
    return workspace


def _cloned(record: Record, task: Task, folder: Path) -> Workspace:
    depth, credential = record.settings.clone_depth, record.credential()
    if task.pull is not None:
        return Workspace.clone_pull(
            task.source, folder, task.pull, depth=depth, credential=credential
        )
    return Workspace.clone(
        task.source,
        folder,
        branch=task.base_branch or None,
        commit=record.base,
        depth=depth,
        credential=credential,
    )


def read_repository(record: Record, workspace: Workspace, folder: Path) -> None:
    """The repository's settings, agents, instructions and skills, and which agent does the work.

    folder: for what is fetched beside it.
    """
    trusted = workspace.read_trusted(REPOSITORY_FILE)
    record.settings = record.job.load(repository_settings(trusted))
    if workspace.pull is not None:
        # What its setup runs is somebody's unmerged code: no later run begins with what it left.
        record.settings = record.settings.model_copy(update={"keep_setup": False})
    record.agents = read_agents(workspace, record.settings)
    record.warnings.extend(record.agents.problems)
    opening = record.log.opening if record.log else None
    begun = opening.agent if opening else record.settings.agent
    asked = opening.task.trigger if opening else record.job.trigger
    record.knowledge = read_knowledge(
        workspace, record.settings, asked, record.job.host, record.credential(), folder
    )
    record.warnings.extend(record.knowledge.library.problems)
    skills = [Callee(*task) for task in record.knowledge.tasks]
    agent = agent_for(record.job.trigger, begun, record.agents, skills)
    record.settings = record.settings.model_copy(update={"agent": agent})


def cut_budget(record: Record) -> None:
    """Bound the run by the money that its operator has left for it."""
    left = record.job.purse(record.settings)
    log = record.log
    record.most_money = (log.spent_before(record.job.run) if log else 0.0) + left
    if left < record.settings.max_budget:
        record.settings = record.settings.model_copy(update={"max_budget": left})
        record.warnings.append(render("run/budget_cut.md.j2", left=left).strip())
