"""Parses one source file: what it defines, imports and calls.

No code of the file is executed, and nothing recurses: the depth and size of a hostile file cost
bounded time.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tree_sitter import Node, Parser, QueryCursor, Tree

from resolver.code_index.declarations import Declaration, declarations_of
from resolver.code_index.grammars import DECORATED, Syntax, grammar_of, query_of

MOST_NODES = 100_000
"""Maximum number of definitions, imports and calls of one file."""

MOST_DEPTH = 12
"""Maximum nesting of definitions; deeper ones are left out."""

MOST_IMPORTS = 500
MOST_BASES = 20
_NAME_LENGTH = 200
_CHUNK = 1024
_DEEPEST_NODE = 300
"""Maximum depth of syntax nodes that a query visits. Each step costs time in proportion to its
depth, so a file that consists of brackets would take minutes."""

_STRIDE = 1000
"""Number of nodes between two checks of the time."""

_BASE_NAMES = {"identifier", "type_identifier", "constant"}


@dataclass(frozen=True)
class Entity:
    """A definition, a file or a directory.

    name: qualified within the file. start, end: first and last line, from 1. again: True if it is
    not the first definition of that name in its file (an overload, a branch, a setter).
    """

    path: str
    name: str
    kind: str
    start: int
    end: int
    bases: tuple[str, ...] = ()
    again: bool = False

    @property
    def id(self) -> str:
        """The path, or path::Name. The line is added to a repeated definition."""
        if not self.name:
            return self.path
        return f"{self.path}::{self.name}" + (f"@{self.start}" if self.again else "")

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
    path: str, content: bytes, syntax: Syntax, late: Callable[[], bool] = lambda: False
) -> SourceFile:
    """Return the facts about a file.

    late: called repeatedly. If it returns True while the file is parsed, the file has no facts; if
    it does so later, the file has the facts that were found until then.
    """
    lines = count_lines(content)
    try:
        tree = Parser(grammar_of(syntax.name)).parse(
            lambda at, _: content[at : at + _CHUNK], progress_callback=lambda *_: late()
        )
    except ValueError:  # tree-sitter raises this if the progress callback ends the parsing
        return SourceFile(path, syntax.name, lines, complete=False)
    reader = _Reader(path, content, syntax)
    complete = reader.read(tree, late)
    imports = tuple(dict.fromkeys(reader.imports))
    return SourceFile(
        path,
        syntax.name,
        lines,
        tuple(reader.entities),
        imports[:MOST_IMPORTS],
        tuple(dict.fromkeys(reader.calls)),
        complete and len(imports) <= MOST_IMPORTS,
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
        self._open = [_Scope(len(content) + 1, (), path, False)]
        self._known: set[str] = set()
        self._starts: dict[str, int] = {}
        self._decorated: tuple[int, int] = (-1, 0)
        self.entities: list[Entity] = []
        self.imports: list[str] = []
        self.calls: list[SourceCall] = []

    def read(self, tree: Tree, late: Callable[[], bool]) -> bool:
        """Visit every relevant node in the order of the file. Return False if some were left
        out."""
        root = tree.root_node
        found, complete = self._walk(root, late) if root.has_error else (self._query(root), True)
        complete = complete and len(found) <= MOST_NODES
        for node in sorted(found[:MOST_NODES], key=lambda n: (n.start_byte, -n.end_byte)):
            while self._open[-1].end <= node.start_byte:
                self._open.pop()
            if node.type == DECORATED:
                self._decorated = (node.end_byte, node.start_point[0] + 1)
            elif node.type in self._syntax.scopes:
                if len(self._open) > MOST_DEPTH:
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
        cursor.set_max_start_depth(_DEEPEST_NODE)
        return cursor.captures(root).get("found", [])

    def _walk(self, root: Node, late: Callable[[], bool]) -> tuple[list[Node], bool]:
        """Return the relevant nodes of a file with syntax errors, and True if these are all of
        them.

        The parser may turn an error into one node with any number of children, and the time of a
        query grows with the square of that number. A plain walk is always slow, but it can be
        stopped.
        """
        wanted = {*self._syntax.scopes, *self._syntax.imports, *self._syntax.calls, DECORATED}
        found: list[Node] = []
        waiting = [root]
        looked = 0
        while waiting:
            looked += 1
            if looked % _STRIDE == 0 and late():
                return found, False
            node = waiting.pop()
            if node.type in wanted:
                found.append(node)
            waiting += reversed(node.named_children)
        return found, True

    def _define(self, node: Node) -> None:
        for declared in declarations_of(node, self._syntax.scopes[node.type], self._text):
            self._take(node, declared)

    def _take(self, node: Node, declared: Declaration) -> None:
        outer = self._open[0] if declared.is_global else self._open[-1]
        receiver = self._go_receiver(node)
        names = (*outer.names, *((receiver,) if receiver else ()), *declared.names)
        kind = declared.kind
        if kind == "":
            self._open.append(_Scope(node.end_byte, names, outer.id, True))
            return
        is_member = outer.is_class or receiver or len(declared.names) > 1
        if kind == "function" and (is_member or "." in declared.names[-1]):
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
            self._starts.setdefault(qualified, start) != start,
        )
        if declared.is_scope:
            self._open.append(_Scope(node.end_byte, names, entity.id, is_class))
        if entity.id not in self._known:
            self._known.add(entity.id)
            self.entities.append(entity)

    def _first_line(self, node: Node) -> int:
        """Return the first line of the definition, including its decorators."""
        end, line = self._decorated
        return line if end == node.end_byte else int(node.start_point[0]) + 1

    def _bases(self, node: Node) -> tuple[str, ...]:
        waiting = [c for c in node.named_children if c.type in self._syntax.heritage]
        names: list[str] = []
        for _ in range(10 * MOST_BASES):
            if not waiting or len(names) >= MOST_BASES:
                break
            at = waiting.pop(0)
            if at.type in _BASE_NAMES:
                names.append(self._text(at))
            elif at.type not in {"keyword_argument", "type_arguments"}:
                waiting += at.named_children[:MOST_BASES]
        return tuple(names)

    def _import(self, node: Node) -> None:
        if len(self.imports) > 2 * MOST_IMPORTS:
            return
        match self._syntax.name:
            case "python":
                self.imports += self._python_import(node)
            case "rust" if node.type == "mod_item":
                named = node.child_by_field_name("name")
                if named is not None and node.child_by_field_name("body") is None:
                    self.imports.append(f"mod {self._text(named)}")
            case "rust":
                argument = node.child_by_field_name("argument")
                if argument is not None:
                    self.imports.append(self._text(argument).partition("{")[0].rstrip(":"))
            case "java":
                scoped = (c for c in node.named_children if c.type == "scoped_identifier")
                self.imports += [self._text(c) for c in scoped]
            case _:
                path = node.child_by_field_name("path") or node.child_by_field_name("source")
                if path is not None:
                    self.imports.append(self._text(path).strip("\"'`<>"))

    def _python_import(self, node: Node) -> list[str]:
        named = node.children_by_field_name("name")[:MOST_IMPORTS]
        names = [self._text(n).partition(" ")[0] for n in named]
        module = node.child_by_field_name("module_name")
        if module is None:
            return names
        base = self._text(module)
        return [base, *(f"{base}{'' if base.endswith('.') else '.'}{name}" for name in names)]

    def _call(self, node: Node) -> None:
        fields = (node.child_by_field_name(field) for field in self._syntax.callee)
        called = next((field for field in fields if field is not None), None)
        if called is None:
            return
        words = self._tail(called).replace("::", ".").replace("->", ".")
        receiver, _, name = words.rpartition(".")
        of = node.child_by_field_name("object") or node.child_by_field_name("receiver")
        if of is not None and not receiver:
            receiver = self._text(of) or "?"
        if name in {"require", "require_relative"}:
            self.imports += self._required(node, name)
        elif name.isidentifier():
            self.calls.append(SourceCall(self._open[-1].id, receiver, name))

    def _required(self, call: Node, name: str) -> list[str]:
        arguments = call.child_by_field_name("arguments")
        if arguments is None:
            return []
        strings = (c for c in arguments.named_children[:1] if "string" in c.type)
        words = [self._text(c).strip("\"'`") for c in strings]
        return [f"./{w}" if name == "require_relative" else w for w in words]

    def _go_receiver(self, node: Node) -> str:
        if node.type != "method_declaration" or self._syntax.name != "go":
            return ""
        receiver = node.child_by_field_name("receiver")
        text = self._text(receiver) if receiver is not None else ""
        words = text.strip("()").replace("*", " ").partition("[")[0].split()
        return words[-1] if words else ""

    def _text(self, node: Node) -> str:
        """Return the text of the node; "" if it is too long to be a name."""
        if node.end_byte - node.start_byte > _NAME_LENGTH:
            return ""
        return self._content[node.start_byte : node.end_byte].decode("utf-8", "replace").strip()

    def _tail(self, node: Node) -> str:
        """Return the end of the node's text, since a chain of calls may be as long as its file."""
        start = max(node.start_byte, node.end_byte - _NAME_LENGTH)
        text = self._content[start : node.end_byte].decode("utf-8", "replace").strip()
        return text if start == node.start_byte else f"?.{text.rpartition('.')[2]}"


def _last_line(node: Node) -> int:
    """Return the last line of the node. Some grammars end a definition at the start of the next
    line."""
    row, column = node.end_point
    return int(row) + (1 if column > 0 or row == node.start_point[0] else 0)
