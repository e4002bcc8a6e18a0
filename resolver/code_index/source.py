"""Parses one source file: what it defines and what it refers to.

No code of the file is executed, and nothing recurses: the depth and size of a hostile file cost
bounded time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node, Parser, Query, QueryCursor

from resolver.code_index.grammars import grammar_of

MAX_DEFINITIONS = 50_000
"""Maximum number of definitions, and of references, of one file."""

MAX_DEPTH = 12
"""Maximum nesting of definitions; deeper ones are left out."""

_MAX_NAME_BYTES = 200
_CHUNK_BYTES = 1024
_MAX_NODE_DEPTH = 300
"""Maximum depth of syntax nodes that a query visits. Each step costs time in proportion to its
depth, so a file that consists of brackets would take minutes."""

_KINDS: Final = {
    "definition.class": "class", "definition.interface": "class", "definition.type": "class",
    "definition.module": "class", "definition.function": "function",
    "definition.method": "function", "definition.macro": "function",
    "definition.variable": "variable", "scope": None,
    "reference.call": "calls", "reference.class": "calls",
    "reference.implementation": "inherits",
}  # fmt: skip
"""Kinds of entities and references by the tags of a grammar; those with other tags are left out."""

_LEFT_OUT: Final = frozenset({"function_declarator", "declaration", "mod_item"})
"""Types of nodes that are left out: C's tags call mere declarations definitions, and a module of
Rust is a file."""

_NEEDS_BODY: Final = frozenset({"enum_specifier", "struct_specifier", "class_specifier"})
"""Types of nodes that only refer to something if they have no body, such as `struct a *b`."""


@dataclass(frozen=True)
class Entity:
    """A definition, a file or a directory.

    name: qualified within the file, None for a file and a directory. start, end: first and last
    line, from 1. is_repeated: True if it is not the first definition of that name in its file (an
    overload, a branch, a setter).
    """

    path: str
    name: str | None
    kind: str
    start: int
    end: int
    is_repeated: bool = False

    @property
    def id(self) -> str:
        """The path, or path::Name. The line is added to a repeated definition."""
        if self.name is None:
            return self.path
        return f"{self.path}::{self.name}" + (f"@{self.start}" if self.is_repeated else "")

    @property
    def short_name(self) -> str:
        """The unqualified name."""
        return (self.name or "").rpartition(".")[2]


@dataclass(frozen=True)
class SourceReference:
    """A reference to `name` inside of the entity with the id `within`. kind: calls or inherits."""

    within: str
    name: str
    kind: str


@dataclass(frozen=True)
class SourceFile:
    """The facts about one file. complete: False if a limit left out part of it."""

    entities: tuple[Entity, ...] = ()
    references: tuple[SourceReference, ...] = ()
    complete: bool = True


def read_source(
    path: str, content: bytes, language: str, is_late: Callable[[], bool] = lambda: False
) -> SourceFile:
    """Return the facts about a file.

    is_late: called repeatedly. If it returns True while the file is parsed, the file has no facts;
    if it does so later, the file has the facts that were found until then.
    """
    grammar, query = grammar_of(language)
    try:
        tree = Parser(grammar).parse(
            lambda at, _: content[at : at + _CHUNK_BYTES], progress_callback=lambda *_: is_late()
        )
    except ValueError:  # tree-sitter raises this if the progress callback ends the parsing
        return SourceFile(complete=False)
    reader = _Reader(path, content)
    for captures in _find_matches(tree.root_node, query, is_late):
        reader.add_match(captures)
    is_complete = reader.read()
    references = tuple(dict.fromkeys(reader.references))
    return SourceFile(tuple(reader.entities.values()), references, is_complete and not is_late())


def _find_matches(
    root: Node, query: Query, is_late: Callable[[], bool]
) -> Iterator[dict[str, list[Node]]]:
    """Yield the captures of each match until it is too late.

    The parser may turn an error into one node with any number of children, and the time of a query
    grows with the square of that number. So a node that contains an error is asked about alone, and
    whole subtrees only if they have none.
    """
    alone, whole = QueryCursor(query), QueryCursor(query)
    alone.set_max_start_depth(0)
    whole.set_max_start_depth(_MAX_NODE_DEPTH)
    pending = [root]
    while pending and not is_late():
        node = pending.pop()
        if not node.is_error:
            cursor = alone if node.has_error else whole
            for _, captures in cursor.matches(node):
                yield captures
        if node.has_error:
            pending += reversed(node.named_children)


@dataclass(frozen=True)
class _Tag:
    """A definition as a query found it. kind: as in `Entity`, None for a scope."""

    node: Node
    name: str
    kind: str | None


@dataclass(frozen=True)
class _Scope:
    """A definition that is open at the reader's position. name: with those around it."""

    end: int
    name: str
    id: str
    kind: str | None
    line: int = 0


class _Reader:
    """Puts the matches of a file's query into the order of the file and qualifies their names."""

    def __init__(self, path: str, content: bytes) -> None:
        self._path = path
        self._content = content
        self._open_scopes = [_Scope(len(content) + 1, "", path, "file")]
        self._first_starts: dict[str, int] = {}
        self._tags: dict[int, _Tag] = {}
        self._references: dict[int, tuple[str, str]] = {}
        self.entities: dict[str, Entity] = {}
        self.references: list[SourceReference] = []

    def add_match(self, captures: dict[str, list[Node]]) -> None:
        """Add what one match of the query found."""
        label = next((label for label in captures if label in _KINDS), None)
        if label is None or "name" not in captures:
            return
        name_node, node, kind = captures["name"][0], captures[label][0], _KINDS[label]
        name = self._text(name_node).replace("::", ".").strip("'\"")
        if not name or "\n" in name:
            return
        if label.startswith("reference"):
            # a base class may be tagged as a use of the class, too
            if kind == "inherits" or name_node.start_byte not in self._references:
                self._references[name_node.start_byte] = (name, str(kind))
            return
        has_body = node.type not in _NEEDS_BODY or node.child_by_field_name("body") is not None
        if node.type in _LEFT_OUT or not has_body:
            return
        if "owner" in captures:
            name = f"{self._text(captures['owner'][0])}.{name}"
        tag, other = _Tag(node, name, kind), self._tags.get(name_node.end_byte)
        # of several tags of one name, the longest includes decorators and owners
        if other is None or _extent(tag) >= _extent(other):
            self._tags[name_node.end_byte] = tag

    def read(self) -> bool:
        """Read the added matches. Return False if some definitions were left out."""
        tags = sorted(self._tags.values(), key=lambda t: (t.node.start_byte, -t.node.end_byte))
        positions = sorted(self._references)
        complete = max(len(tags), len(positions)) <= MAX_DEFINITIONS
        events: list[tuple[int, _Tag | None]] = [(at, None) for at in positions[:MAX_DEFINITIONS]]
        events += [(tag.node.start_byte, tag) for tag in tags[:MAX_DEFINITIONS]]
        for start, tag in sorted(events, key=lambda event: event[0]):
            while self._open_scopes[-1].end <= start:
                self._open_scopes.pop()
            if tag is None:
                name, kind = self._references[start]
                self.references.append(SourceReference(self._open_scopes[-1].id, name, kind))
            elif len(self._open_scopes) > MAX_DEPTH:
                complete = False
            else:
                self._define(tag)
        return complete

    def _define(self, tag: _Tag) -> None:
        node, kind = tag.node, tag.kind
        scope = self._open_scopes[0 if node.type.startswith("preproc") else -1]
        name = f"{scope.name}.{tag.name}" if scope.name else tag.name
        if kind is None:
            self._open_scopes.append(_Scope(node.end_byte, name, f"{self._path}::{name}", None))
            return
        start = int(node.start_point[0]) + 1
        if scope.line == start and scope.name.rpartition(".")[2] == tag.name:
            return  # `send = function send() {}`
        if kind == "function" and ("." in tag.name or scope.kind in {"class", None}):
            kind = "method"
        is_repeated = self._first_starts.setdefault(name, start) != start
        entity = Entity(self._path, name, kind, start, _last_line(node), is_repeated)
        self.entities.setdefault(entity.id, entity)
        if not node.type.startswith(("preproc", "type_definition")):
            self._open_scopes.append(_Scope(node.end_byte, name, entity.id, kind, start))

    def _text(self, node: Node) -> str:
        """Return the text of the node; an empty one if it is too long to be a name."""
        if node.end_byte - node.start_byte > _MAX_NAME_BYTES:
            return ""
        return self._content[node.start_byte : node.end_byte].decode("utf-8", "replace").strip()


def _extent(tag: _Tag) -> tuple[int, int]:
    return tag.node.end_byte - tag.node.start_byte, len(tag.name)


def _last_line(node: Node) -> int:
    """Return the last line of the node. Some grammars end a definition at the start of the next
    line."""
    row, column = node.end_point
    return int(row) + (1 if column > 0 or row == node.start_point[0] else 0)
