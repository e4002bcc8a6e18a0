"""Holds the code of one commit and answers questions about it. It depends neither on where the code
comes from nor on who asks."""

import difflib
import heapq
import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from resolver.code_index.answers import CodeExcerpt, Entity, SourceFile, TermResult, WalkResult
from resolver.code_index.graph import MAX_FOLDER_DEPTH, ROOT, Graph, split_source

MAX_LINES = 200
"""Maximum number of lines of code in the answer for one term."""

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


class CodeBase:
    """The index in memory. texts: content of the files by path. sources: the facts about those that
    were parsed; the others are found by their words only."""

    def __init__(self, texts: Mapping[str, bytes], sources: Mapping[str, SourceFile]) -> None:
        self._texts = texts
        self._graph = Graph(texts, sources)
        self._entities_by_file: dict[str, list[Entity]] = defaultdict(list)
        for entity in sorted(self._graph.entities.values(), key=lambda e: (e.start, -e.end)):
            if entity.name:
                self._entities_by_file[entity.path].append(entity)
        self._lines = lru_cache(maxsize=4)(lambda path: split_source(texts[path]))

    def search(self, terms: Sequence[str], path_prefix: str) -> list[TermResult]:
        """Return what was found for each term (a name, an id, PATH:LINE, words) in the folder or
        file `path_prefix`, which is empty for all."""
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
        """Return the walks over the graph from each start (an id, a path, a unique name), in each
        direction: upstream or downstream."""
        limit = max(20, MAX_WALK_STEPS // max(1, len(starts) * len(directions)))
        walks: list[WalkResult] = []
        for start in starts:
            node, similar = self._find_node(start.strip())
            if node is None:
                walks.append(WalkResult(start, directions[0], None, [], False, similar))
                continue
            for direction in directions:
                found = self._graph.walk(node.id, direction == "upstream", depth, kinds)
                steps = list(itertools.islice(found, limit + 1))
                cut = len(steps) > limit
                walks.append(WalkResult(start, direction, node, steps[:limit], cut, similar))
        return walks

    def _find_node(self, name: str) -> tuple[Entity | None, list[str]]:
        """Return the entity that `name` refers to, or None and the ids that may be meant."""
        path = self._relative_path(name)
        for candidate in (name, path, f"{path}/", ROOT if name in {"", "."} else name):
            if entity := self._graph.entities.get(candidate):
                return entity, []
        file_path, _, qualified_name = path.rpartition("::")
        matches = self._find_named(qualified_name, file_path) or self._find_named(path)
        if len(matches) == 1:
            return matches[0], []
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
        named = [(f".{e.name}", e) for e in entities if e.name and e.path.startswith(path_prefix)]
        query = name.strip().replace("::", ".").replace("#", ".")[:200]
        lower_query = query.lower()
        tests: tuple[Callable[[str], bool], ...] = (
            lambda n: n.endswith(f".{query}"),
            lambda n: n.lower().endswith(f".{lower_query}"),
            lambda n: bool(lower_query) and lower_query in n.lower(),
        )
        for test in tests:
            if matches := [entity for name, entity in named if test(name)]:
                return matches
        # The slow comparison is for names with the same first letter.
        short = query.rpartition(".")[2]
        names = {entity.short_name for _, entity in named}
        close = [name for name in names if name[:1].lower() == short[:1].lower()]
        similar = difflib.get_close_matches(short, close, 5, 0.75)
        return [entity for name in similar for _, entity in named if entity.short_name == name]

    def _search(self, term: str, path_prefix: str) -> TermResult:
        entities = self._graph.entities
        reference = self._relative_path(term)
        entity = entities.get(reference) or entities.get(f"{reference}/")
        if entity is not None and entity.path.startswith(path_prefix):
            return self._show_entity(term, entity)
        if (match := _LINE_REFERENCE.fullmatch(reference)) and match[1] in self._texts:
            excerpt = self._requested_lines(match[1], int(match[2]), match[3])
            return TermResult(term, "code", [], 0, [excerpt])
        path, _, qualified_name = reference.rpartition("::")
        prefix, name = (path, qualified_name) if path in entities else (path_prefix, term)
        matches = self._find_named(name, prefix)
        unqualified = re.split(r"[.#:]+", term.lower())[-1]
        is_exact = bool(matches) and matches[0].short_name.lower() == unqualified
        return TermResult(
            term,
            "named" if is_exact else "similar" if matches else "words",
            matches[:MAX_DEFINITIONS],
            max(0, len(matches) - MAX_DEFINITIONS),
            list(self._find_passages(term, path_prefix)),
        )

    def _show_entity(self, term: str, entity: Entity) -> TermResult:
        """Return the code of a definition, the definitions of a file, its first lines if it has
        none, or the content of a folder."""
        if entity.name:
            excerpt = self._excerpt(entity.path, entity.start, entity.end, entity.start)
            return TermResult(term, "code", [], 0, [excerpt])
        content = self._entities_by_file.get(entity.path, [])
        if entity.kind == "directory":
            content = [self._graph.entities[node] for node, *_ in self._graph.edges(entity.id)]
        excerpts = []
        if entity.kind == "file" and not content:
            excerpts = [self._excerpt(entity.path, 1, entity.end, None)]
        more = max(0, len(content) - MAX_OUTLINE_ENTRIES)
        return TermResult(term, "file", content[:MAX_OUTLINE_ENTRIES], more, excerpts)

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
        left_out = max(0, len(lines) - MAX_LINES)
        return CodeExcerpt(path, entity.id if entity else None, start, lines[:MAX_LINES], left_out)

    def _enclosing(self, path: str, line: int) -> Entity | None:
        """Return the innermost definition that contains the line."""
        entities = self._entities_by_file.get(path, [])
        return next((e for e in reversed(entities) if e.start <= line <= e.end), None)

    def _find_passages(self, term: str, path_prefix: str) -> Iterator[CodeExcerpt]:
        """Yield lines of the files that contain the words of the term, best first: those around the
        line that contains most of them."""
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
            matches = [sum(word in line for word in words) for line in lines] or [0]
            line = matches.index(max(matches)) + 1
            first = max(1, line - _PASSAGE_LINES // 2)
            yield self._excerpt(path, first, first + _PASSAGE_LINES - 1, line)


def _split_words(text: str) -> list[str]:
    """Return the words of a text, and the parts of compound words (snake case, camel case), in
    lower case."""
    words = _WORD.findall(text[:2000])
    parts = (part for word in words for part in (word, *_WORD_PART.findall(word)))
    return list(dict.fromkeys(part.lower() for part in parts))[:_MAX_QUERY_WORDS]
