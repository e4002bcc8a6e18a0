"""Parses one source file: what it defines and what it refers to.

No code of the file is executed, and nothing recurses: the depth and size of a hostile file cost
bounded time.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from tree_sitter import Node, Parser, Query, QueryCursor

from resolver.code_index.grammars import Syntax, grammar_of, query_of

MAX_NODES = 100_000
"""Maximum number of definitions and references of one file."""

MAX_DEPTH = 12
"""Maximum nesting of definitions and of declarators; deeper ones are left out."""

_MAX_NAME_BYTES = 200
_CHUNK_BYTES = 1024
_MAX_NODE_DEPTH = 300
"""Maximum depth of syntax nodes that a query visits. Each step costs time in proportion to its
depth, so a file that consists of brackets would take minutes."""

_KINDS: Final = {
    "class": "class", "interface": "class", "type": "class", "module": "class",
    "function": "function", "method": "function", "macro": "function", "variable": "variable",
}  # fmt: skip
"""Kinds of entities by the tags of a grammar; definitions with other tags are left out."""

_EDGES: Final[dict[str, Literal["calls", "inherits"]]] = {
    "call": "calls", "class": "calls", "implementation": "inherits",
}  # fmt: skip
"""Kinds of references by the tags of a grammar."""

_VALUE_FIELDS: Final = {
    "variable_declarator": "value",
    "field_definition": "value",
    "public_field_definition": "value",
    "pair": "value",
    "assignment_expression": "right",
}
"""JavaScript nodes that name a value, with the field of the value."""

_NEEDS_BODY: Final = frozenset({"enum_specifier", "struct_specifier", "class_specifier"})
"""Types of nodes that only refer to something if they have no body, such as `struct a *b`."""

_LEFT_OUT: Final = frozenset({"function_declarator", "declaration", "mod_item"})
"""Types of nodes that are left out: C's tags call mere declarations definitions, and a module of
Rust is a file."""

_WITHOUT_CONTENT: Final = frozenset({"type_definition", "preproc_def", "preproc_function_def"})
_RECEIVER = re.compile(r"([\w$@]*)[)\]}?!]*\s*(?:\.|->|::)\s*$")
_SELF = frozenset({"self", "this", "cls", "@"})
_NOT_IN_NAME = re.compile(
    r"^(?:module\.exports|exports|this)(?:\.|(?=\[)|$)|\.prototype(?=\.|\[|$)"
)
"""Parts of an assignment's target in JavaScript that do not belong to the name."""

_LITERAL_KEY = re.compile(r"""\[?(["'])(.*)\1\]?$""")
_GO_OWNER = re.compile(r"(\w+)\s*(?:\[.*\])?\s*\)$")


@dataclass(frozen=True)
class Entity:
    """A definition, a file or a directory.

    name: qualified within the file. start, end: first and last line, from 1. is_repeated: True if
    it is not the first definition of that name in its file (an overload, a branch, a setter).
    """

    path: str
    name: str
    kind: str
    start: int
    end: int
    is_repeated: bool = False

    @property
    def id(self) -> str:
        """The path, or path::Name. The line is added to a repeated definition."""
        if not self.name:
            return self.path
        return f"{self.path}::{self.name}" + (f"@{self.start}" if self.is_repeated else "")

    @property
    def short_name(self) -> str:
        """The unqualified name."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class SourceReference:
    """A reference to `name` inside of the entity with the id `within`.

    on: "self" if it is a member of the object itself, "other" of another one, else "".
    """

    within: str
    name: str
    kind: Literal["calls", "inherits"]
    on: Literal["self", "other", ""]


@dataclass(frozen=True)
class SourceFile:
    """The facts about one file.

    language: "" for a text without a grammar. complete: False if a limit left out part of it.
    """

    path: str
    language: str
    lines: int
    entities: tuple[Entity, ...] = ()
    references: tuple[SourceReference, ...] = ()
    complete: bool = True


def read_source(
    path: str, content: bytes, syntax: Syntax, is_late: Callable[[], bool] = lambda: False
) -> SourceFile:
    """Return the facts about a file.

    is_late: called repeatedly. If it returns True while the file is parsed, the file has no facts;
    if it does so later, the file has the facts that were found until then.
    """
    lines = count_lines(content)
    try:
        tree = Parser(grammar_of(syntax.name)).parse(
            lambda at, _: content[at : at + _CHUNK_BYTES], progress_callback=lambda *_: is_late()
        )
    except ValueError:  # tree-sitter raises this if the progress callback ends the parsing
        return SourceFile(path, syntax.name, lines, complete=False)
    matches, is_complete = _find_matches(tree.root_node, query_of(syntax.name), is_late)
    reader = _Reader(path, content)
    is_complete = reader.read(matches[:MAX_NODES]) and is_complete and len(matches) <= MAX_NODES
    references = tuple(dict.fromkeys(reader.references))
    return SourceFile(
        path, syntax.name, lines, tuple(reader.entities.values()), references, is_complete
    )


def count_lines(content: bytes) -> int:
    """Return the number of lines as an editor counts them: a last line without a line break counts,
    and an empty file has none."""
    return content.count(b"\n") + (not content.endswith(b"\n") if content else 0)


def _find_matches(
    root: Node, query: Query, is_late: Callable[[], bool]
) -> tuple[list[dict[str, list[Node]]], bool]:
    """Return the captures of each match, and True if these are all of them.

    The parser may turn an error into one node with any number of children, and the time of a query
    grows with the square of that number. So a node that contains an error is asked about alone, and
    whole subtrees only if they have none.
    """
    found: list[dict[str, list[Node]]] = []
    alone, whole = QueryCursor(query), QueryCursor(query)
    alone.set_max_start_depth(0)
    whole.set_max_start_depth(_MAX_NODE_DEPTH)
    pending = [root]
    while pending:
        if is_late():
            return found, False
        node = pending.pop()
        if not node.is_error:
            cursor = alone if node.has_error else whole
            found += [captures for _, captures in cursor.matches(node)]
        if node.has_error:
            pending += reversed(node.named_children)
    return found, True


@dataclass(frozen=True)
class _Tag:
    """A definition as a query found it. kind: as in `Entity`, "" for a scope."""

    node: Node
    name: str
    kind: str

    @property
    def extent(self) -> tuple[int, int]:
        """Sort key: of several tags of one name, the longest includes decorators and owners."""
        return self.node.end_byte - self.node.start_byte, len(self.name)


@dataclass(frozen=True)
class _Scope:
    """A definition that is open at the reader's position."""

    end: int
    name: str
    id: str
    kind: str


class _Reader:
    """Puts the matches of a file's query into the order of the file and qualifies their names."""

    def __init__(self, path: str, content: bytes) -> None:
        self._path = path
        self._content = content
        self._open_scopes = [_Scope(len(content) + 1, "", path, "file")]
        self._first_starts: dict[str, int] = {}
        self._tags: dict[int, _Tag] = {}
        self._references: dict[int, Literal["calls", "inherits"]] = {}
        self._names: dict[int, Node] = {}
        self.entities: dict[str, Entity] = {}
        self.references: list[SourceReference] = []

    def read(self, matches: Iterable[dict[str, list[Node]]]) -> bool:
        """Read the matches. Return False if some definitions were nested too deeply."""
        for captures in matches:
            for label, nodes in captures.items() if "name" in captures else ():
                role, _, tag = label.partition(".")
                if role == "scope" or (role == "definition" and tag in _KINDS):
                    self._add_tag(nodes[0], captures, _KINDS.get(tag, ""))
                elif role == "reference" and tag in _EDGES:
                    self._add_reference(captures["name"][0], _EDGES[tag])
        named_values = (_value(tag.node) for tag in self._tags.values())
        values = {v.id for v in named_values if v and v.type != "assignment_expression"}
        tags = [tag for tag in self._tags.values() if tag.node.id not in values]
        events: list[tuple[int, int, _Tag | None]] = [(at, 0, None) for at in self._references]
        events += [(tag.node.start_byte, -tag.node.end_byte, tag) for tag in tags]
        complete = True
        for start, _, found in sorted(events, key=lambda event: event[:2]):
            while self._open_scopes[-1].end <= start:
                self._open_scopes.pop()
            if found is None:
                self._refer(start)
            elif len(self._open_scopes) > MAX_DEPTH:
                complete = False
            else:
                self._define(found)
        return complete

    def _add_tag(self, node: Node, captures: dict[str, list[Node]], kind: str) -> None:
        name_node = _declared_name(captures["name"][0])
        has_body = node.type not in _NEEDS_BODY or node.child_by_field_name("body") is not None
        if node.type in _LEFT_OUT or not has_body or name_node is None:
            return
        name = self._text(name_node).replace("::", ".")
        if node.type in _VALUE_FIELDS:
            name = _NOT_IN_NAME.sub("", name)
            if key := _LITERAL_KEY.search(name):
                name = f"{name[: key.start()]}.{key[2]}".lstrip(".")
            elif name.endswith("]"):
                name = name.replace("[", ".[").lstrip(".")
            value = _value(node)
            if not name and kind and value and value.child_by_field_name("name") is None:
                name = "exports"
        if "owner" in captures and (owner := _GO_OWNER.search(self._text(captures["owner"][0]))):
            name = f"{owner[1]}.{name}"
        tag = _Tag(node, name, kind)
        other = self._tags.get(name_node.end_byte)
        if name and "\n" not in name and (other is None or tag.extent >= other.extent):
            self._tags[name_node.end_byte] = tag

    def _add_reference(self, name_node: Node, kind: Literal["calls", "inherits"]) -> None:
        """Add a reference. A base class may be tagged as a use of the class, too."""
        if kind == "inherits" or name_node.start_byte not in self._references:
            self._references[name_node.start_byte] = kind
            self._names[name_node.start_byte] = name_node

    def _define(self, tag: _Tag) -> None:
        node, kind = tag.node, tag.kind
        scope = self._open_scopes[0 if node.type.startswith("preproc") else -1]
        name = f"{scope.name}.{tag.name}" if scope.name else tag.name
        if not kind:
            self._open_scopes.append(_Scope(node.end_byte, name, f"{self._path}::{name}", ""))
            return
        if kind == "function" and ("." in tag.name or scope.kind in {"class", ""}):
            kind = "method"
        start = int(node.start_point[0]) + 1
        # `var A = exports.A = class {}` defines one class under the same name twice
        is_repeated = self._first_starts.setdefault(name, start) != start
        entity = Entity(self._path, name, kind, start, _last_line(node), is_repeated)
        self.entities.setdefault(entity.id, entity)
        value = _value(node)
        is_chain = value is not None and value.type == "assignment_expression"
        if node.type not in _WITHOUT_CONTENT and not is_chain:
            self._open_scopes.append(_Scope(node.end_byte, name, entity.id, kind))

    def _refer(self, at: int) -> None:
        name = self._text(self._names[at])
        before = self._content[max(0, at - _MAX_NAME_BYTES) : at].decode("utf-8", "replace")
        receiver = _RECEIVER.search(before)
        on: Literal["self", "other", ""] = ""
        if receiver is not None:
            on = "self" if receiver[1] in _SELF else "other"
        if name and "\n" not in name:
            within = self._open_scopes[-1].id
            self.references.append(SourceReference(within, name, self._references[at], on))

    def _text(self, node: Node) -> str:
        """Return the text of the node; "" if it is too long to be a name."""
        if node.end_byte - node.start_byte > _MAX_NAME_BYTES:
            return ""
        return self._content[node.start_byte : node.end_byte].decode("utf-8", "replace").strip()


def _value(node: Node) -> Node | None:
    """Return the value that an assignment in JavaScript names."""
    field = _VALUE_FIELDS.get(node.type)
    return node.child_by_field_name(field) if field else None


def _declared_name(node: Node) -> Node | None:
    """Return the node with the name, which in C is deep inside of the declarator."""
    for _ in range(MAX_DEPTH):
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type == "parenthesized_declarator":
            inner = node.named_child(node.named_child_count - 1)
        if inner is None:
            return None if node.type.endswith("_declarator") else node
        node = inner
    return None


def _last_line(node: Node) -> int:
    """Return the last line of the node. Some grammars end a definition at the start of the next
    line."""
    row, column = node.end_point
    return int(row) + (1 if column > 0 or row == node.start_point[0] else 0)
