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
from resolver.memory.skills.library import Library
from resolver.memory.skills.skill import Skill

MIN_SIMILARITY = 0.35
"""Minimum cosine similarity of texts on the same topic."""

SIMILARITY_MARGIN = 0.05
"""Maximum difference in similarity to the best match."""

MAX_MATCHES = 2

MEANING_REASON = "it is about the same"


class SkillIndex:
    """Compares a text with each skill's name, description and first 1000 characters.

    warn: called with a sentence for people if the embedding model fails.
    """

    def __init__(self, embedder: Embedder, warn: Callable[[str], None]) -> None:
        self._embedder = embedder
        self._warn = warn

    def nearest(self, text: str, skills: Sequence[Skill]) -> list[tuple[Skill, str]]:
        """See `TopicMatcher` in `recaller.py`. Never raises; a failure finds nothing."""
        if not text.strip() or not skills:
            return []
        descriptions = [f"{s.name}: {s.description}\n{s.body[:1000]}" for s in skills]
        try:
            text_vector, *skill_vectors = self._embedder.vectors([text, *descriptions])
        except ModelError as error:
            self._warn(f"Skills were not looked for by meaning: {error.what}.")
            return []
        by_similarity = sorted(
            (
                (cosine_similarity(text_vector, vector), skill.name, skill)
                for skill, vector in zip(skills, skill_vectors, strict=True)
            ),
            key=lambda match: (-match[0], match[1]),
        )
        min_similarity = max(MIN_SIMILARITY, by_similarity[0][0] - SIMILARITY_MARGIN)
        return [
            (s, f"{MEANING_REASON} ({score:.2f})")
            for score, _, s in by_similarity[:MAX_MATCHES]
            if score >= min_similarity
        ]


class RecordedSkillIndex:
    """Returns the results of a recorded run again, without calling a model."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._reason_by_name = {
            event.query: event.why
            for event in events
            if isinstance(event, Recall) and event.why.startswith(MEANING_REASON)
        }

    def nearest(self, text: str, skills: Sequence[Skill]) -> list[tuple[Skill, str]]:  # noqa: ARG002
        """See `TopicMatcher` in `recaller.py`."""
        return [
            (skill, self._reason_by_name[skill.name])
            for skill in skills
            if skill.name in self._reason_by_name
        ]


RECALL_TOOL = "recall"
"""Name of the tool, and of the tag in the tags dialect."""

MAX_LISTED = 60
MAX_LINE_LENGTH = 200

_LIST_QUERIES = {"", "*", "all", "list", "skills", "?"}


def answer_recall(library: Library, action: Recall) -> RecallResult:
    """Return the skill that the query means, or a list to choose from if several or none fit."""
    query = action.query.strip()
    skill = library.skill(query)
    if skill is None and query.lower() not in _LIST_QUERIES:
        matches = _best_matches(library.skills, query)
        skill = matches[0] if len(matches) == 1 else None
        if skill is None:
            shown_skills = matches or library.skills
            text = render_skill_list(
                shown_skills, unknown="" if matches else query[:MAX_LINE_LENGTH]
            )
            return RecallResult(content=text, about="list", why="asked for")
    if skill is None:
        return RecallResult(
            content=render_skill_list(library.skills), about="list", why="asked for"
        )
    return RecallResult(
        content=skill.body,
        about="skill",
        name=skill.name,
        sources=(skill.source,),
        why="asked for",
    )


def render_skill_list(skills: Sequence[Skill], unknown: str = "") -> str:
    """Return the list of skills with their descriptions, in the order given.

    unknown: a query that matched no skill, to say so.
    """
    entries = [
        (skill.name, " ".join(skill.description.split())[:MAX_LINE_LENGTH])
        for skill in skills[:MAX_LISTED]
    ]
    more = max(0, len(skills) - MAX_LISTED)
    return render("agent/skill_list.md.j2", skills=entries, more=more, unknown=unknown).strip()


def _best_matches(skills: Sequence[Skill], query: str) -> list[Skill]:
    """Return the skills that share most words with the query in name, description and triggers. A
    word in the name counts twice."""
    query_words = _words_in(query)
    scores = [(_score(skill, query_words), skill) for skill in skills]
    best = max((score for score, _ in scores), default=0)
    return [skill for score, skill in scores if score == best] if best else []


def _score(skill: Skill, query_words: set[str]) -> int:
    in_name = query_words & _words_in(skill.name)
    in_description = query_words & _words_in(" ".join((skill.description, *skill.triggers)))
    return 2 * len(in_name) + len(in_description - in_name)


def _words_in(text: str) -> set[str]:
    """Return the words in lower case and without a plural `s`, so that `tests` finds `test`."""
    words = re.findall(r"[a-z0-9+#]{2,}", text.lower())
    return {word.removesuffix("s") if len(word) > 3 else word for word in words}
