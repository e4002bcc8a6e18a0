"""The grammars of the supported languages, and the queries for what their files define and refer
to. Only the worker process loads them.

Each grammar comes with a query for tags (https://tree-sitter.github.io/tree-sitter/4-code-navigation.html).
Ours beside it has what that leaves out: decorators, macros, the whole of C's functions, the types
of methods that stand outside of them, and base classes.
"""

import re
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

_DOCUMENTATION = re.compile(
    r"\(comment\)\* @doc\s*\.|\(#(?:strip|select-adjacent|set-adjacent)!.*\)"
)
"""Parts of a query for tags that collect comments, which takes quadratic time in their number."""

# @scope only adds its name to the names of its content; @owner is the type of a method.
_PYTHON = """
(decorated_definition definition: (class_definition name: (_) @name)) @definition.class
(decorated_definition definition: (function_definition name: (_) @name)) @definition.function
(class_definition superclasses: (argument_list [
  (identifier) @name (attribute attribute: (identifier) @name)])) @reference.implementation
"""
_FUNCTIONS = "[(function_expression) (generator_function) (arrow_function)]"
_SCRIPT = f"""
(method_definition name: (_) @name) @definition.method
(variable_declarator name: (identifier) @name value: (class)) @definition.class
(assignment_expression left: (_ property: (_) @name) right: (class)) @definition.class
(pair key: (_) @name value: {_FUNCTIONS}) @definition.function
"""
_JAVASCRIPT = f"""
(field_definition property: (_) @name value: {_FUNCTIONS}) @definition.function
(class_heritage (identifier) @name) @reference.implementation
"""
_TYPESCRIPT = f"""
(public_field_definition name: (_) @name value: {_FUNCTIONS}) @definition.function
(enum_declaration name: (_) @name) @definition.class
(type_alias_declaration name: (_) @name) @definition.type
(class_heritage (extends_clause value: (identifier) @name)) @reference.implementation
(class_heritage (implements_clause (type_identifier) @name)) @reference.implementation
(extends_type_clause (type_identifier) @name) @reference.implementation
"""
_GO = """
(method_declaration receiver: (parameter_list (parameter_declaration type: [
  (type_identifier) @owner
  (pointer_type [(type_identifier) @owner (generic_type type: (_) @owner)])
  (generic_type type: (_) @owner)])) name: (_) @name) @definition.method
"""
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
(function_definition declarator: (function_declarator declarator: (_) @name)) @definition.function
(function_definition declarator: (_ declarator: (function_declarator declarator: (_) @name))
  ) @definition.function
(function_definition declarator: (_ declarator: (_ declarator: (function_declarator
  declarator: (_) @name)))) @definition.function
(type_definition declarator: (_ declarator: (type_identifier) @name)) @definition.type
(type_definition declarator: (function_declarator declarator: (parenthesized_declarator
  (pointer_declarator declarator: (type_identifier) @name)))) @definition.type
(union_specifier name: (_) @name body: (_)) @definition.class
(preproc_def name: (_) @name) @definition.variable
(preproc_function_def name: (_) @name) @definition.function
(call_expression function: (identifier) @name) @reference.call
(call_expression function: (field_expression field: (field_identifier) @name)) @reference.call
"""
_CPP = """
(function_definition declarator: (reference_declarator (function_declarator
  declarator: (_) @name))) @definition.function
(namespace_definition name: (_) @name) @scope
(struct_specifier name: (_) @name body: (_)) @definition.class
(class_specifier name: (_) @name body: (_)) @definition.class
(alias_declaration name: (_) @name) @definition.type
(call_expression function: (qualified_identifier name: (_) @name)) @reference.call
(base_class_clause (type_identifier) @name) @reference.implementation
"""
_SCRIPT_TAGS = tree_sitter_javascript.TAGS_QUERY + _SCRIPT
_TYPESCRIPT_QUERY = _SCRIPT_TAGS + tree_sitter_typescript.TAGS_QUERY + _TYPESCRIPT

_GRAMMARS = {
    "python": (tree_sitter_python.language, tree_sitter_python.TAGS_QUERY + _PYTHON),
    "javascript": (tree_sitter_javascript.language, _SCRIPT_TAGS + _JAVASCRIPT),
    "typescript": (tree_sitter_typescript.language_typescript, _TYPESCRIPT_QUERY),
    "tsx": (tree_sitter_typescript.language_tsx, _TYPESCRIPT_QUERY),
    "go": (tree_sitter_go.language, tree_sitter_go.TAGS_QUERY + _GO),
    "java": (tree_sitter_java.language, tree_sitter_java.TAGS_QUERY + _JAVA),
    "rust": (tree_sitter_rust.language, tree_sitter_rust.TAGS_QUERY + _RUST),
    "ruby": (tree_sitter_ruby.language, tree_sitter_ruby.TAGS_QUERY + _RUBY),
    "c": (tree_sitter_c.language, tree_sitter_c.TAGS_QUERY + _C),
    "c++": (tree_sitter_cpp.language, tree_sitter_cpp.TAGS_QUERY + _C + _CPP),
}


@cache
def grammar_of(language: str) -> tuple[Language, Query]:
    """Return the grammar of the language, and the query for what a file defines and refers to."""
    load, tags = _GRAMMARS[language]
    grammar = Language(load())
    query = Query(grammar, _DOCUMENTATION.sub("", tags))
    for pattern in range(query.pattern_count):
        if query.pattern_assertions(pattern):  # every identifier of Ruby that is "not local"
            query.disable_pattern(pattern)
    return grammar, query


def load_grammars() -> None:
    """Load all grammars now, because the process can't open a library once it is confined."""
    for language in _GRAMMARS:
        grammar_of(language)
