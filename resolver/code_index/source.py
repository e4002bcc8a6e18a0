"""Parses one source file: what it defines and what it refers to.

No code of the file is executed, and nothing recurses: the depth and size of a hostile file cost
bounded time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node, Parser, Query, QueryCursor

from resolver.code_index.answers import Definition, SourceFile, SourceReference
from resolver.code_index.grammars import grammar_of

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
"""Kinds of definitions and references by the tags of a grammar; those with other tags are left out.
"""

_LEFT_OUT: Final = frozenset({"function_declarator", "declaration", "mod_item"})
"""Types of nodes that are left out: C's tags call mere declarations definitions, and a module of
Rust is a file."""

_NEEDS_BODY: Final = frozenset({"enum_specifier", "struct_specifier", "class_specifier"})
"""Types of nodes that only refer to something if they have no body, such as `struct a *b`."""


@dataclass(frozen=True)
class _Tag:
    """A match of a query. kind: of a definition or a reference, None for a scope."""

    node: Node
    name: str
    kind: str | None
    is_reference: bool

    @property
    def extent(self) -> tuple[int, int]:
        return self.node.end_byte - self.node.start_byte, len(self.name)


@dataclass(frozen=True)
class _Scope:
    """A definition that is open at the present position. name: qualified. index: of the
    definition."""

    end: int
    name: str
    kind: str | None
    line: int
    index: int


def read_source(
    content: bytes, language: str, is_late: Callable[[], bool] = lambda: False
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
    tags: dict[tuple[bool, int], _Tag] = {}
    for captures in _find_matches(tree.root_node, query, is_late):
        tag = _read_match(captures, content)
        if tag is None:
            continue
        # Of several definitions of one name, the longest includes decorators and owners. A base
        # class may be tagged as a use of the class, too.
        key = tag.is_reference, captures["name"][0].end_byte
        other = tags.get(key)
        is_better = (
            tag.kind == "inherits" if tag.is_reference else other and tag.extent >= other.extent
        )
        if other is None or is_better:
            tags[key] = tag
    return _arrange(list(tags.values()), not is_late())


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


def _read_match(captures: dict[str, list[Node]], content: bytes) -> _Tag | None:
    """Return the definition or reference that a match of the query stands for, if any."""
    label = next((label for label in captures if label in _KINDS), None)
    if label is None or "name" not in captures:
        return None
    node, is_reference = captures[label][0], label.startswith("reference")
    names = [_text(captures[part][0], content) for part in ("owner", "name") if part in captures]
    name = ".".join(names).replace("::", ".").strip("'\"")
    if not names[-1] or "\n" in name:
        return None
    if is_reference:
        return _Tag(captures["name"][0], name, _KINDS[label], True)
    has_body = node.type not in _NEEDS_BODY or node.child_by_field_name("body") is not None
    return (
        _Tag(node, name, _KINDS[label], False) if has_body and node.type not in _LEFT_OUT else None
    )


def _text(node: Node, content: bytes) -> str:
    """Return the text of the node; an empty one if it is too long to be a name."""
    if node.end_byte - node.start_byte > _MAX_NAME_BYTES:
        return ""
    return content[node.start_byte : node.end_byte].decode("utf-8", "replace").strip()


def _arrange(tags: list[_Tag], complete: bool) -> SourceFile:
    """Return the tags in the order of the file, with qualified names."""
    scopes = [_Scope(0, "", "file", 0, -1)]
    definitions: list[Definition] = []
    references: dict[SourceReference, None] = {}
    for tag in sorted(
        tags, key=lambda t: (t.node.start_byte, not t.is_reference, -t.node.end_byte)
    ):
        while len(scopes) > 1 and scopes[-1].end <= tag.node.start_byte:
            scopes.pop()
        node, kind, line = tag.node, tag.kind, int(tag.node.start_point[0]) + 1
        scope = scopes[0 if node.type.startswith("preproc") else -1]
        if tag.is_reference:
            references[SourceReference(scope.index, tag.name, str(kind))] = None
            continue
        if scope.line == line and scope.name.rpartition(".")[2] == tag.name:
            continue  # `send = function send() {}`
        name = f"{scope.name}.{tag.name}" if scope.name else tag.name
        if kind == "function" and ("." in tag.name or scope.kind in {"class", None}):
            kind = "method"
        index = scope.index
        if kind is not None:
            index = len(definitions)
            definitions.append(Definition(name, kind, line, _last_line(node)))
        if not node.type.startswith(("preproc", "type_definition")):
            scopes.append(_Scope(node.end_byte, name, kind, line, index))
    return SourceFile(tuple(definitions), tuple(references), complete)


def _last_line(node: Node) -> int:
    """Return the last line of the node. Some grammars end a definition at the start of the next
    line."""
    row, column = node.end_point
    return int(row) + (1 if column > 0 or row == node.start_point[0] else 0)
