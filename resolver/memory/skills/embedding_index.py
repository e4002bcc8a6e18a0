"""Skills found by what a text is about: a small index of vectors, and its recorded answers."""

from collections.abc import Callable, Iterable, Sequence

from resolver.errors import ModelError
from resolver.events.actions import Recall
from resolver.events.log import Event
from resolver.llm.embeddings import Embedder, cosine_similarity
from resolver.memory.skills.skill import Skill

LEAST = 0.35
"""Likeness below which two texts are about different things."""

NEAR = 0.05
"""What is this much less alike than the best is left out."""

MOST = 2

REASON = "it is about the same"


class Index:
    """Compares the text with each skill's name, description and first words.

    told: what a person is told when the model can't be asked.
    """

    def __init__(self, embedder: Embedder, told: Callable[[str], None]) -> None:
        self._embedder = embedder
        self._told = told

    def nearest(self, text: str, skills: Sequence[Skill]) -> list[tuple[Skill, str]]:
        """See `resolver.memory.skills.recalling.Meaning`. Never raises: nothing is found then."""
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
    """Gives the answers of a recorded run again: nothing is asked anew."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._found = {
            event.query: event.why
            for event in events
            if isinstance(event, Recall) and event.why.startswith(REASON)
        }

    def nearest(self, text: str, skills: Sequence[Skill]) -> list[tuple[Skill, str]]:  # noqa: ARG002
        """See `resolver.memory.skills.recalling.Meaning`."""
        return [(skill, self._found[skill.name]) for skill in skills if skill.name in self._found]
