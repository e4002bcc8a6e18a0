"""Holds the code of one commit in the worker process (sources, graph, words) and answers questions
about it. It depends neither on where the code comes from nor on who asks."""

import bisect
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

from resolver.code_index.answers import BuiltIndex, CodeExcerpt, Definition, TermFound, WalkResult
from resolver.code_index.grammars import syntax_of
from resolver.code_index.graph import (
    MOST_FOLDERS,
    MOST_ROWS,
    ROOT,
    Direction,
    EdgeKind,
    Graph,
    build_graph,
    explore,
)
from resolver.code_index.search import LONGEST_LINE, WordIndex, find_named, split_identifier_words
from resolver.code_index.source import Entity, SourceFile, count_lines, read_source

MOST_LINES = 200
"""Maximum number of lines of code in the answer for one term."""

MOST_DEFINITIONS = 15
MOST_OUTLINE = 80
MOST_PASSAGES = 5
_PASSAGE_LINES = 8
_AROUND = 15
_PLACE = re.compile(r"(.+):([1-9]\d{0,6})(?:-([1-9]\d{0,6}))?")


class CodeBase:
    """The index in memory. Call `add` for each file, then `build`, then ask questions."""

    def __init__(self) -> None:
        self._sources: list[SourceFile] = []
        self._texts: dict[str, bytes] = {}
        self._words = WordIndex()
        self._graph = Graph({}, ())
        self._in_file: dict[str, list[Entity]] = {}
        self._left_out = 0
        self._unpacked: tuple[str, list[str]] = ("", [])

    def add(self, path: str, content: bytes, late: Callable[[], bool]) -> None:
        """Add a file.

        A file in an unknown language, or one whose parsing was given up because of `late`, is found
        only by its words. A binary file is left out.
        """
        if b"\0" in content[:8000]:
            return
        syntax = syntax_of(path)
        if syntax is None:
            source = SourceFile(path, "", count_lines(content))
        else:
            source = read_source(path, content, syntax, late)
        self._left_out += not source.complete
        self._sources.append(source)
        self._texts[path] = zlib.compress(content, 1)
        self._words.add(path, content.decode("utf-8", "replace"))

    def leave_out(self, files: int) -> None:
        """Count files that a limit left out."""
        self._left_out += files

    def build(self, filtered: bool) -> BuiltIndex:
        """Build the graph from the added files. filtered: returned as part of the result."""
        self._sources.sort(key=lambda source: source.path)
        self._graph = build_graph(self._sources)
        in_file: dict[str, list[Entity]] = defaultdict(list)
        for entity in self._graph.entities.values():
            if entity.name:
                in_file[entity.path].append(entity)
        self._in_file = {
            path: sorted(found, key=lambda e: (e.start, -e.end)) for path, found in in_file.items()
        }
        files = len(self._sources)
        self._sources = []
        return BuiltIndex(files, len(self._graph.entities), self._left_out, filtered)

    def search(self, terms: Sequence[str], below: str) -> tuple[TermFound, ...]:
        """Return what was found for each term in the folder or file `below` ("" for all)."""
        where = self._known_path(below.strip())
        folder = f"{where}/" if where and where not in self._texts else where
        return tuple(self._search(term.strip(), folder) for term in terms)

    def explore(
        self,
        starts: Sequence[str],
        directions: Sequence[Direction],
        depth: int,
        kinds: Collection[EdgeKind],
    ) -> tuple[WalkResult, ...]:
        """Return the walks from each start, in each direction."""
        most = max(20, MOST_ROWS // max(1, len(starts) * len(directions)))
        walks: list[WalkResult] = []
        for start in starts:
            node, similar = self._node(start.strip())
            if node is None:
                walks.append(WalkResult(start, similar=similar))
                continue
            for direction in directions:
                rows, cut = explore(self._graph, node, direction, depth, kinds, most)
                walks.append(WalkResult(start, direction, self._defined(node), rows, cut))
        return tuple(walks)

    def _node(self, name: str) -> tuple[str | None, tuple[str, ...]]:
        """Return the id that `name` refers to, or None and the ids that may be meant."""
        entities = self._graph.entities
        plain = self._known_path(name)
        candidates = (name, plain, f"{plain}/", ROOT if name in {"", "."} else "")
        for candidate in candidates:
            if candidate in entities:
                return candidate, ()
        path, _, inner = plain.rpartition("::")
        named = find_named(self._below(path), inner) or find_named(entities.values(), plain)
        if len(named) == 1:
            return named[0].id, ()
        return None, tuple(entity.id for entity in named[:MOST_DEFINITIONS])

    def _known_path(self, words: str) -> str:
        """Return the path relative to the repository. Tracebacks contain absolute paths of a
        sandbox."""
        plain = words.removeprefix("./").rstrip("/")
        if not plain.startswith("/"):
            return plain
        path = re.split(r"::|:\d", plain)[0]
        parts = path.strip("/").split("/")[:MOST_FOLDERS]
        ends = ("/".join(parts[start:]) for start in range(len(parts)))
        known = (end for end in ends if end in self._texts or f"{end}/" in self._graph.entities)
        end = next(known, None)
        return plain.strip("/") if end is None else end + plain[len(path) :]

    def _below(self, path: str) -> Iterable[Entity]:
        every = self._graph.entities.values()
        return (entity for entity in every if entity.path.startswith(path))

    def _search(self, term: str, below: str) -> TermFound:
        entities = self._graph.entities
        plain = self._known_path(term)
        entity = entities.get(plain) or entities.get(f"{plain}/")
        if entity is not None and entity.path.startswith(below):
            if entity.name:
                return TermFound(term, "code", code=self._code(entity.path, entity))
            return self._outline(term, entity)
        if (found := _PLACE.fullmatch(plain)) and found[1] in self._texts:
            first = int(found[2])
            return TermFound(term, "code", code=self._around(found[1], first, found[3]))
        path, _, inner = plain.rpartition("::")
        where, name = (path, inner) if path in entities else (below, term)
        named = find_named(self._below(where), name, 10 * MOST_DEFINITIONS)
        last = re.split(r"[.#:]+", term.lower())[-1]
        exact = bool(named) and named[0].short_name.lower() == last
        return TermFound(
            term,
            "named" if exact else "similar" if named else "words",
            tuple(self._defined(entity.id) for entity in named[:MOST_DEFINITIONS]),
            max(0, len(named) - MOST_DEFINITIONS),
            passages=tuple(
                self._passage(place.path, place.start, place.end, term)
                for place in self._words.find(term, MOST_PASSAGES, below)
            ),
        )

    def _outline(self, term: str, file: Entity) -> TermFound:
        """Return the definitions of a file, its first lines if it has none, or the content of a
        folder."""
        if file.kind == "directory":
            held = [edge.end for edge in self._graph.downstream(file.path)]
            entries = tuple(self._defined(id) for id in held[:MOST_OUTLINE])
            return TermFound(term, "file", entries, max(0, len(held) - MOST_OUTLINE))
        inside = self._in_file.get(file.path, [])
        shown = tuple(self._defined(entity.id) for entity in inside[:MOST_OUTLINE])
        code = None if shown else self._code(file.path, file)
        return TermFound(term, "file", shown, max(0, len(inside) - MOST_OUTLINE), code)

    def _defined(self, id: str) -> Definition:
        entity = self._graph.entities[id]
        lines = self._lines(entity.path) if entity.name else []
        line = lines[entity.start - 1].strip() if len(lines) >= entity.start else ""
        return Definition(id, entity.kind, entity.path, entity.start, entity.end, line)

    def _code(self, path: str, entity: Entity) -> CodeExcerpt:
        lines = self._lines(path)[entity.start - 1 : entity.end]
        shown = tuple(lines[:MOST_LINES])
        within = entity.id if entity.name else ""
        return CodeExcerpt(path, entity.start, shown, within, len(lines) - len(shown))

    def _around(self, path: str, first: int, last: str | None) -> CodeExcerpt:
        """Return the lines that were asked for. For a single line, return the definition that
        contains it, or the lines around it."""
        lines = self._lines(path)
        entity = self._enclosing(path, first)
        if last is None and entity is not None and entity.end - entity.start < MOST_LINES:
            return self._code(path, entity)
        start = first if last else max(1, first - _AROUND)
        asked = lines[start - 1 : int(last) if last else first + _AROUND]
        shown = tuple(asked[:MOST_LINES])
        return CodeExcerpt(path, start, shown, entity.id if entity else "", len(asked) - len(shown))

    def _enclosing(self, path: str, line: int) -> Entity | None:
        """Return the innermost definition that contains the line."""
        inside = self._in_file.get(path, [])
        at = bisect.bisect_right(inside, line, key=lambda e: e.start)
        holding = (e for e in reversed(inside[max(0, at - 1000) : at]) if e.end >= line)
        return next(holding, None)

    def _passage(self, path: str, start: int, end: int, term: str) -> CodeExcerpt:
        """Return the lines around the line that contains most of the term's words."""
        wanted = set(split_identifier_words(term))
        lines = self._lines(path)[start - 1 : end]
        hits = [len(wanted & set(split_identifier_words(line))) for line in lines]
        best = hits.index(max(hits)) if hits else 0
        first = max(0, best - _PASSAGE_LINES // 2)
        shown = tuple(lines[first : first + _PASSAGE_LINES])
        entity = self._enclosing(path, start + best)
        return CodeExcerpt(path, start + first, shown, entity.id if entity else "")

    def _lines(self, path: str) -> list[str]:
        """Return the lines of a file. The last file stays decompressed, because questions are about
        one file several times in a row."""
        if self._unpacked[0] != path:
            text = zlib.decompress(self._texts[path]).decode("utf-8", "replace")
            lines = [line[:LONGEST_LINE].rstrip("\r") for line in text.split("\n")]
            self._unpacked = (path, lines)
        return self._unpacked[1]
