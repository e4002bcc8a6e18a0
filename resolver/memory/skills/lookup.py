"""Answers an agent that asks for a skill by name or by keywords, and finds skills by topic.

Topics are compared with text embeddings; the results of a recorded run are replayed.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from resolver.config.templates import render
from resolver.errors import ModelError
from resolver.events.actions import Recall
from resolver.events.log import Event
from resolver.events.observations import RecallResult
from resolver.llm.embeddings import Embedder, cosine_similarity
from resolver.memory.skills.reading import Library
from resolver.memory.skills.skill import Skill

LEAST = 0.35
"""Minimum cosine similarity of texts on the same topic."""

NEAR = 0.05
"""Maximum difference in similarity to the best match."""

MOST = 2

REASON = "it is about the same"


class Index:
    """Compares a text with each skill's name, description and first 1000 characters.

    told: called with a sentence for people if the embedding model fails.
    """

    def __init__(self, embedder: Embedder, told: Callable[[str], None]) -> None:
        self._embedder = embedder
        self._told = told

    def nearest(self, text: str, skills: Sequence[Skill]) -> list[tuple[Skill, str]]:
        """See `resolver.memory.skills.recalling.Meaning`. Never raises; a failure finds nothing."""
        if not text.strip() or not skills:
            return []
        abouts = [f"{s.name}: {s.description}\n{s.body[:1000]}" for s in skills]
        try:
            wanted, *known = self._embedder.vectors([text, *abouts])
        except ModelError as error:
            self._told(f"Skills were not looked for by meaning: {error.what}.")
            return []
        alike = sorted(
            (
                (cosine_similarity(wanted, vector), skill.name, skill)
                for skill, vector in zip(skills, known, strict=True)
            ),
            key=lambda one: (-one[0], one[1]),
        )
        least = max(LEAST, alike[0][0] - NEAR)
        return [(s, f"{REASON} ({score:.2f})") for score, _, s in alike[:MOST] if score >= least]


class RecordedIndex:
    """Returns the results of a recorded run again, without calling a model."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._found = {
            event.query: event.why
            for event in events
            if isinstance(event, Recall) and event.why.startswith(REASON)
        }

    def nearest(self, text: str, skills: Sequence[Skill]) -> list[tuple[Skill, str]]:  # noqa: ARG002
        """See `resolver.memory.skills.recalling.Meaning`."""
        return [(skill, self._found[skill.name]) for skill in skills if skill.name in self._found]


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
