"""The graph of a repository: folders, files, classes, functions and methods as nodes, and the edges
contains, calls and inherits between them.

A walk from one node goes over several edges and has a limited number of rows.
"""

import posixpath
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from resolver.code_index.answers import Definition, WalkRow
from resolver.code_index.source import Entity, SourceFile, SourceReference

EdgeKind = Literal["contains", "calls", "inherits"]

ROOT = "/"
"""Id of the repository's root folder."""

MAX_GUESSES = 3
"""Maximum number of definitions of one name that a reference is linked to. With more of them the
name says nothing."""

MAX_FOLDER_DEPTH = 40
"""Maximum depth of folders that are nodes. Deeper files belong to the deepest of these folders."""


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
        """Return the edges to what the node contains, calls and inherits from."""
        return self._out.get(node, ())

    def upstream(self, node: str) -> Sequence[Edge]:
        """Return the edges from what contains, calls and inherits from the node."""
        return self._in.get(node, ())


def build_graph(sources: Sequence[SourceFile]) -> Graph:
    """Return the graph of all sources."""
    return _Builder(sources).build()


class _Builder:
    """Builds the graph. References are resolved by names only: there is no type inference."""

    def __init__(self, sources: Sequence[SourceFile]) -> None:
        self._sources = sources
        self._nodes: dict[str, Entity] = {ROOT: Entity(ROOT, "", "directory", 1, 1)}
        self._by_name: dict[tuple[str, bool], dict[str, list[Entity]]] = defaultdict(dict)
        """The first entities by short name and whether they are classes, by file ("" for all)."""
        self._edges: dict[Edge, None] = {}

    def build(self) -> Graph:
        for source in self._sources:
            self._add_nodes(source)
        for source in self._sources:
            for reference in source.references:
                self._refer(source.path, reference)
        return Graph(self._nodes, tuple(self._edges))

    def _add_nodes(self, source: SourceFile) -> None:
        self._nodes[source.path] = Entity(source.path, "", "file", 1, max(1, source.lines))
        self._add_edge(self._folder(posixpath.dirname(source.path)), source.path, "contains")
        for entity in source.entities:
            self._nodes[entity.id] = entity
            self._add_name(entity)
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

    def _add_name(self, entity: Entity) -> None:
        if entity.kind == "variable":
            return
        for is_class in {False, entity.kind == "class"}:
            for file in (entity.path, ""):
                first = self._by_name[entity.short_name, is_class].setdefault(file, [])
                if len(first) <= MAX_GUESSES:  # one more, to see that there are too many
                    first.append(entity)

    def _refer(self, path: str, reference: SourceReference) -> None:
        start = reference.within if reference.within in self._nodes else path
        owner, _, _ = reference.within.rpartition(".")
        own_method = f"{owner}.{reference.name}"
        if reference.on != "other" and "::" in owner and own_method in self._nodes:
            self._add_edge(start, own_method, reference.kind)
            return
        by_file = self._by_name.get((reference.name, reference.kind == "inherits"), {})
        here, anywhere = by_file.get(path, []), by_file.get("", [])
        candidates = here[:MAX_GUESSES] or (anywhere if len(anywhere) <= MAX_GUESSES else [])
        for candidate in candidates:
            # The receiver's type is unknown, so a call of its method is always a guess.
            guessed = len(here or anywhere) > 1 or (
                reference.on != "" and candidate.kind == "method"
            )
            self._add_edge(start, candidate.id, reference.kind, guessed)


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
