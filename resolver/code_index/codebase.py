"""Holds the code of one commit in the worker process and answers questions about it. It depends
neither on where the code comes from nor on who asks."""

import difflib
import heapq
import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache

from resolver.code_index.answers import (
    CodeExcerpt,
    DefinitionItem,
    TermResult,
    WalkResult,
    WalkStep,
)
from resolver.code_index.graph import MAX_FOLDER_DEPTH, ROOT, Graph, Step
from resolver.code_index.languages import language_of
from resolver.code_index.source import Entity, SourceFile, read_source

MAX_LINES = 200
"""Maximum number of lines of code in the answer for one term."""

MAX_LINE_CHARACTERS = 400
MAX_DEFINITIONS = 15
MAX_OUTLINE_ENTRIES = 80
MAX_WALK_STEPS = 200
MAX_PASSAGES = 5
_PASSAGE_LINES = 8
_CONTEXT_LINES = 15
_LINE_REFERENCE = re.compile(r"(.+):([1-9]\d{0,6})(?:-([1-9]\d{0,6}))?")
_WORD = re.compile(r"\w{2,80}")
_WORD_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]{2,}|\d{2,}")
_MAX_QUERY_WORDS = 40
_MAX_SIMILAR = 5_000


class CodeBase:
    """The index in memory. Call `add` for each file, then `build`, then ask questions."""

    def __init__(self) -> None:
        self._sources: dict[str, tuple[SourceFile, int]] = {}
        self._texts: dict[str, bytes] = {}
        self._graph = Graph({})
        self._entities_by_file: dict[str, list[Entity]] = {}
        self._lines = lru_cache(maxsize=4)(self._read_lines)

    def add(self, path: str, content: bytes, is_late: Callable[[], bool]) -> bool:
        """Add a file, and return False if something of it is missing.

        A file in an unknown language, or one whose parsing was given up because of `is_late`, is
        found only by its words. A binary file is left out.
        """
        if b"\0" in content[:8000]:
            return True
        language = language_of(path)
        source = read_source(path, content, language, is_late) if language else SourceFile()
        lines = content.count(b"\n") + (not content.endswith(b"\n") if content else 0)
        self._sources[path] = source, lines
        self._texts[path] = content
        return source.complete

    def build(self) -> int:
        """Build the graph from the added files, and return their number."""
        self._graph = Graph(self._sources)
        self._entities_by_file = {
            path: sorted(source.entities, key=lambda e: (e.start, -e.end))
            for path, (source, _) in self._sources.items()
        }
        self._sources = {}
        return len(self._texts)

    def search(self, terms: Sequence[str], path_prefix: str) -> list[TermResult]:
        """Return what was found for each term in the folder or file `path_prefix`, which is empty
        for all."""
        path = self._relative_path(path_prefix.strip())
        folder = f"{path}/" if path and path not in self._texts else path
        return [self._search(term.strip(), folder) for term in terms]

    def explore(
        self,
        starts: Sequence[str],
        directions: Sequence[str],
        depth: int,
        kinds: Collection[str],
    ) -> list[WalkResult]:
        """Return the walks from each start, in each direction: upstream or downstream."""
        limit = max(20, MAX_WALK_STEPS // max(1, len(starts) * len(directions)))
        walks: list[WalkResult] = []
        for start in starts:
            node, similar = self._find_node(start.strip())
            for direction in directions if node else directions[:1]:
                found = (
                    self._graph.walk(node, direction == "upstream", depth, kinds) if node else ()
                )
                steps = list(itertools.islice(found, limit + 1))
                walks.append(
                    WalkResult(
                        start=start,
                        direction=direction,
                        node=self._item(self._graph.entities[node]) if node else None,
                        steps=[self._walk_step(step) for step in steps[:limit]],
                        cut=len(steps) > limit,
                        similar=similar,
                    )
                )
        return walks

    def _walk_step(self, step: Step) -> WalkStep:
        return WalkStep(
            level=step.level,
            edge=step.edge.kind,
            node=self._item(step.node),
            guessed=step.edge.guessed,
            again=step.is_repeated,
        )

    def _item(self, entity: Entity) -> DefinitionItem:
        line = None
        if entity.name:
            line = next(iter(self._lines(entity.path)[entity.start - 1 :]), "").strip()
        return DefinitionItem(
            kind=entity.kind, id=entity.id, start=entity.start, end=entity.end, line=line
        )

    def _find_node(self, name: str) -> tuple[str | None, list[str]]:
        """Return the id that `name` refers to, or None and the ids that may be meant."""
        entities = self._graph.entities
        plain = self._relative_path(name)
        for candidate in (name, plain, f"{plain}/", ROOT if name in {"", "."} else name):
            if candidate in entities:
                return candidate, []
        file_path, _, qualified_name = plain.rpartition("::")
        matches = self._find_named(qualified_name, file_path) or self._find_named(plain)
        if len(matches) == 1:
            return matches[0].id, []
        return None, [entity.id for entity in matches[:MAX_DEFINITIONS]]

    def _relative_path(self, text: str) -> str:
        """Return the path relative to the repository. Tracebacks contain absolute paths of a
        sandbox."""
        reference = text.removeprefix("./").rstrip("/")
        if not reference.startswith("/"):
            return reference
        path = re.split(r"::|:\d", reference)[0]
        parts = path.strip("/").split("/")[:MAX_FOLDER_DEPTH]
        for suffix in ("/".join(parts[start:]) for start in range(len(parts))):
            if suffix in self._texts or f"{suffix}/" in self._graph.entities:
                return suffix + reference[len(path) :]
        return reference.strip("/")

    def _find_named(self, name: str, path_prefix: str = "") -> list[Entity]:
        """Return the definitions of that name, qualified or not, in paths that begin with the
        prefix.

        These are the exact matches, else those that differ in case, else those that contain the
        name, else those with a similar spelling.
        """
        entities = self._graph.entities.values()
        named = [(e.name, e) for e in entities if e.name and e.path.startswith(path_prefix)]
        query = name.strip().replace("::", ".").replace("#", ".")[:200]
        lower_query = query.lower()
        tests: tuple[Callable[[str], bool], ...] = (
            lambda n: n == query or n.endswith(f".{query}"),
            lambda n: n.lower() == lower_query or n.lower().endswith(f".{lower_query}"),
            lambda n: bool(lower_query) and lower_query in n.lower(),
        )
        for test in tests:
            if matches := [entity for name, entity in named if test(name)]:
                return matches
        # The slow comparison is for names of similar length and with the same first letter.
        short = query.rpartition(".")[2]
        close = sorted(
            {
                entity.short_name
                for _, entity in named
                if entity.short_name[:1].lower() == short[:1].lower()
                and abs(len(entity.short_name) - len(short)) < 4
            }
        )
        similar = difflib.get_close_matches(short, close[:_MAX_SIMILAR], 5, 0.75)
        return [entity for name in similar for _, entity in named if entity.short_name == name]

    def _search(self, term: str, path_prefix: str) -> TermResult:
        entities = self._graph.entities
        reference = self._relative_path(term)
        entity = entities.get(reference) or entities.get(f"{reference}/")
        if entity is not None and entity.path.startswith(path_prefix):
            return self._show_entity(term, entity)
        if (match := _LINE_REFERENCE.fullmatch(reference)) and match[1] in self._texts:
            excerpt = self._requested_lines(match[1], int(match[2]), match[3])
            return TermResult(term=term, how="code", definitions=[], more=0, excerpts=[excerpt])
        path, _, qualified_name = reference.rpartition("::")
        prefix, name = (path, qualified_name) if path in entities else (path_prefix, term)
        matches = self._find_named(name, prefix)
        unqualified = re.split(r"[.#:]+", term.lower())[-1]
        is_exact = bool(matches) and matches[0].short_name.lower() == unqualified
        return TermResult(
            term=term,
            how="named" if is_exact else "similar" if matches else "words",
            definitions=[self._item(entity) for entity in matches[:MAX_DEFINITIONS]],
            more=max(0, len(matches) - MAX_DEFINITIONS),
            excerpts=[
                self._excerpt(file, first, first + _PASSAGE_LINES - 1, line)
                for file, line in self._find_passages(term, path_prefix)
                for first in (max(1, line - _PASSAGE_LINES // 2),)
            ],
        )

    def _show_entity(self, term: str, entity: Entity) -> TermResult:
        """Return the code of a definition, the definitions of a file, its first lines if it has
        none, or the content of a folder."""
        if entity.kind == "directory":
            edges = self._graph.edges(entity.path)
            content = [self._graph.entities[edge.end] for edge in edges]
        else:
            content = [] if entity.name else self._entities_by_file[entity.path]
        shows_code = not content and entity.kind != "directory"
        line = entity.start if entity.name else None
        return TermResult(
            term=term,
            how="code" if entity.name else "file",
            definitions=[self._item(each) for each in content[:MAX_OUTLINE_ENTRIES]],
            more=max(0, len(content) - MAX_OUTLINE_ENTRIES),
            excerpts=[self._excerpt(entity.path, entity.start, entity.end, line)]
            if shows_code
            else [],
        )

    def _requested_lines(self, path: str, first: int, last: str | None) -> CodeExcerpt:
        """Return the lines that were asked for. For a single line, return the definition that
        contains it, or the lines around it."""
        entity = self._enclosing(path, first)
        if last is not None or first > len(self._lines(path)):
            return self._excerpt(path, first, int(last or first), first)
        if entity is not None and entity.end - entity.start < MAX_LINES:
            return self._excerpt(path, entity.start, entity.end, first)
        start = max(1, first - _CONTEXT_LINES)
        return self._excerpt(path, start, first + _CONTEXT_LINES, first)

    def _excerpt(self, path: str, start: int, end: int, line: int | None) -> CodeExcerpt:
        """Return lines of a file, with the definition that contains `line`."""
        entity = None if line is None else self._enclosing(path, line)
        lines = self._lines(path)[start - 1 : end]
        return CodeExcerpt(
            path=path,
            within=entity.id if entity else None,
            start=start,
            lines=lines[:MAX_LINES],
            left_out=max(0, len(lines) - MAX_LINES),
        )

    def _enclosing(self, path: str, line: int) -> Entity | None:
        """Return the innermost definition that contains the line."""
        entities = self._entities_by_file[path]
        return next((e for e in reversed(entities) if e.start <= line <= e.end), None)

    def _find_passages(self, term: str, path_prefix: str) -> Iterable[tuple[str, int]]:
        """Yield the files that contain the words of the term, best first, each with the line that
        contains most of them."""
        words = _split_words(term)
        texts = {p: text for p, text in self._texts.items() if p.startswith(path_prefix)}
        mean = sum(map(len, texts.values())) / max(1, len(texts)) or 1.0
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for path, text in texts.items():
            lower = path.lower().encode() + b"\n" + text.lower()
            for word in words:
                if count := lower.count(word.encode()):
                    counts[word][path] = count
        # As in BM25, rare words count more, and the frequency saturates, later in a long text.
        scores: dict[str, float] = defaultdict(float)
        for found in counts.values():
            for path, count in found.items():
                saturated = count / (count + 0.3 + 0.9 * len(texts[path]) / mean)
                scores[path] += math.log(1 + len(texts) / len(found)) * saturated
        for path in heapq.nsmallest(MAX_PASSAGES, scores, key=lambda p: (-scores[p], p)):
            lines = [line.lower() for line in self._lines(path)]
            matches = [sum(word in line for word in words) for line in lines]
            yield path, matches.index(max(matches)) + 1

    def _read_lines(self, path: str) -> list[str]:
        text = self._texts[path].decode("utf-8", "replace")
        return [line[:MAX_LINE_CHARACTERS].rstrip("\r") for line in text.split("\n")]


def _split_words(text: str) -> list[str]:
    """Return the words of a text, and the parts of compound words (snake case, camel case), in
    lower case."""
    words = _WORD.findall(text[:2000])
    parts = (part for word in words for part in (word, *_WORD_PART.findall(word)))
    return list(dict.fromkeys(part.lower() for part in parts))[:_MAX_QUERY_WORDS]
