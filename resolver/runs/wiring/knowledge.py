"""Collects what a run knows in addition to its task: instructions and skills.

Everything is read at commits that only people with write access can have made.
"""

import logging
from collections.abc import Callable, Collection
from pathlib import Path

from resolver.config.settings import Settings
from resolver.config.templates import render, template_folder
from resolver.errors import WorkspaceError
from resolver.git.git import Credential
from resolver.git.remote import list_refs
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
    is_public: Callable[[], bool | None],
    siblings: Collection[str] | None = None,
) -> Library:
    """Read the instructions and skills for this run.

    folder: for clones of the organization's repositories.
    is_public: whether anybody can read this repository; None if the forge does not say.
    siblings: the owner's shared repositories that exist; None if that is unknown.
    """
    repository_source = SkillSource(
        Origin.REPOSITORY, workspace.trusted_paths(), workspace.read_trusted
    )
    sources = [repository_source, built_in_skills(template_folder() / "skills")]
    if trigger.kind is not TriggerKind.LOCAL:
        siblings_to_read = ORGANIZATION_FOLDERS if siblings is None else siblings
        sources += _read_organization_skills(
            settings, trigger.repository, credential, folder, is_public, siblings_to_read
        )
    return Library(sources)


def _read_organization_skills(
    settings: Settings,
    repository: str,
    credential: Credential | None,
    folder: Path,
    is_public: Callable[[], bool | None],
    siblings: Collection[str],
) -> list[SkillSource]:
    """Return the skills of the owner's shared repositories, as far as they are among `siblings`.

    A repository that does not exist, or that the run's token can't read, has none: GitHub's answer
    is the same for both. A run on a public repository reads only public ones, because skills in the
    agent's prompt can appear in its comments and its log.
    """
    owner, _, name = repository.partition("/")
    shared_folders = {
        shared: folders
        for shared, folders in ORGANIZATION_FOLDERS.items()
        if shared != name.lower() and shared in siblings
    }
    if not shared_folders:
        return []
    if credential is not None:
        is_public_repository = is_public()
        if is_public_repository is None:
            is_public_repository = _is_readable_by_anybody(settings.clone_url(repository))
        # Without a credential a clone succeeds only for a public repository.
        credential = None if is_public_repository else credential
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


def _is_readable_by_anybody(url: str) -> bool:
    """Return True if anybody can read the repository."""
    try:
        list_refs(url, [], None)
    except WorkspaceError:
        return False
    return True


def render_instruction_changes(patch: Patch) -> str | None:
    """Return a text for people about changed instructions of agents; None without such changes."""
    paths = [change.path for change in patch.files if is_shown_to_agents(change.path)]
    return render("run/instructions_changed.md.j2", paths=paths).strip() if paths else None
