"""Determines what a syntax node defines: names and kinds of entities, by the rules of its
language."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

MOST_NESTED = 12
"""Maximum nesting of declarators or assignments that are searched for a name."""

MOST_DECLARED = 20
"""Maximum number of names that one node may define."""

_FUNCTIONS: Final = frozenset({"arrow_function", "function_expression", "generator_function"})
_ASSIGNED: Final = {
    "variable_declarator": ("name", "value"),
    "field_definition": ("property", "value"),
    "public_field_definition": ("name", "value"),
    "pair": ("key", "value"),
    "assignment_expression": ("left", "right"),
}
"""JavaScript nodes that give a name to a value, with the fields of the name and of the value."""

_NAMED_BY_ITSELF: Final = frozenset({"function_expression", "generator_function", "class"})
_MACROS: Final = frozenset({"preproc_def", "preproc_function_def"})
_DECLARED: Final = frozenset(
    {"identifier", "field_identifier", "type_identifier", "primitive_type", "qualified_identifier"}
)
"""Node types that contain the name in a C declarator."""

Text = Callable[[Node], str]
"""Returns the text of a node; "" if it is too long to be a name."""


@dataclass(frozen=True)
class Declaration:
    """One definition.

    names: qualified within the definition around it.
    kind: as in `Entity`; "" for a node that only adds its names to those of its content.
    is_scope: True if the content of the node belongs to the definition.
    is_global: True if the definition belongs to the file, wherever it stands.
    """

    names: tuple[str, ...]
    kind: str
    is_scope: bool = True
    is_global: bool = False


def declarations_of(node: Node, kind: str, text: Text) -> tuple[Declaration, ...]:
    """Return what the node defines; () for a node that only refers to something.

    kind: the kind that belongs to the node's type.
    """
    if node.type in _ASSIGNED:
        return _assigned(node, text)
    if node.type == "type_definition":
        declared = map(_declared, node.children_by_field_name("declarator")[:MOST_DECLARED])
        names = (text(name) for name in declared if name is not None)
        return tuple(Declaration((name,), kind, is_scope=False) for name in names if name)
    if node.type in _NAMED_BY_ITSELF and _is_value(node):
        return ()
    if node.type.endswith("_specifier") and node.child_by_field_name("body") is None:
        return ()  # a reference to the type, such as `struct a *b`
    named = _name_node(node)
    name = text(named).replace("::", ".") if named is not None else ""
    if not name or "\n" in name:
        return ()
    is_macro = node.type in _MACROS
    return (Declaration((name,), kind, not is_macro, is_macro),)


def _name_node(node: Node) -> Node | None:
    """Return the node that contains a definition's name, which in C is deep inside of the
    declarator."""
    named = node.child_by_field_name("name") or node.child_by_field_name("property")
    if named is None and node.type == "impl_item":
        named = node.child_by_field_name("type")
    return named or _declared(node.child_by_field_name("declarator"))


def _declared(node: Node | None) -> Node | None:
    for _ in range(MOST_NESTED):
        if node is None or node.type in _DECLARED:
            break
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type == "parenthesized_declarator":
            inner = node.named_child(node.named_child_count - 1)
        node = inner
    return node


def _is_value(node: Node) -> bool:
    """Return True if the node is the value of an assignment, which gives it its name."""
    parent = node.parent
    if parent is None or parent.type not in _ASSIGNED:
        return False
    return parent.child_by_field_name(_ASSIGNED[parent.type][1]) == node


def _assigned(node: Node, text: Text) -> tuple[Declaration, ...]:
    """Return the definition of a function, class or object by an assignment in JavaScript."""
    name_field, value_field = _ASSIGNED[node.type]
    target, value = node.child_by_field_name(name_field), node.child_by_field_name(value_field)
    is_chain = False
    for _ in range(MOST_NESTED):
        if value is None or value.type != "assignment_expression":
            break
        value, is_chain = value.child_by_field_name("right"), True
    if target is None or value is None:
        return ()
    names = _target_names(target, text)
    if names is None:
        return ()
    if value.type == "object":
        return (Declaration(names, ""),) if names else ()
    if value.type not in _FUNCTIONS and value.type != "class":
        return ()
    if not names:
        own = value.child_by_field_name("name")
        names = ((text(own) if own is not None else "") or "exports",)
    kind = "class" if value.type == "class" else "function"
    # in `a = b = function` the body belongs to the inner assignment
    return (Declaration(names, kind, is_scope=not is_chain),)


def _target_names(target: Node, text: Text) -> tuple[str, ...] | None:
    """Return the names of an assignment's target; () for a module's own exports, None for a target
    without a known name.

    `exports.x` and `this.x` are x, `A.prototype.x` is A.x, and `a[name]` with a computed name is
    a.[name].
    """
    last = ""
    if target.type == "subscript_expression":
        index, of = target.child_by_field_name("index"), target.child_by_field_name("object")
        word = text(index) if index is not None else ""
        if of is None or not word or "\n" in word:
            return None
        is_known = index is not None and index.type == "string"
        target, last = of, word[1:-1] if is_known else f"[{word}]"
    words = text(target)
    if target.type == "string":
        words, last = "", words[1:-1]
    parts = [part.strip() for part in words.split(".")] if words else []
    if not (parts or last) or not all(map(_is_name, parts)):
        return None
    if parts[:2] == ["module", "exports"]:
        parts = parts[2:]
    elif parts[:1] == ["exports"] or parts[:1] == ["this"]:
        parts = parts[1:]
    names = [part for part in (*parts, last) if part and part != "prototype"]
    return tuple(names)


def _is_name(word: str) -> bool:
    return word.replace("$", "_").removeprefix("#").isidentifier()
