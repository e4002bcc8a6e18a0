"""The graph of a repository: folders, files, classes, functions and methods as nodes, and the edges
contains, calls and inherits between them."""

import posixpath
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from resolver.code_index.source import Entity, SourceFile, SourceReference

ROOT = "/"
"""Id of the repository's root folder."""

MAX_GUESSES = 3
"""Maximum number of definitions of one name that a reference is linked to. With more of them the
name says nothing."""

_MAX_NAMESAKES = 20
"""Maximum number of definitions of one name that are looked at."""

MAX_FOLDER_DEPTH = 40
"""Maximum depth of folders that are nodes. Deeper files belong to the deepest of these folders."""

MAX_DEPTH = 5


@dataclass(frozen=True)
class Edge:
    """A directed edge between two nodes, given by their ids.

    kind: contains, calls or inherits. guessed: True if it is based on the name alone.
    """

    start: str
    end: str
    kind: str
    guessed: bool = False


@dataclass(frozen=True)
class Step:
    """One edge of a walk and the node that it leads to.

    level: number of edges from the start. is_repeated: True if the node occurred before; its edges
    are not followed a second time.
    """

    level: int
    edge: Edge
    node: Entity
    is_repeated: bool


class Graph:
    """Nodes by id (a path, or path::Name) and their edges.

    References are resolved by names only: there is no type inference. sources: by path, with the
    number of lines.
    """

    def __init__(self, sources: Mapping[str, tuple[SourceFile, int]]) -> None:
        self.entities: dict[str, Entity] = {ROOT: Entity(ROOT, None, "directory", 1, 1)}
        self._edges: dict[bool, dict[str, dict[Edge, None]]] = {
            upstream: defaultdict(dict) for upstream in (False, True)
        }
        self._by_name: dict[str, list[Entity]] = defaultdict(list)
        for path, (source, lines) in sorted(sources.items()):
            self._add_file(path, source, lines)
        for path, (source, _) in sources.items():
            for reference in source.references:
                self._resolve(path, reference)
        self._by_name.clear()

    def edges(self, node: str, upstream: bool = False) -> Collection[Edge]:
        """Return the edges to what the node contains, calls and inherits from; with `upstream`,
        those from what contains, calls and inherits from the node."""
        return self._edges[upstream].get(node, {})

    def walk(
        self, start: str, upstream: bool, depth: int, kinds: Collection[str] = ()
    ) -> Iterator[Step]:
        """Yield the edges that are reached from the node `start`, depth first.

        The edges of a node are followed only the first time that it occurs. kinds: the edges that
        are followed; empty for all.
        """
        seen = {start}
        pending = [iter(self.edges(start, upstream))]
        while pending:
            edge = next(pending[-1], None)
            if edge is None:
                pending.pop()
            elif not kinds or edge.kind in kinds:
                node = edge.start if upstream else edge.end
                is_repeated = node in seen
                seen.add(node)
                yield Step(len(pending), edge, self.entities[node], is_repeated)
                if not is_repeated and len(pending) < min(depth, MAX_DEPTH):
                    pending.append(iter(self.edges(node, upstream)))

    def _add_file(self, path: str, source: SourceFile, lines: int) -> None:
        self.entities[path] = Entity(path, None, "file", 1, max(1, lines))
        self._add_edge(self._add_folder(posixpath.dirname(path)), path, "contains")
        for entity in source.entities:
            self.entities[entity.id] = entity
            if entity.kind != "variable":
                for key in (entity.short_name, f"{path}::{entity.short_name}"):
                    if len(self._by_name[key]) < _MAX_NAMESAKES:
                        self._by_name[key].append(entity)
            parent = f"{path}::{(entity.name or '').rpartition('.')[0]}"
            self._add_edge(parent if parent in self.entities else path, entity.id, "contains")

    def _add_folder(self, path: str) -> str:
        """Return the node of the folder, which is added together with all of its parents."""
        parent = ROOT
        parts = path.split("/")[:MAX_FOLDER_DEPTH] if path else []
        for depth in range(1, len(parts) + 1):
            node = "/".join(parts[:depth]) + "/"
            if node not in self.entities:
                self.entities[node] = Entity(node, None, "directory", 1, 1)
                self._add_edge(parent, node, "contains")
            parent = node
        return parent

    def _add_edge(self, start: str, end: str, kind: str, guessed: bool = False) -> None:
        if start != end:
            edge = Edge(start, end, kind, guessed)
            self._edges[False][start][edge] = None
            self._edges[True][end][edge] = None

    def _resolve(self, path: str, reference: SourceReference) -> None:
        """Add the edges to what the name may mean: a method of the same class, else what the same
        file defines, else what any file defines."""
        start = reference.within if reference.within in self.entities else path
        owner = reference.within.rpartition(".")[0]
        own_method = f"{owner}.{reference.name}"
        if "::" in owner and own_method in self.entities:
            self._add_edge(start, own_method, reference.kind)
            return
        is_base = reference.kind == "inherits"
        here, anywhere = (
            [e for e in self._by_name.get(key, ()) if e.kind == "class" or not is_base]
            for key in (f"{path}::{reference.name}", reference.name)
        )
        candidates = here[:MAX_GUESSES] or (anywhere if len(anywhere) <= MAX_GUESSES else [])
        for entity in candidates:
            guessed = len(candidates) > 1 or entity.kind == "method"
            self._add_edge(start, entity.id, reference.kind, guessed)
