"""Holds the code of one commit in the worker process (sources, graph, words) and answers questions
about it. It depends neither on where the code comes from nor on who asks."""

import bisect
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

from resolver.code_index.answers import BuiltIndex, CodeExcerpt, Definition, TermResult, WalkResult
from resolver.code_index.grammars import syntax_of
from resolver.code_index.graph import (
    MAX_FOLDER_DEPTH,
    MAX_WALK_ROWS,
    ROOT,
    Direction,
    EdgeKind,
    Graph,
    build_graph,
    explore,
)
from resolver.code_index.search import (
    MAX_LINE_CHARACTERS,
    WordIndex,
    find_named,
    split_identifier_words,
)
from resolver.code_index.source import Entity, SourceFile, count_lines, read_source

MAX_LINES = 200
"""Maximum number of lines of code in the answer for one term."""

MAX_DEFINITIONS = 15
MAX_OUTLINE_ENTRIES = 80
MAX_PASSAGES = 5
_PASSAGE_LINES = 8
_CONTEXT_LINES = 15
_LINE_REFERENCE = re.compile(r"(.+):([1-9]\d{0,6})(?:-([1-9]\d{0,6}))?")


class CodeBase:
    """The index in memory. Call `add` for each file, then `build`, then ask questions."""

    def __init__(self) -> None:
        self._sources: list[SourceFile] = []
        self._texts: dict[str, bytes] = {}
        self._word_index = WordIndex()
        self._graph = Graph({}, ())
        self._entities_by_file: dict[str, list[Entity]] = {}
        self._left_out = 0
        self._last_decompressed: tuple[str, list[str]] = ("", [])

    def add(self, path: str, content: bytes, is_late: Callable[[], bool]) -> None:
        """Add a file.

        A file in an unknown language, or one whose parsing was given up because of `is_late`, is
        found only by its words. A binary file is left out.
        """
        if b"\0" in content[:8000]:
            return
        syntax = syntax_of(path)
        if syntax is None:
            source = SourceFile(path, "", count_lines(content))
        else:
            source = read_source(path, content, syntax, is_late)
        self._left_out += not source.complete
        self._sources.append(source)
        self._texts[path] = zlib.compress(content, 1)
        self._word_index.add(path, content.decode("utf-8", "replace"))

    def leave_out(self, files: int) -> None:
        """Count files that a limit left out."""
        self._left_out += files

    def build(self, is_filtered: bool) -> BuiltIndex:
        """Build the graph from the added files. is_filtered: returned as part of the result."""
        self._sources.sort(key=lambda source: source.path)
        self._graph = build_graph(self._sources)
        entities_by_file: dict[str, list[Entity]] = defaultdict(list)
        for entity in self._graph.entities.values():
            if entity.name:
                entities_by_file[entity.path].append(entity)
        self._entities_by_file = {
            path: sorted(entities, key=lambda e: (e.start, -e.end))
            for path, entities in entities_by_file.items()
        }
        files = len(self._sources)
        self._sources = []
        return BuiltIndex(files, len(self._graph.entities), self._left_out, is_filtered)

    def search(self, terms: Sequence[str], path_prefix: str) -> tuple[TermResult, ...]:
        """Return what was found for each term in the folder or file `path_prefix` ("" for all)."""
        path = self._relative_path(path_prefix.strip())
        folder = f"{path}/" if path and path not in self._texts else path
        return tuple(self._search(term.strip(), folder) for term in terms)

    def explore(
        self,
        starts: Sequence[str],
        directions: Sequence[Direction],
        depth: int,
        kinds: Collection[EdgeKind],
    ) -> tuple[WalkResult, ...]:
        """Return the walks from each start, in each direction."""
        max_rows = max(20, MAX_WALK_ROWS // max(1, len(starts) * len(directions)))
        walks: list[WalkResult] = []
        for start in starts:
            node, similar = self._node(start.strip())
            if node is None:
                walks.append(WalkResult(start, similar=similar))
                continue
            for direction in directions:
                rows, is_truncated = explore(self._graph, node, direction, depth, kinds, max_rows)
                walks.append(
                    WalkResult(start, direction, self._definition(node), rows, is_truncated)
                )
        return tuple(walks)

    def _node(self, name: str) -> tuple[str | None, tuple[str, ...]]:
        """Return the id that `name` refers to, or None and the ids that may be meant."""
        entities = self._graph.entities
        plain = self._relative_path(name)
        candidates = (name, plain, f"{plain}/", ROOT if name in {"", "."} else "")
        for candidate in candidates:
            if candidate in entities:
                return candidate, ()
        file_path, _, qualified_name = plain.rpartition("::")
        matches = find_named(self._entities_below(file_path), qualified_name) or find_named(
            entities.values(), plain
        )
        if len(matches) == 1:
            return matches[0].id, ()
        return None, tuple(entity.id for entity in matches[:MAX_DEFINITIONS])

    def _relative_path(self, text: str) -> str:
        """Return the path relative to the repository. Tracebacks contain absolute paths of a
        sandbox."""
        reference = text.removeprefix("./").rstrip("/")
        if not reference.startswith("/"):
            return reference
        path = re.split(r"::|:\d", reference)[0]
        parts = path.strip("/").split("/")[:MAX_FOLDER_DEPTH]
        suffixes = ("/".join(parts[start:]) for start in range(len(parts)))
        known_suffixes = (
            suffix
            for suffix in suffixes
            if suffix in self._texts or f"{suffix}/" in self._graph.entities
        )
        suffix = next(known_suffixes, None)
        return reference.strip("/") if suffix is None else suffix + reference[len(path) :]

    def _entities_below(self, path_prefix: str) -> Iterable[Entity]:
        entities = self._graph.entities.values()
        return (entity for entity in entities if entity.path.startswith(path_prefix))

    def _search(self, term: str, path_prefix: str) -> TermResult:
        entities = self._graph.entities
        reference = self._relative_path(term)
        entity = entities.get(reference) or entities.get(f"{reference}/")
        if entity is not None and entity.path.startswith(path_prefix):
            if entity.name:
                return TermResult(term, "code", code=self._code(entity.path, entity))
            return self._outline(term, entity)
        if (match := _LINE_REFERENCE.fullmatch(reference)) and match[1] in self._texts:
            first = int(match[2])
            return TermResult(term, "code", code=self._requested_lines(match[1], first, match[3]))
        path, _, qualified_name = reference.rpartition("::")
        search_prefix, name = (path, qualified_name) if path in entities else (path_prefix, term)
        matches = find_named(self._entities_below(search_prefix), name, 10 * MAX_DEFINITIONS)
        unqualified = re.split(r"[.#:]+", term.lower())[-1]
        is_exact = bool(matches) and matches[0].short_name.lower() == unqualified
        return TermResult(
            term,
            "named" if is_exact else "similar" if matches else "words",
            tuple(self._definition(entity.id) for entity in matches[:MAX_DEFINITIONS]),
            max(0, len(matches) - MAX_DEFINITIONS),
            passages=tuple(
                self._passage(window.path, window.start, window.end, term)
                for window in self._word_index.find(term, MAX_PASSAGES, path_prefix)
            ),
        )

    def _outline(self, term: str, file: Entity) -> TermResult:
        """Return the definitions of a file, its first lines if it has none, or the content of a
        folder."""
        if file.kind == "directory":
            children = [edge.end for edge in self._graph.downstream(file.path)]
            entries = tuple(self._definition(id) for id in children[:MAX_OUTLINE_ENTRIES])
            return TermResult(term, "file", entries, max(0, len(children) - MAX_OUTLINE_ENTRIES))
        definitions = self._entities_by_file.get(file.path, [])
        shown = tuple(self._definition(entity.id) for entity in definitions[:MAX_OUTLINE_ENTRIES])
        code = None if shown else self._code(file.path, file)
        return TermResult(term, "file", shown, max(0, len(definitions) - MAX_OUTLINE_ENTRIES), code)

    def _definition(self, id: str) -> Definition:
        entity = self._graph.entities[id]
        lines = self._lines(entity.path) if entity.name else []
        line = lines[entity.start - 1].strip() if len(lines) >= entity.start else ""
        return Definition(id, entity.kind, entity.path, entity.start, entity.end, line)

    def _code(self, path: str, entity: Entity) -> CodeExcerpt:
        lines = self._lines(path)[entity.start - 1 : entity.end]
        shown = tuple(lines[:MAX_LINES])
        within = entity.id if entity.name else ""
        return CodeExcerpt(path, entity.start, shown, within, len(lines) - len(shown))

    def _requested_lines(self, path: str, first: int, last: str | None) -> CodeExcerpt:
        """Return the lines that were asked for. For a single line, return the definition that
        contains it, or the lines around it."""
        lines = self._lines(path)
        entity = self._enclosing(path, first)
        if last is None and entity is not None and entity.end - entity.start < MAX_LINES:
            return self._code(path, entity)
        start = first if last else max(1, first - _CONTEXT_LINES)
        requested = lines[start - 1 : int(last) if last else first + _CONTEXT_LINES]
        shown = tuple(requested[:MAX_LINES])
        return CodeExcerpt(
            path, start, shown, entity.id if entity else "", len(requested) - len(shown)
        )

    def _enclosing(self, path: str, line: int) -> Entity | None:
        """Return the innermost definition that contains the line."""
        entities = self._entities_by_file.get(path, [])
        index = bisect.bisect_right(entities, line, key=lambda e: e.start)
        enclosing = (e for e in reversed(entities[max(0, index - 1000) : index]) if e.end >= line)
        return next(enclosing, None)

    def _passage(self, path: str, start: int, end: int, term: str) -> CodeExcerpt:
        """Return the lines around the line that contains most of the term's words."""
        query_words = set(split_identifier_words(term))
        lines = self._lines(path)[start - 1 : end]
        scores = [len(query_words & set(split_identifier_words(line))) for line in lines]
        best_index = scores.index(max(scores)) if scores else 0
        first = max(0, best_index - _PASSAGE_LINES // 2)
        shown = tuple(lines[first : first + _PASSAGE_LINES])
        entity = self._enclosing(path, start + best_index)
        return CodeExcerpt(path, start + first, shown, entity.id if entity else "")

    def _lines(self, path: str) -> list[str]:
        """Return the lines of a file. The last file stays decompressed, because questions are about
        one file several times in a row."""
        if self._last_decompressed[0] != path:
            text = zlib.decompress(self._texts[path]).decode("utf-8", "replace")
            lines = [line[:MAX_LINE_CHARACTERS].rstrip("\r") for line in text.split("\n")]
            self._last_decompressed = (path, lines)
        return self._last_decompressed[1]
