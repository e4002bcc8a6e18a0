"""Parses one source file: what it defines, imports and calls.

No code of the file is executed, and nothing recurses: the depth and size of a hostile file cost
bounded time.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tree_sitter import Node, Parser, QueryCursor, Tree

from resolver.code_index.declarations import Declaration, declarations_of
from resolver.code_index.grammars import DECORATED, Syntax, grammar_of, query_of

MAX_NODES = 100_000
"""Maximum number of definitions, imports and calls of one file."""

MAX_DEPTH = 12
"""Maximum nesting of definitions; deeper ones are left out."""

MAX_IMPORTS = 500
MAX_BASES = 20
_MAX_NAME_BYTES = 200
_CHUNK_BYTES = 1024
_MAX_NODE_DEPTH = 300
"""Maximum depth of syntax nodes that a query visits. Each step costs time in proportion to its
depth, so a file that consists of brackets would take minutes."""

_NODES_PER_CHECK = 1000
"""Number of nodes between two checks of the time."""

_BASE_NAMES = {"identifier", "type_identifier", "constant"}


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
    bases: tuple[str, ...] = ()
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
class SourceCall:
    """A call `receiver.name(...)` inside of the entity with the id `within`."""

    within: str
    receiver: str
    name: str


@dataclass(frozen=True)
class SourceFile:
    """The facts about one file.

    imports: as written in the language, not yet resolved to files. language: "" for a text without
    a grammar. complete: False if a limit left out part of it.
    """

    path: str
    language: str
    lines: int
    entities: tuple[Entity, ...] = ()
    imports: tuple[str, ...] = ()
    calls: tuple[SourceCall, ...] = ()
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
    reader = _Reader(path, content, syntax)
    complete = reader.read(tree, is_late)
    imports = tuple(dict.fromkeys(reader.imports))
    return SourceFile(
        path,
        syntax.name,
        lines,
        tuple(reader.entities),
        imports[:MAX_IMPORTS],
        tuple(dict.fromkeys(reader.calls)),
        complete and len(imports) <= MAX_IMPORTS,
    )


def count_lines(content: bytes) -> int:
    """Return the number of lines as an editor counts them: a last line without a line break counts,
    and an empty file has none."""
    return content.count(b"\n") + (not content.endswith(b"\n") if content else 0)


@dataclass(frozen=True)
class _Scope:
    """A definition that is open at the reader's position."""

    end: int
    names: tuple[str, ...]
    id: str
    is_class: bool


class _Reader:
    """Collects the facts of one file in a single pass over its relevant syntax nodes."""

    def __init__(self, path: str, content: bytes, syntax: Syntax) -> None:
        self._path = path
        self._content = content
        self._syntax = syntax
        self._open_scopes = [_Scope(len(content) + 1, (), path, False)]
        self._known_ids: set[str] = set()
        self._first_starts: dict[str, int] = {}
        self._decorated: tuple[int, int] = (-1, 0)
        self.entities: list[Entity] = []
        self.imports: list[str] = []
        self.calls: list[SourceCall] = []

    def read(self, tree: Tree, is_late: Callable[[], bool]) -> bool:
        """Visit every relevant node in the order of the file. Return False if some were left
        out."""
        root = tree.root_node
        nodes, complete = self._walk(root, is_late) if root.has_error else (self._query(root), True)
        complete = complete and len(nodes) <= MAX_NODES
        for node in sorted(nodes[:MAX_NODES], key=lambda n: (n.start_byte, -n.end_byte)):
            while self._open_scopes[-1].end <= node.start_byte:
                self._open_scopes.pop()
            if node.type == DECORATED:
                self._decorated = (node.end_byte, node.start_point[0] + 1)
            elif node.type in self._syntax.scopes:
                if len(self._open_scopes) > MAX_DEPTH:
                    complete = False
                else:
                    self._define(node)
            elif node.type in self._syntax.imports:
                self._import(node)
            else:
                self._call(node)
        return complete

    def _query(self, root: Node) -> list[Node]:
        """Return the relevant nodes of a file without syntax errors, found by a query."""
        cursor = QueryCursor(query_of(self._syntax.name))
        cursor.set_max_start_depth(_MAX_NODE_DEPTH)
        return cursor.captures(root).get("found", [])

    def _walk(self, root: Node, is_late: Callable[[], bool]) -> tuple[list[Node], bool]:
        """Return the relevant nodes of a file with syntax errors, and True if these are all of
        them.

        The parser may turn an error into one node with any number of children, and the time of a
        query grows with the square of that number. A plain walk is always slow, but it can be
        stopped.
        """
        node_types = {*self._syntax.scopes, *self._syntax.imports, *self._syntax.calls, DECORATED}
        nodes: list[Node] = []
        pending = [root]
        visited = 0
        while pending:
            visited += 1
            if visited % _NODES_PER_CHECK == 0 and is_late():
                return nodes, False
            node = pending.pop()
            if node.type in node_types:
                nodes.append(node)
            pending += reversed(node.named_children)
        return nodes, True

    def _define(self, node: Node) -> None:
        for declaration in declarations_of(node, self._syntax.scopes[node.type], self._text):
            self._add_entity(node, declaration)

    def _add_entity(self, node: Node, declaration: Declaration) -> None:
        scope = self._open_scopes[0] if declaration.is_global else self._open_scopes[-1]
        receiver = self._go_receiver(node)
        names = (*scope.names, *((receiver,) if receiver else ()), *declaration.names)
        kind = declaration.kind
        if kind == "":
            self._open_scopes.append(_Scope(node.end_byte, names, scope.id, True))
            return
        is_member = scope.is_class or receiver or len(declaration.names) > 1
        if kind == "function" and (is_member or "." in declaration.names[-1]):
            kind = "method"
        qualified = ".".join(names)
        is_class = kind == "class"
        start = self._first_line(node)
        entity = Entity(
            self._path,
            qualified,
            kind,
            start,
            _last_line(node),
            self._bases(node) if is_class else (),
            # `var A = exports.A = class {}` defines one class under the same name twice
            self._first_starts.setdefault(qualified, start) != start,
        )
        if declaration.is_scope:
            self._open_scopes.append(_Scope(node.end_byte, names, entity.id, is_class))
        if entity.id not in self._known_ids:
            self._known_ids.add(entity.id)
            self.entities.append(entity)

    def _first_line(self, node: Node) -> int:
        """Return the first line of the definition, including its decorators."""
        end, line = self._decorated
        return line if end == node.end_byte else int(node.start_point[0]) + 1

    def _bases(self, node: Node) -> tuple[str, ...]:
        pending = [c for c in node.named_children if c.type in self._syntax.heritage]
        names: list[str] = []
        for _ in range(10 * MAX_BASES):
            if not pending or len(names) >= MAX_BASES:
                break
            node_to_check = pending.pop(0)
            if node_to_check.type in _BASE_NAMES:
                names.append(self._text(node_to_check))
            elif node_to_check.type not in {"keyword_argument", "type_arguments"}:
                pending += node_to_check.named_children[:MAX_BASES]
        return tuple(names)

    def _import(self, node: Node) -> None:
        if len(self.imports) > 2 * MAX_IMPORTS:
            return
        match self._syntax.name:
            case "python":
                self.imports += self._python_import(node)
            case "rust" if node.type == "mod_item":
                name_node = node.child_by_field_name("name")
                if name_node is not None and node.child_by_field_name("body") is None:
                    self.imports.append(f"mod {self._text(name_node)}")
            case "rust":
                argument = node.child_by_field_name("argument")
                if argument is not None:
                    self.imports.append(self._text(argument).partition("{")[0].rstrip(":"))
            case "java":
                scoped_names = (c for c in node.named_children if c.type == "scoped_identifier")
                self.imports += [self._text(c) for c in scoped_names]
            case _:
                path = node.child_by_field_name("path") or node.child_by_field_name("source")
                if path is not None:
                    self.imports.append(self._text(path).strip("\"'`<>"))

    def _python_import(self, node: Node) -> list[str]:
        name_nodes = node.children_by_field_name("name")[:MAX_IMPORTS]
        names = [self._text(name_node).partition(" ")[0] for name_node in name_nodes]
        module = node.child_by_field_name("module_name")
        if module is None:
            return names
        module_name = self._text(module)
        return [
            module_name,
            *(f"{module_name}{'' if module_name.endswith('.') else '.'}{name}" for name in names),
        ]

    def _call(self, node: Node) -> None:
        fields = (node.child_by_field_name(field) for field in self._syntax.callee)
        callee = next((field for field in fields if field is not None), None)
        if callee is None:
            return
        callee_text = self._tail(callee).replace("::", ".").replace("->", ".")
        receiver, _, name = callee_text.rpartition(".")
        receiver_node = node.child_by_field_name("object") or node.child_by_field_name("receiver")
        if receiver_node is not None and not receiver:
            receiver = self._text(receiver_node) or "?"
        if name in {"require", "require_relative"}:
            self.imports += self._ruby_requires(node, name)
        elif name.isidentifier():
            self.calls.append(SourceCall(self._open_scopes[-1].id, receiver, name))

    def _ruby_requires(self, call: Node, name: str) -> list[str]:
        arguments = call.child_by_field_name("arguments")
        if arguments is None:
            return []
        strings = (c for c in arguments.named_children[:1] if "string" in c.type)
        paths = [self._text(c).strip("\"'`") for c in strings]
        return [f"./{path}" if name == "require_relative" else path for path in paths]

    def _go_receiver(self, node: Node) -> str:
        if node.type != "method_declaration" or self._syntax.name != "go":
            return ""
        receiver = node.child_by_field_name("receiver")
        text = self._text(receiver) if receiver is not None else ""
        words = text.strip("()").replace("*", " ").partition("[")[0].split()
        return words[-1] if words else ""

    def _text(self, node: Node) -> str:
        """Return the text of the node; "" if it is too long to be a name."""
        if node.end_byte - node.start_byte > _MAX_NAME_BYTES:
            return ""
        return self._content[node.start_byte : node.end_byte].decode("utf-8", "replace").strip()

    def _tail(self, node: Node) -> str:
        """Return the end of the node's text, since a chain of calls may be as long as its file."""
        start = max(node.start_byte, node.end_byte - _MAX_NAME_BYTES)
        text = self._content[start : node.end_byte].decode("utf-8", "replace").strip()
        return text if start == node.start_byte else f"?.{text.rpartition('.')[2]}"


def _last_line(node: Node) -> int:
    """Return the last line of the node. Some grammars end a definition at the start of the next
    line."""
    row, column = node.end_point
    return int(row) + (1 if column > 0 or row == node.start_point[0] else 0)
