"""Answers `@agent help` with the list of commands, without a run, a clone or a model."""

import logging
import re

from resolver.agents.definitions import FOLDER, MAX_DEFINITIONS, Definitions, read_definitions
from resolver.config.settings import Settings
from resolver.config.templates import render, template_folder
from resolver.errors import ForgeError
from resolver.github.github_forge import GitHubForge
from resolver.github.text.markdown import single_line
from resolver.memory.skills.library import (
    MICROAGENT_FOLDERS,
    SKILL_FOLDERS,
    Library,
    SkillSource,
    built_in_skills,
)
from resolver.memory.skills.skill import Origin
from resolver.models.run import Trigger
from resolver.runs.wiring.agents import RESERVED_NAMES, SlashCommand, list_slash_commands
from resolver.runs.wiring.knowledge import list_tasks

logger = logging.getLogger("resolver.runs.conversation.help")

_CELL_END = re.compile(r"(?<!\\)\|")
"""Ends a cell of a Markdown table, even inside of code."""

MAX_SKILL_FILES = 12
"""Maximum number of files that are read from a folder of skills; each costs one request."""


def post_help(trigger: Trigger, forge: GitHubForge, settings: Settings) -> None:
    """Post one comment that lists the commands and the agents and skills of the repository.

    A request is answered only once. Raises ForgeError if the comment can't be written.
    """
    forge.acknowledge(trigger)
    text = render(
        "comments/help.md.j2",
        mention=settings.mention,
        label=settings.label,
        slash_commands=[
            {
                "name": command.name,
                "description": _CELL_END.sub(r"\|", single_line(command.description)),
            }
            for command in list_slash_commands(_read_agents(forge), _read_skills(forge))
        ],
    )
    forge.post_answer(trigger, text.strip())


def _read_agents(forge: GitHubForge) -> Definitions:
    files = _read_files(forge, FOLDER, MAX_DEFINITIONS)
    return read_definitions(files.get, files, RESERVED_NAMES)


def _read_skills(forge: GitHubForge) -> list[SlashCommand]:
    files: dict[str, bytes] = {}
    for skill_folder in (*SKILL_FOLDERS, *MICROAGENT_FOLDERS):
        files |= _read_files(forge, skill_folder, MAX_SKILL_FILES)
    repository_source = SkillSource(Origin.REPOSITORY, tuple(files), files.get)
    library = Library([repository_source, built_in_skills(template_folder() / "skills")])
    return list_tasks(library)


def _read_files(forge: GitHubForge, folder: str, max_files: int) -> dict[str, bytes]:
    """Return the Markdown files of a folder, by path.

    If the folder can't be read, it is left out: the rest of the help is still useful.
    """
    try:
        return forge.markdown_files(folder, max_files)
    except ForgeError as error:
        logger.warning("%s", error.what)
        return {}
