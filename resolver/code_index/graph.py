"""The graph of a repository: folders, files, classes, functions and methods as nodes, and the edges
contains, calls and inherits between them."""

import posixpath
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from resolver.code_index.answers import Entity, SourceFile, WalkStep

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
_MAX_LINE_CHARACTERS = 400


class Graph:
    """Nodes by id (a path, or path::Name) and their edges.

    References are resolved by names only: there is no type inference. texts: content of all files
    by path. sources: the facts about those that were parsed.
    """

    def __init__(self, texts: Mapping[str, bytes], sources: Mapping[str, SourceFile]) -> None:
        self.entities = {ROOT: Entity(ROOT, ROOT, None, "directory")}
        self._edges: dict[bool, dict[str, dict[tuple[str, str, bool], None]]] = {
            upstream: defaultdict(dict) for upstream in (False, True)
        }
        self._by_name: dict[str, list[Entity]] = defaultdict(list)
        ids: dict[str, list[str]] = {}
        for path, text in sorted(texts.items()):
            lines = split_source(text)
            self.entities[path] = Entity(path, path, None, "file", end=max(1, len(lines)))
            self._add_edge(self._add_folder(posixpath.dirname(path)), path, "contains")
            ids[path] = self._add_definitions(path, lines, sources.get(path, SourceFile()))
        for path, source in sources.items():
            owners = dict(enumerate(ids[path]))
            for within, name, kind in source.references:
                self._resolve(path, owners.get(within, path), name, kind)
        self._by_name.clear()

    def edges(self, node: str, upstream: bool = False) -> Iterable[tuple[str, str, bool]]:
        """Return the edges to what the node contains, calls and inherits from; with `upstream`,
        those from what contains, calls and inherits from the node.

        Each is a node, the kind of the edge, and whether it is based on the name alone.
        """
        return self._edges[upstream].get(node, {})

    def walk(
        self, start: str, upstream: bool, depth: int, kinds: Collection[str] = ()
    ) -> Iterator[WalkStep]:
        """Yield the edges that are reached from the node `start`, depth first.

        The edges of a node are followed only the first time that it occurs. kinds: the edges that
        are followed; empty for all.
        """
        seen = {start}
        pending = [iter(self.edges(start, upstream))]
        while pending:
            node, kind, guessed = next(pending[-1], (None, "", False))
            if node is None:
                pending.pop()
            elif not kinds or kind in kinds:
                again = node in seen
                seen.add(node)
                yield WalkStep(len(pending), kind, self.entities[node], guessed, again)
                if not again and len(pending) < min(depth, MAX_DEPTH):
                    pending.append(iter(self.edges(node, upstream)))

    def _add_definitions(self, path: str, lines: list[str], source: SourceFile) -> list[str]:
        """Add the definitions of a file, and return their ids.

        The line is added to the id of one that is not the first of its name in the file: an
        overload, a branch, a setter.
        """
        ids: list[str] = []
        for name, kind, start, end in source.definitions:
            id = f"{path}::{name}"
            if (other := self.entities.get(id)) and other.start != start:
                id = f"{id}@{start}"
            ids.append(id)
            if id in self.entities:
                continue
            line = "".join(lines[start - 1 : start]).strip()
            self.entities[id] = entity = Entity(id, path, name, kind, start, end, line)
            for key in (entity.short_name, f"{path}::{entity.short_name}"):
                if kind != "variable" and len(self._by_name[key]) < _MAX_NAMESAKES:
                    self._by_name[key].append(entity)
            parent = f"{path}::{name.rpartition('.')[0]}"
            self._add_edge(parent if parent in self.entities else path, id, "contains")
        return ids

    def _add_folder(self, path: str) -> str:
        """Return the node of the folder, which is added together with all of its parents."""
        parent = ROOT
        parts = path.split("/")[:MAX_FOLDER_DEPTH] if path else []
        for depth in range(1, len(parts) + 1):
            node = "/".join(parts[:depth]) + "/"
            if node not in self.entities:
                self.entities[node] = Entity(node, node, None, "directory")
                self._add_edge(parent, node, "contains")
            parent = node
        return parent

    def _add_edge(self, start: str, end: str, kind: str, guessed: bool = False) -> None:
        if start != end:
            self._edges[False][start][end, kind, guessed] = None
            self._edges[True][end][start, kind, guessed] = None

    def _resolve(self, path: str, start: str, name: str, kind: str) -> None:
        """Add the edges to what the name may mean: a method of the same class, else what the same
        file defines, else what any file defines."""
        owner = start.rpartition(".")[0]
        if "::" in owner and f"{owner}.{name}" in self.entities:
            self._add_edge(start, f"{owner}.{name}", kind)
            return
        here, anywhere = (
            [e for e in self._by_name.get(key, ()) if e.kind == "class" or kind != "inherits"]
            for key in (f"{path}::{name}", name)
        )
        candidates = here[:MAX_GUESSES] or (anywhere if len(anywhere) <= MAX_GUESSES else [])
        for entity in candidates:
            guessed = len(candidates) > 1 or entity.kind == "method"
            self._add_edge(start, entity.id, kind, guessed)


def split_source(text: bytes) -> list[str]:
    """Return the lines of a file, each of limited length; there is none after its last newline."""
    lines = text.decode("utf-8", "replace").removesuffix("\n").split("\n") if text else []
    return [line[:_MAX_LINE_CHARACTERS].rstrip("\r") for line in lines]
