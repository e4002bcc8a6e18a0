"""The grammars of the supported languages, and the meaning of their syntax nodes. Only the worker
process loads them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import tree_sitter_c
import tree_sitter_cpp
import tree_sitter_go
import tree_sitter_java
import tree_sitter_javascript
import tree_sitter_python
import tree_sitter_ruby
import tree_sitter_rust
import tree_sitter_typescript
from tree_sitter import Language, Query

from resolver.code_index.languages import language_of

DECORATED = "decorated_definition"
"""Type of a node around a definition. The definition starts at its first line."""


@dataclass(frozen=True)
class Syntax:
    """The meaning of the node types of one grammar. A type that the grammar does not have is
    ignored.

    scopes: node types of definitions with the kind of entity; "" for a type that only adds its name
        to those of its content.
    imports: node types that import other files.
    calls: node types of calls.
    heritage: node types that contain the names of base classes.
    callee: fields of a call that contain what is called.
    shapes: for node types that mostly define nothing, the query pattern that a relevant node
        matches.
    """

    name: str
    grammar: Callable[[], object]
    scopes: dict[str, str]
    imports: frozenset[str]
    calls: frozenset[str]
    heritage: frozenset[str] = frozenset()
    callee: tuple[str, ...] = ("function",)
    shapes: Mapping[str, str] = field(default_factory=dict)


_SCRIPT_SCOPES = {
    "class_declaration": "class",
    "abstract_class_declaration": "class",
    "interface_declaration": "class",
    "enum_declaration": "class",
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "method_definition": "function",
    "variable_declarator": "function",
    "field_definition": "function",
    "public_field_definition": "function",
    "assignment_expression": "function",
    "pair": "function",
    "function_expression": "function",
    "generator_function": "function",
    "class": "class",
    "type_alias_declaration": "class",
}
_SCRIPT_VALUES = "(function_expression) (generator_function) (arrow_function) (class) (object)"
_SCRIPT_SHAPES = {
    "assignment_expression": f"right: [{_SCRIPT_VALUES} (assignment_expression)]",
    "pair": f"value: [{_SCRIPT_VALUES}]",
}
_SCRIPT_IMPORTS = frozenset({"import_statement", "export_statement"})
_SCRIPT_CALLS = frozenset({"call_expression", "new_expression"})
_SCRIPT_HERITAGE = frozenset({"class_heritage", "extends_type_clause"})
_C_SCOPES = {
    "struct_specifier": "class",
    "class_specifier": "class",
    "union_specifier": "class",
    "enum_specifier": "class",
    "function_definition": "function",
    "type_definition": "class",
    "alias_declaration": "class",
    "preproc_def": "variable",
    "preproc_function_def": "function",
}
_INCLUDE, _CALL = frozenset({"preproc_include"}), frozenset({"call_expression"})


def _script(name: str, grammar: Callable[[], object]) -> Syntax:
    return Syntax(
        name,
        grammar,
        _SCRIPT_SCOPES,
        _SCRIPT_IMPORTS,
        _SCRIPT_CALLS,
        _SCRIPT_HERITAGE,
        ("function", "constructor"),
        _SCRIPT_SHAPES,
    )


PYTHON = Syntax(
    "python",
    tree_sitter_python.language,
    {"class_definition": "class", "function_definition": "function"},
    frozenset({"import_statement", "import_from_statement"}),
    frozenset({"call"}),
    frozenset({"argument_list"}),
)
JAVASCRIPT = _script("javascript", tree_sitter_javascript.language)
TYPESCRIPT = _script("typescript", tree_sitter_typescript.language_typescript)
TSX = _script("tsx", tree_sitter_typescript.language_tsx)
GO = Syntax(
    "go",
    tree_sitter_go.language,
    {"type_spec": "class", "function_declaration": "function", "method_declaration": "function"},
    frozenset({"import_spec"}),
    _CALL,
)
JAVA = Syntax(
    "java",
    tree_sitter_java.language,
    {
        "class_declaration": "class",
        "interface_declaration": "class",
        "enum_declaration": "class",
        "record_declaration": "class",
        "method_declaration": "function",
        "constructor_declaration": "function",
    },
    frozenset({"import_declaration"}),
    frozenset({"method_invocation", "object_creation_expression"}),
    frozenset({"superclass", "super_interfaces", "extends_interfaces"}),
    ("name", "type"),
)
RUST = Syntax(
    "rust",
    tree_sitter_rust.language,
    {
        "struct_item": "class",
        "enum_item": "class",
        "trait_item": "class",
        "union_item": "class",
        "type_item": "class",
        "associated_type": "class",
        "impl_item": "",
        "function_item": "function",
        "function_signature_item": "function",
        "macro_definition": "function",
        "const_item": "variable",
        "static_item": "variable",
    },
    frozenset({"use_declaration", "mod_item"}),
    _CALL,
)
C = Syntax("c", tree_sitter_c.language, _C_SCOPES, _INCLUDE, _CALL)
CPP = Syntax(
    "c++", tree_sitter_cpp.language, _C_SCOPES, _INCLUDE, _CALL, frozenset({"base_class_clause"})
)
RUBY = Syntax(
    "ruby",
    tree_sitter_ruby.language,
    {"class": "class", "module": "class", "method": "function", "singleton_method": "function"},
    frozenset(),  # `require` is an ordinary call
    frozenset({"call"}),
    frozenset({"superclass"}),
    ("method",),
)

_SYNTAXES = {
    syntax.name: syntax
    for syntax in (PYTHON, JAVASCRIPT, TYPESCRIPT, TSX, GO, JAVA, RUST, RUBY, C, CPP)
}


def syntax_of(path: str) -> Syntax | None:
    """Return the syntax of a file by its name; None if its language is not supported."""
    return _SYNTAXES.get(language_of(path))


@cache
def grammar_of(syntax_name: str) -> Language:
    """Return the loaded grammar of the language."""
    return Language(_SYNTAXES[syntax_name].grammar())


@cache
def query_of(syntax_name: str) -> Query:
    """Return the query for all nodes whose type occurs in the language's Syntax."""
    syntax, language = _SYNTAXES[syntax_name], grammar_of(syntax_name)
    node_types = {*syntax.scopes, *syntax.imports, *syntax.calls, DECORATED}
    known_types = sorted(
        name for name in node_types if language.id_for_node_kind(name, True) is not None
    )
    shapes = syntax.shapes
    return Query(
        language, "\n".join(f"({name} {shapes.get(name, '')}) @found" for name in known_types)
    )


def load_grammars() -> None:
    """Load all grammars now, because the process can't open a library once it is confined."""
    for name in _SYNTAXES:
        query_of(name)
