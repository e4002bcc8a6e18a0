"""Finds skills by topic with text embeddings, and replays the results of a recorded run."""

from collections.abc import Callable, Iterable, Sequence

from resolver.errors import ModelError
from resolver.events.actions import Recall
from resolver.events.log import Event
from resolver.llm.embeddings import Embedder, cosine_similarity
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
