"""Collects what a run knows in addition to its task: instructions and skills.

Everything is read at commits that only people with write access can have made.
"""

import logging
from collections.abc import Collection
from pathlib import Path

from resolver.config.settings import Settings
from resolver.config.templates import template_folder
from resolver.errors import WorkspaceError
from resolver.git.git import Credential
from resolver.git.workspace import Workspace
from resolver.memory.skills.library import (
    AGENTS_REPOSITORY_FOLDERS,
    MICROAGENT_FOLDERS,
    SKILL_FOLDERS,
    Library,
    SkillSource,
    built_in_skills,
)
from resolver.memory.skills.skill import Origin
from resolver.models.run import Trigger, TriggerKind
from resolver.runs.wiring.agents import SlashCommand

logger = logging.getLogger("resolver.runs.wiring.knowledge")

ORGANIZATION_FOLDERS = {
    ".agents": (*SKILL_FOLDERS, *MICROAGENT_FOLDERS, *AGENTS_REPOSITORY_FOLDERS),
    ".github": (*SKILL_FOLDERS, *MICROAGENT_FOLDERS),
}
"""Names of an owner's repositories whose skills apply to all of its repositories, with their
folders."""


def list_tasks(library: Library) -> list[SlashCommand]:
    """Return the task skills, by each name that a person can call with a slash."""
    tasks = (skill for skill in library.skills if skill.kind == "task")
    return [
        SlashCommand(name, skill.description)
        for skill in tasks
        for name in (skill.name, *skill.commands)
    ]


def read_skills(
    workspace: Workspace,
    settings: Settings,
    trigger: Trigger,
    credential: Credential | None,
    folder: Path,
    siblings: Collection[str],
) -> Library:
    """Read the instructions and skills for this run.

    folder: for clones of the organization's repositories.
    siblings: the owner's shared repositories whose content may be shown here: a run on a public
        repository reads only public ones, because skills in the agent's prompt can appear in its
        comments and its log.
    """
    repository_source = SkillSource(
        Origin.REPOSITORY, workspace.trusted_paths(), workspace.read_trusted
    )
    sources = [repository_source, built_in_skills(template_folder() / "skills")]
    owner, _, name = trigger.repository.partition("/")
    for shared, folders in ORGANIZATION_FOLDERS.items():
        is_read = trigger.kind is not TriggerKind.LOCAL and shared in siblings
        if not is_read or shared == name.lower():
            continue
        url = settings.clone_url(f"{owner}/{shared}")
        try:
            clone = Workspace.clone(url, folder / f"shared{shared}", depth=1, credential=credential)
            paths = clone.trusted_paths()
        except WorkspaceError as error:
            logger.info("no skills from %s: %s", url, error.what)
            continue
        prefix = f"{owner}/{shared}: "
        sources.append(SkillSource(Origin.ORGANIZATION, paths, clone.read, prefix, folders))
    return Library(sources)
