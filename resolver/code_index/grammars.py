"""The grammars of the supported languages, and the queries for what their files define and refer
to. Only the worker process loads them.

Each grammar comes with a query for tags (https://tree-sitter.github.io/tree-sitter/4-code-navigation.html).
Ours beside it has what that leaves out: names with their owner, decorators, macros, values of
assignments, base classes, and all calls in C.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
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

_DOCUMENTATION = re.compile(
    r"\(comment\)\* @doc\s*\.|\(#(?:strip|select-adjacent|set-adjacent)!.*\)"
)
"""Parts of a query for tags that collect comments, which takes quadratic time in their number."""


@dataclass(frozen=True)
class Syntax:
    """A grammar with its queries.

    tags: the query of the grammar's package. own: ours, where @scope only adds its name to those of
        its content, and @owner is the type of a method outside of that type.
    """

    name: str
    grammar: Callable[[], object]
    tags: str
    own: str


_PYTHON = """
(decorated_definition definition: (class_definition name: (_) @name)) @definition.class
(decorated_definition definition: (function_definition name: (_) @name)) @definition.function
(class_definition superclasses: (argument_list [
  (identifier) @name (attribute attribute: (identifier) @name)])) @reference.implementation
"""
_FUNCTIONS = "(function_expression) (generator_function) (arrow_function)"
_SCRIPT = "(method_definition name: (_) @name) @definition.method\n" + "".join(
    f"({target} {value}: [{_FUNCTIONS}]) @definition.function\n"
    f"({target} {value}: (class)) @definition.class\n"
    f"({target} {value}: (assignment_expression right: [{_FUNCTIONS}])) @definition.function\n"
    f"({target} {value}: (assignment_expression right: (class))) @definition.class\n"
    f"({target} {value}: (object)) @scope\n"
    for target, value in (
        ("variable_declarator name: (identifier) @name", "value"),
        ("assignment_expression left: (_) @name", "right"),
        ("pair key: (_) @name", "value"),
    )
)
_JAVASCRIPT = f"""
(field_definition property: (_) @name value: [{_FUNCTIONS}]) @definition.function
(class_heritage (identifier) @name) @reference.implementation
"""
_TYPESCRIPT = f"""
(public_field_definition name: (_) @name value: [{_FUNCTIONS}]) @definition.function
(enum_declaration name: (_) @name) @definition.class
(type_alias_declaration name: (_) @name) @definition.type
(class_heritage (extends_clause value: (identifier) @name)) @reference.implementation
(class_heritage (implements_clause (type_identifier) @name)) @reference.implementation
(extends_type_clause (type_identifier) @name) @reference.implementation
"""
_GO = "(method_declaration receiver: (_) @owner name: (_) @name) @definition.method"
_JAVA = """
(enum_declaration name: (_) @name) @definition.class
(record_declaration name: (_) @name) @definition.class
(constructor_declaration name: (_) @name) @definition.method
(superclass (type_identifier) @name) @reference.implementation
"""
_RUST = """
(impl_item type: (_) @name) @scope
(associated_type name: (_) @name) @definition.type
(function_signature_item name: (_) @name) @definition.function
(const_item name: (_) @name) @definition.variable
(static_item name: (_) @name) @definition.variable
(call_expression function: (scoped_identifier name: (_) @name)) @reference.call
"""
_RUBY = "(superclass (constant) @name) @reference.implementation"
_C = """
(function_definition declarator: (_) @name) @definition.function
(type_definition declarator: (_) @name) @definition.type
(union_specifier name: (_) @name body: (_)) @definition.class
(preproc_def name: (_) @name) @definition.variable
(preproc_function_def name: (_) @name) @definition.function
(call_expression function: (identifier) @name) @reference.call
(call_expression function: (field_expression field: (field_identifier) @name)) @reference.call
"""
_CPP = """
(struct_specifier name: (_) @name body: (_)) @definition.class
(class_specifier name: (_) @name body: (_)) @definition.class
(alias_declaration name: (_) @name) @definition.type
(call_expression function: (qualified_identifier name: (_) @name)) @reference.call
(base_class_clause (type_identifier) @name) @reference.implementation
"""
_TYPESCRIPT_TAGS = tree_sitter_javascript.TAGS_QUERY + tree_sitter_typescript.TAGS_QUERY

_SYNTAXES = {
    syntax.name: syntax
    for syntax in (
        Syntax("python", tree_sitter_python.language, tree_sitter_python.TAGS_QUERY, _PYTHON),
        Syntax(
            "javascript",
            tree_sitter_javascript.language,
            tree_sitter_javascript.TAGS_QUERY,
            _SCRIPT + _JAVASCRIPT,
        ),
        Syntax(
            "typescript",
            tree_sitter_typescript.language_typescript,
            _TYPESCRIPT_TAGS,
            _SCRIPT + _TYPESCRIPT,
        ),
        Syntax("tsx", tree_sitter_typescript.language_tsx, _TYPESCRIPT_TAGS, _SCRIPT + _TYPESCRIPT),
        Syntax("go", tree_sitter_go.language, tree_sitter_go.TAGS_QUERY, _GO),
        Syntax("java", tree_sitter_java.language, tree_sitter_java.TAGS_QUERY, _JAVA),
        Syntax("rust", tree_sitter_rust.language, tree_sitter_rust.TAGS_QUERY, _RUST),
        Syntax("ruby", tree_sitter_ruby.language, tree_sitter_ruby.TAGS_QUERY, _RUBY),
        Syntax("c", tree_sitter_c.language, tree_sitter_c.TAGS_QUERY, _C),
        Syntax("c++", tree_sitter_cpp.language, tree_sitter_cpp.TAGS_QUERY, _C + _CPP),
    )
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
    """Return the query for what a file of the language defines and refers to."""
    syntax = _SYNTAXES[syntax_name]
    query = Query(grammar_of(syntax_name), _DOCUMENTATION.sub("", syntax.tags) + syntax.own)
    for pattern in range(query.pattern_count):
        if query.pattern_assertions(pattern):  # every identifier of Ruby that is "not local"
            query.disable_pattern(pattern)
    return query


def load_grammars() -> None:
    """Load all grammars now, because the process can't open a library once it is confined."""
    for name in _SYNTAXES:
        query_of(name)
