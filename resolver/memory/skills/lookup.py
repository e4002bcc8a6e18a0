"""Answers an agent that asks for a skill by name or by keywords."""

import re
from collections.abc import Sequence

from resolver.config.templates import render
from resolver.events.actions import Recall
from resolver.events.observations import RecallResult
from resolver.memory.skills.reading import Library
from resolver.memory.skills.skill import Skill

TOOL = "recall"
"""Name of the tool, and of the tag in the tags dialect."""

MOST_LISTED = 60
MAX_LINE = 200

_ALL = {"", "*", "all", "list", "skills", "?"}


def answer_recall(library: Library, action: Recall) -> RecallResult:
    """Return the skill that the query means, or a list to choose from if several or none fit."""
    query = action.query.strip()
    skill = library.skill(query)
    if skill is None and query.lower() not in _ALL:
        near = _nearest(library.skills, query)
        skill = near[0] if len(near) == 1 else None
        if skill is None:
            listed = near or library.skills
            text = catalogue(listed, unknown="" if near else query[:MAX_LINE])
            return RecallResult(content=text, about="list", why="asked for")
    if skill is None:
        return RecallResult(content=catalogue(library.skills), about="list", why="asked for")
    return RecallResult(
        content=skill.body,
        about="skill",
        name=skill.name,
        sources=(skill.source,),
        why="asked for",
    )


def catalogue(skills: Sequence[Skill], unknown: str = "") -> str:
    """Return the list of skills with their descriptions, in the order given.

    unknown: a query that matched no skill, to say so.
    """
    listed = [(s.name, " ".join(s.description.split())[:MAX_LINE]) for s in skills[:MOST_LISTED]]
    more = max(0, len(skills) - MOST_LISTED)
    return render("agent/skill_list.md.j2", skills=listed, more=more, unknown=unknown).strip()


def _nearest(skills: Sequence[Skill], query: str) -> list[Skill]:
    """Return the skills that share most words with the query in name, description and triggers. A
    word in the name counts twice."""
    wanted = _words_in(query)
    scores = [(_score(skill, wanted), skill) for skill in skills]
    best = max((score for score, _ in scores), default=0)
    return [skill for score, skill in scores if score == best] if best else []


def _score(skill: Skill, wanted: set[str]) -> int:
    in_name = wanted & _words_in(skill.name)
    about = wanted & _words_in(" ".join((skill.description, *skill.triggers)))
    return 2 * len(in_name) + len(about - in_name)


def _words_in(text: str) -> set[str]:
    """Return the words in lower case and without a plural `s`, so that `tests` finds `test`."""
    words = re.findall(r"[a-z0-9+#]{2,}", text.lower())
    return {word.removesuffix("s") if len(word) > 3 else word for word in words}
