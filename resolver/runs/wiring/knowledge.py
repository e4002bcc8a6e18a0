"""Collects what a run knows in addition to its task: instructions and skills.

Everything is read at commits that only people with write access can have made.
"""

import logging
from collections.abc import Collection
from pathlib import Path

from resolver.config.settings import Settings
from resolver.config.templates import render, template_folder
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
    is_shown_to_agents,
)
from resolver.memory.skills.skill import Origin
from resolver.models.run import Patch, Trigger, TriggerKind
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
    siblings: the owner's shared repositories whose content may be shown here.
    """
    repository_source = SkillSource(
        Origin.REPOSITORY, workspace.trusted_paths(), workspace.read_trusted
    )
    sources = [repository_source, built_in_skills(template_folder() / "skills")]
    if trigger.kind is not TriggerKind.LOCAL:
        sources += _read_organization_skills(
            settings, trigger.repository, credential, folder, siblings
        )
    return Library(sources)


def _read_organization_skills(
    settings: Settings,
    repository: str,
    credential: Credential | None,
    folder: Path,
    siblings: Collection[str],
) -> list[SkillSource]:
    """Return the skills of the owner's shared repositories, as far as they are among `siblings`.

    A run on a public repository reads only public ones, because skills in the agent's prompt can
    appear in its comments and its log.
    """
    owner, _, name = repository.partition("/")
    shared_folders = {
        shared: folders
        for shared, folders in ORGANIZATION_FOLDERS.items()
        if shared != name.lower() and shared in siblings
    }
    sources: list[SkillSource] = []
    for shared, folders in shared_folders.items():
        url = settings.clone_url(f"{owner}/{shared}")
        try:
            clone = Workspace.clone(url, folder / f"shared{shared}", depth=1, credential=credential)
            paths = clone.trusted_paths()
        except WorkspaceError as error:
            logger.info("no skills from %s: %s", url, error.what)
            continue
        prefix = f"{owner}/{shared}: "
        sources.append(SkillSource(Origin.ORGANIZATION, paths, clone.read, prefix, folders))
    return sources


def render_instruction_changes(patch: Patch) -> str | None:
    """Return a text for people about changed instructions of agents; None without such changes."""
    paths = [change.path for change in patch.files if is_shown_to_agents(change.path)]
    return render("run/instructions_changed.md.j2", paths=paths).strip() if paths else None
