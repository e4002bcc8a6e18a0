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

LONGEST_LINE = 400
"""Number of characters of a line that are used."""

_WORD = re.compile(r"[A-Za-z0-9_]{2,80}")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_MOST_ALIKE = 5_000
_SHIFT, _MOST_TIMES = 6, 63
_K1, _B = 1.2, 0.75


@dataclass(frozen=True)
class FoundDefinition:
    """Lines of a file that contain the words of a query. Lines count from 1, both ends
    inclusive."""

    path: str
    start: int
    end: int
    score: float


def find_named(entities: Iterable[Entity], name: str, most: int = 20) -> tuple[Entity, ...]:
    """Return the definitions of that name, qualified or not.

    These are the exact matches, else those that differ in case, else those that contain the name,
    else those with a similar spelling.
    """
    every = [entity for entity in entities if entity.name]
    wanted = name.strip().replace("::", ".").replace("#", ".")[:200]
    low = wanted.lower()
    tests = (
        lambda e: e.name == wanted or e.name.endswith(f".{wanted}"),
        lambda e: e.name.lower() == low or e.short_name.lower() == low,
        lambda e: bool(low) and low in e.name.lower(),
    )
    for test in tests:
        if found := [entity for entity in every if test(entity)]:
            return tuple(found[:most])
    short = wanted.rpartition(".")[2]
    near = difflib.get_close_matches(short, _alike(every, short), 5, 0.75)
    return tuple(entity for n in near for entity in every if entity.short_name == n)[:most]


def _alike(entities: Iterable[Entity], name: str) -> list[str]:
    """Return the names that are worth the slow comparison: of similar length and with the same
    first letter."""
    short = {entity.short_name for entity in entities}
    first, length = name[:1].lower(), len(name)
    alike = sorted(n for n in short if n[:1].lower() == first and abs(len(n) - length) < 4)
    return alike[:_MOST_ALIKE]


def split_identifier_words(text: str) -> list[str]:
    """Return the words of a text, and the parts of compound words (snake case, camel case), in
    lower case."""
    return [part for word in _WORD.findall(text) for part in _parts(word)]


@lru_cache(maxsize=100_000)
def _parts(word: str) -> tuple[str, ...]:
    parts = _PART.findall(word)
    inner = (part.lower() for part in parts if len(part) > 1) if len(parts) > 1 else ()
    return (word.lower(), *inner)


class WordIndex:
    """An inverted index. A posting is one integer: the number of the window and the count of the
    word."""

    def __init__(self) -> None:
        self._windows: list[tuple[str, int, int, int]] = []
        self._postings: dict[str, array[int]] = defaultdict(lambda: array("Q"))
        self._length = 0

    def add(self, path: str, text: str) -> None:
        """Add a file. Of very long lines only the beginning is indexed."""
        lines = [line[:LONGEST_LINE] for line in text.split("\n")]
        for first in range(0, len(lines), WINDOW):
            part = lines[first : first + WINDOW]
            counts = Counter(split_identifier_words("\n".join(part)))
            if first == 0:
                counts.update(split_identifier_words(path))
            number = len(self._windows)
            length = counts.total()
            self._length += length
            self._windows.append((path, first + 1, first + len(part), length))
            for word, times in counts.items():
                self._postings[word].append(number << _SHIFT | min(times, _MOST_TIMES))

    def find(self, query: str, most: int = 10, below: str = "") -> tuple[FoundDefinition, ...]:
        """Return the best windows for the words of the query, best first.

        below: only paths that begin with it.
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
            rarity = math.log(1 + (total - len(postings) + 0.5) / (len(postings) + 0.5))
            for posting in postings:
                number, times = posting >> _SHIFT, posting & _MOST_TIMES
                norm = _K1 * (1 - _B + _B * self._windows[number][3] / (mean or 1.0))
                scores[number] += rarity * times * (_K1 + 1) / (times + norm)
        fitting = (n for n in scores if self._windows[n][0].startswith(below))
        best = heapq.nsmallest(most, fitting, key=lambda number: (-scores[number], number))
        return tuple(FoundDefinition(*self._windows[n][:3], round(scores[n], 3)) for n in best)
