"""Searches definitions by name (exact, then similar) and text by words (BM25 over windows of
lines)."""

import difflib
import heapq
import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from resolver.code_index.source import Entity

WINDOW = 40
"""Number of lines in a window, which is one document of the search by words."""

MAX_LINE_CHARACTERS = 400
"""Number of characters of a line that are used."""

_WORD = re.compile(r"[A-Za-z0-9_]{2,80}")
_WORD_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_MAX_SIMILAR = 5_000
_COUNT_BITS, _MAX_COUNT = 6, 63
_K1, _B = 1.2, 0.75


@dataclass(frozen=True)
class FoundPassage:
    """Lines of a file that contain the words of a query. Lines count from 1, both ends
    inclusive."""

    path: str
    start: int
    end: int
    score: float


def find_named(entities: Iterable[Entity], name: str, limit: int = 20) -> tuple[Entity, ...]:
    """Return the definitions of that name, qualified or not.

    These are the exact matches, else those that differ in case, else those that contain the name,
    else those with a similar spelling.
    """
    named = [entity for entity in entities if entity.name]
    query = name.strip().replace("::", ".").replace("#", ".")[:200]
    lower_query = query.lower()
    tests = (
        lambda e: e.name == query or e.name.endswith(f".{query}"),
        lambda e: e.name.lower() == lower_query or e.short_name.lower() == lower_query,
        lambda e: bool(lower_query) and lower_query in e.name.lower(),
    )
    for test in tests:
        if matches := [entity for entity in named if test(entity)]:
            return tuple(matches[:limit])
    short_query = query.rpartition(".")[2]
    similar = difflib.get_close_matches(short_query, _similar_names(named, short_query), 5, 0.75)
    return tuple(
        entity for similar_name in similar for entity in named if entity.short_name == similar_name
    )[:limit]


def _similar_names(entities: Iterable[Entity], name: str) -> list[str]:
    """Return the names that are worth the slow comparison: of similar length and with the same
    first letter."""
    short_names = {entity.short_name for entity in entities}
    first, length = name[:1].lower(), len(name)
    similar = sorted(n for n in short_names if n[:1].lower() == first and abs(len(n) - length) < 4)
    return similar[:_MAX_SIMILAR]


def split_identifier_words(text: str) -> list[str]:
    """Return the words of a text, and the parts of compound words (snake case, camel case), in
    lower case."""
    return [part for word in _WORD.findall(text) for part in _split_word(word)]


@lru_cache(maxsize=100_000)
def _split_word(word: str) -> tuple[str, ...]:
    parts = _WORD_PART.findall(word)
    sub_words = (part.lower() for part in parts if len(part) > 1) if len(parts) > 1 else ()
    return (word.lower(), *sub_words)


class WordIndex:
    """An inverted index. A posting is one integer: the number of the window and the count of the
    word."""

    def __init__(self) -> None:
        self._windows: list[tuple[str, int, int, int]] = []
        self._postings: dict[str, array[int]] = defaultdict(lambda: array("Q"))
        self._length = 0

    def add(self, path: str, text: str) -> None:
        """Add a file. Of very long lines only the beginning is indexed."""
        lines = [line[:MAX_LINE_CHARACTERS] for line in text.split("\n")]
        for first in range(0, len(lines), WINDOW):
            window = lines[first : first + WINDOW]
            counts = Counter(split_identifier_words("\n".join(window)))
            if first == 0:
                counts.update(split_identifier_words(path))
            number = len(self._windows)
            length = counts.total()
            self._length += length
            self._windows.append((path, first + 1, first + len(window), length))
            for word, count in counts.items():
                self._postings[word].append(number << _COUNT_BITS | min(count, _MAX_COUNT))

    def find(self, query: str, limit: int = 10, path_prefix: str = "") -> tuple[FoundPassage, ...]:
        """Return the best windows for the words of the query, best first.

        path_prefix: only paths that begin with it.
        """
        scores: dict[int, float] = defaultdict(float)
        total = len(self._windows)
        mean = self._length / total if total else 1.0
        for word in dict.fromkeys(split_identifier_words(query[:2000])):
            postings = self._postings.get(word)
            if not postings:
                continue
            # Okapi BM25: inverse document frequency times a term frequency that saturates (_K1) and
            # is normalized by the window's length (_B). See
            # https://en.wikipedia.org/wiki/Okapi_BM25
            inverse_frequency = math.log(1 + (total - len(postings) + 0.5) / (len(postings) + 0.5))
            for posting in postings:
                number, count = posting >> _COUNT_BITS, posting & _MAX_COUNT
                normalization = _K1 * (1 - _B + _B * self._windows[number][3] / (mean or 1.0))
                scores[number] += inverse_frequency * count * (_K1 + 1) / (count + normalization)
        candidates = (n for n in scores if self._windows[n][0].startswith(path_prefix))
        best = heapq.nsmallest(limit, candidates, key=lambda number: (-scores[number], number))
        return tuple(FoundPassage(*self._windows[n][:3], round(scores[n], 3)) for n in best)
