"""What the agent gets when it asks for a skill itself, by its name or by words."""

import re
from collections.abc import Sequence

from resolver.config.templates import render
from resolver.events.actions import Recall
from resolver.events.observations import RecallResult
from resolver.memory.skills.reading import Library
from resolver.memory.skills.skill import Skill

TOOL = "recall"
"""Name of the tool, and of the tag."""

MOST_LISTED = 60
MAX_LINE = 200

_ALL = {"", "*", "all", "list", "skills", "?"}


def answer_recall(library: Library, action: Recall) -> RecallResult:
    """The skill that is meant; where several may be, or none is, the list to choose from."""
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
    """Names and descriptions, nearest to the repository first. unknown: words that fit none."""
    listed = [(s.name, " ".join(s.description.split())[:MAX_LINE]) for s in skills[:MOST_LISTED]]
    more = max(0, len(skills) - MOST_LISTED)
    return render("agent/skill_list.md.j2", skills=listed, more=more, unknown=unknown).strip()


def _nearest(skills: Sequence[Skill], query: str) -> list[Skill]:
    """The skills that share most words with the query, in name, description and triggers."""
    wanted = _words_in(query)
    scores = [(_score(skill, wanted), skill) for skill in skills]
    best = max((score for score, _ in scores), default=0)
    return [skill for score, skill in scores if score == best] if best else []


def _score(skill: Skill, wanted: set[str]) -> int:
    in_name = wanted & _words_in(skill.name)
    about = wanted & _words_in(" ".join((skill.description, *skill.triggers)))
    return 2 * len(in_name) + len(about - in_name)


def _words_in(text: str) -> set[str]:
    """Its words, without the endings of plurals: `tests` finds `test`."""
    words = re.findall(r"[a-z0-9+#]{2,}", text.lower())
    return {word.removesuffix("s") if len(word) > 3 else word for word in words}
