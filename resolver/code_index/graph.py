"""The graph of a repository: folders, files, classes, functions and methods as nodes, and the edges
contains, imports, calls and inherits between them.

A walk from one node goes over several edges and has a limited number of rows.
"""

import posixpath
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from resolver.code_index.answers import Definition, WalkRow
from resolver.code_index.import_resolver import ImportResolver
from resolver.code_index.source import Entity, SourceCall, SourceFile

EdgeKind = Literal["contains", "imports", "calls", "inherits"]

ROOT = "/"
"""Id of the repository's root folder."""

MAX_GUESSES = 3
"""Maximum number of definitions of one name that a call or base class is linked to. With more of
them the name says nothing."""

MAX_FOLDER_DEPTH = 40
"""Maximum depth of folders that are nodes. Deeper files belong to the deepest of these folders."""

_SELF = frozenset({"self", "this", "cls", "@"})


@dataclass(frozen=True)
class Edge:
    """A directed edge between two nodes, given by their ids. guessed: True if it is based on the
    name alone."""

    start: str
    end: str
    kind: EdgeKind
    guessed: bool = False


class Graph:
    """Nodes by id (a path, or path::Name) and their edges."""

    def __init__(self, entities: dict[str, Entity], edges: Sequence[Edge]) -> None:
        self.entities = entities
        self._out: dict[str, list[Edge]] = defaultdict(list)
        self._in: dict[str, list[Edge]] = defaultdict(list)
        for edge in edges:
            self._out[edge.start].append(edge)
            self._in[edge.end].append(edge)

    def downstream(self, node: str) -> Sequence[Edge]:
        """Return the edges to what the node contains, imports, calls and inherits from."""
        return self._out.get(node, ())

    def upstream(self, node: str) -> Sequence[Edge]:
        """Return the edges from what contains, imports, calls and inherits from the node."""
        return self._in.get(node, ())


def build_graph(sources: Sequence[SourceFile]) -> Graph:
    """Return the graph of all sources."""
    return _Builder(sources).build()


class _Builder:
    """Builds the graph. Calls are resolved by names only: there is no type inference."""

    def __init__(self, sources: Sequence[SourceFile]) -> None:
        self._sources = sources
        self._nodes: dict[str, Entity] = {ROOT: Entity(ROOT, "", "directory", 1, 1)}
        self._entities_by_name: dict[str, dict[str, list[Entity]]] = defaultdict(dict)
        """Entities by short name, then by file."""
        self._imports: dict[str, frozenset[str]] = {}
        self._edges: dict[Edge, None] = {}
        self._all_by_name: dict[tuple[str, bool], list[Entity]] = {}

    def build(self) -> Graph:
        for source in self._sources:
            self._add_nodes(source)
        resolver = ImportResolver(source.path for source in self._sources)
        for source in self._sources:
            imported_paths = (
                resolver.files(source.path, source.language, import_text)
                for import_text in source.imports
            )
            files = tuple(dict.fromkeys(path for paths in imported_paths for path in paths))
            self._imports[source.path] = frozenset(files)
            for imported_path in files:
                self._add_edge(source.path, imported_path, "imports")
        for source in self._sources:
            for entity in source.entities:
                self._inherit(entity)
            for call in source.calls:
                self._call(source.path, call)
        return Graph(self._nodes, tuple(self._edges))

    def _add_nodes(self, source: SourceFile) -> None:
        self._nodes[source.path] = Entity(source.path, "", "file", 1, max(1, source.lines))
        self._add_edge(self._folder(posixpath.dirname(source.path)), source.path, "contains")
        for entity in source.entities:
            self._nodes[entity.id] = entity
            self._entities_by_name[entity.short_name].setdefault(entity.path, []).append(entity)
            parent = f"{entity.path}::{entity.name.rpartition('.')[0]}"
            self._add_edge(parent if parent in self._nodes else source.path, entity.id, "contains")

    def _folder(self, path: str) -> str:
        """Return the node of the folder, which is added together with all of its parents."""
        parent = ROOT
        parts = path.split("/")[:MAX_FOLDER_DEPTH] if path else []
        for depth in range(1, len(parts) + 1):
            node = "/".join(parts[:depth]) + "/"
            if node not in self._nodes:
                self._nodes[node] = Entity(node, "", "directory", 1, 1)
                self._add_edge(parent, node, "contains")
            parent = node
        return parent

    def _add_edge(self, start: str, end: str, kind: EdgeKind, guessed: bool = False) -> None:
        if start != end:
            self._edges[Edge(start, end, kind, guessed)] = None

    def _inherit(self, entity: Entity) -> None:
        for base in entity.bases:
            candidates, guessed = self._find_definitions(entity.path, base, classes=True)
            for candidate in candidates:
                self._add_edge(entity.id, candidate.id, "inherits", guessed)

    def _call(self, path: str, call: SourceCall) -> None:
        caller = call.within if call.within in self._nodes else path
        own_method = self._own_method(call)
        if own_method in self._nodes:
            self._add_edge(caller, own_method, "calls")
            return
        candidates, guessed = self._find_definitions(path, call.name)
        # The receiver's type is unknown, so a call of a method is always a guess.
        for candidate in candidates:
            is_guess = guessed or (bool(call.receiver) and candidate.kind == "method")
            self._add_edge(caller, candidate.id, "calls", is_guess)

    @staticmethod
    def _own_method(call: SourceCall) -> str:
        """Return the id of the method that a call on the object itself refers to; "" if it is no
        such call."""
        path, _, name = call.within.partition("::")
        owner = name.rpartition(".")[0]
        if not owner or (call.receiver and call.receiver not in _SELF):
            return ""
        return f"{path}::{owner}.{call.name}"

    def _find_definitions(
        self, path: str, name: str, classes: bool = False
    ) -> tuple[Sequence[Entity], bool]:
        """Return the definitions of that name, and True if they are a guess.

        Those in the same file come first, then those in imported files, then those anywhere.
        """
        by_file = self._entities_by_name.get(name)
        if by_file is None:
            return (), True
        for files in ((path,), self._imported(path, by_file)):
            candidates = _first_few(
                e for f in files for e in by_file.get(f, ()) if _fits(e, classes)
            )
            if candidates:
                return candidates[:MAX_GUESSES], len(candidates) > 1
        if (name, classes) not in self._all_by_name:
            all_candidates = (
                e for entities in by_file.values() for e in entities if _fits(e, classes)
            )
            self._all_by_name[name, classes] = _first_few(all_candidates)
        anywhere = self._all_by_name[name, classes]
        return (anywhere, True) if len(anywhere) <= MAX_GUESSES else ((), True)

    def _imported(self, path: str, by_file: dict[str, list[Entity]]) -> Iterator[str]:
        """Yield the imported files that define the name, by iterating over the smaller of the two
        sets."""
        imported = self._imports[path]
        if len(imported) < len(by_file):
            return (file for file in sorted(imported) if file in by_file)
        return (file for file in by_file if file in imported)


def _first_few(entities: Iterator[Entity]) -> list[Entity]:
    """Return the first entities, one more than are used, so that the caller sees if there are too
    many."""
    return [entity for entity, _ in zip(entities, range(MAX_GUESSES + 1), strict=False)]


def _fits(entity: Entity, classes: bool) -> bool:
    return entity.kind == "class" if classes else entity.kind != "variable"


MAX_DEPTH = 5
MAX_WALK_ROWS = 200

Direction = Literal["upstream", "downstream"]


def explore(
    graph: Graph,
    start: str,
    direction: Direction,
    depth: int = 2,
    kinds: Collection[EdgeKind] = (),
    max_rows: int = MAX_WALK_ROWS,
) -> tuple[tuple[WalkRow, ...], bool]:
    """Return the nodes that are reached from `start`, one row for each edge, and True if some were
    left out.

    The edges of a node are followed only the first time that it occurs. start: an id of the graph.
    kinds: the edges that are followed; empty for all.
    """
    rows: list[WalkRow] = []
    seen = {start}
    upstream = direction == "upstream"
    edges_of = graph.upstream if upstream else graph.downstream
    pending = [(edge, 1) for edge in reversed(_edges_to_follow(edges_of(start), kinds, max_rows))]
    while pending:
        if len(rows) >= max_rows:
            return tuple(rows), True
        edge, level = pending.pop()
        node = edge.start if upstream else edge.end
        is_repeated = node in seen
        seen.add(node)
        rows.append(WalkRow(level, edge.kind, definition(graph, node), edge.guessed, is_repeated))
        if not is_repeated and level < min(depth, MAX_DEPTH):
            pending += [
                (e, level + 1) for e in reversed(_edges_to_follow(edges_of(node), kinds, max_rows))
            ]
    return tuple(rows), False


def definition(graph: Graph, node: str) -> Definition:
    """Return the node as it is named in answers."""
    entity = graph.entities[node]
    return Definition(node, entity.kind, entity.path, entity.start, entity.end)


def _edges_to_follow(
    edges: Collection[Edge], kinds: Collection[EdgeKind], max_edges: int
) -> list[Edge]:
    """Return the edges to follow: at most one more than can be shown."""
    followed = (edge for edge in edges if not kinds or edge.kind in kinds)
    return [edge for edge, _ in zip(followed, range(max_edges + 1), strict=False)]
