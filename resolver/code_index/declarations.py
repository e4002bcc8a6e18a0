"""Determines what a syntax node defines: names and kinds of entities, by the rules of its
language."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

MAX_NESTING = 12
"""Maximum nesting of declarators or assignments that are searched for a name."""

MAX_NAMES = 20
"""Maximum number of names that one node may define."""

_FUNCTIONS: Final = frozenset({"arrow_function", "function_expression", "generator_function"})
_ASSIGNMENTS: Final = {
    "variable_declarator": ("name", "value"),
    "field_definition": ("property", "value"),
    "public_field_definition": ("name", "value"),
    "pair": ("key", "value"),
    "assignment_expression": ("left", "right"),
}
"""JavaScript nodes that give a name to a value, with the fields of the name and of the value."""

_OPTIONALLY_NAMED: Final = frozenset({"function_expression", "generator_function", "class"})
_MACROS: Final = frozenset({"preproc_def", "preproc_function_def"})
_NAME_TYPES: Final = frozenset(
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
    if node.type in _ASSIGNMENTS:
        return _declarations_by_assignment(node, text)
    if node.type == "type_definition":
        name_nodes = map(_declarator_name, node.children_by_field_name("declarator")[:MAX_NAMES])
        names = (text(name) for name in name_nodes if name is not None)
        return tuple(Declaration((name,), kind, is_scope=False) for name in names if name)
    if node.type in _OPTIONALLY_NAMED and _is_value(node):
        return ()
    if node.type.endswith("_specifier") and node.child_by_field_name("body") is None:
        return ()  # a reference to the type, such as `struct a *b`
    name_node = _name_node(node)
    name = text(name_node).replace("::", ".") if name_node is not None else ""
    if not name or "\n" in name:
        return ()
    is_macro = node.type in _MACROS
    return (Declaration((name,), kind, not is_macro, is_macro),)


def _name_node(node: Node) -> Node | None:
    """Return the node that contains a definition's name, which in C is deep inside of the
    declarator."""
    name_node = node.child_by_field_name("name") or node.child_by_field_name("property")
    if name_node is None and node.type == "impl_item":
        name_node = node.child_by_field_name("type")
    return name_node or _declarator_name(node.child_by_field_name("declarator"))


def _declarator_name(node: Node | None) -> Node | None:
    for _ in range(MAX_NESTING):
        if node is None or node.type in _NAME_TYPES:
            break
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type == "parenthesized_declarator":
            inner = node.named_child(node.named_child_count - 1)
        node = inner
    return node


def _is_value(node: Node) -> bool:
    """Return True if the node is the value of an assignment, which gives it its name."""
    parent = node.parent
    if parent is None or parent.type not in _ASSIGNMENTS:
        return False
    return parent.child_by_field_name(_ASSIGNMENTS[parent.type][1]) == node


def _declarations_by_assignment(node: Node, text: Text) -> tuple[Declaration, ...]:
    """Return the definition of a function, class or object by an assignment in JavaScript."""
    name_field, value_field = _ASSIGNMENTS[node.type]
    target, value = node.child_by_field_name(name_field), node.child_by_field_name(value_field)
    is_chain = False
    for _ in range(MAX_NESTING):
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
        own_name = value.child_by_field_name("name")
        names = ((text(own_name) if own_name is not None else "") or "exports",)
    kind = "class" if value.type == "class" else "function"
    # in `a = b = function` the body belongs to the inner assignment
    return (Declaration(names, kind, is_scope=not is_chain),)


def _target_names(target: Node, text: Text) -> tuple[str, ...] | None:
    """Return the names of an assignment's target; () for a module's own exports, None for a target
    without a known name.

    `exports.x` and `this.x` are x, `A.prototype.x` is A.x, and `a[name]` with a computed name is
    a.[name].
    """
    last_part = ""
    if target.type == "subscript_expression":
        index, container = target.child_by_field_name("index"), target.child_by_field_name("object")
        index_text = text(index) if index is not None else ""
        if container is None or not index_text or "\n" in index_text:
            return None
        is_literal = index is not None and index.type == "string"
        target, last_part = container, index_text[1:-1] if is_literal else f"[{index_text}]"
    target_text = text(target)
    if target.type == "string":
        target_text, last_part = "", target_text[1:-1]
    parts = [part.strip() for part in target_text.split(".")] if target_text else []
    if not (parts or last_part) or not all(map(_is_name, parts)):
        return None
    if parts[:2] == ["module", "exports"]:
        parts = parts[2:]
    elif parts[:1] == ["exports"] or parts[:1] == ["this"]:
        parts = parts[1:]
    names = [part for part in (*parts, last_part) if part and part != "prototype"]
    return tuple(names)


def _is_name(text: str) -> bool:
    return text.replace("$", "_").removeprefix("#").isidentifier()
