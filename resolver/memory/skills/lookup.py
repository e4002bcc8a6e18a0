"""Answers an agent that asks for a skill by its name or for the list of skills."""

from collections.abc import Sequence

from resolver.config.templates import render
from resolver.events.actions import Recall
from resolver.events.observations import RecallResult
from resolver.memory.skills.library import Library
from resolver.memory.skills.skill import Skill

RECALL_TOOL = "recall"
"""Name of the tool, and of the tag in the tags dialect."""

MAX_LINE_LENGTH = 200

_LIST_QUERIES = {"", "*", "all", "list", "skills", "?"}


def answer_recall(library: Library, action: Recall) -> RecallResult:
    """Return the skill that the query names, or the list to choose from."""
    query = action.query.strip()
    skill = library.skill(query)
    if skill is None:
        unknown = None if query.lower() in _LIST_QUERIES else query[:MAX_LINE_LENGTH]
        text = render_skill_list(library.skills, unknown)
        return RecallResult(content=text, about="list", why="asked for")
    return RecallResult(
        content=skill.body,
        about="skill",
        name=skill.name,
        sources=(skill.source,),
        why="asked for",
    )


def render_skill_list(skills: Sequence[Skill], unknown: str | None = None) -> str:
    """Return the list of skills with their descriptions, in the order given.

    unknown: a query that matched no skill, to say so.
    """
    entries = [
        (skill.name, " ".join(skill.description.split())[:MAX_LINE_LENGTH]) for skill in skills
    ]
    return render("agent/skill_list.md.j2", skills=entries, unknown=unknown).strip()
