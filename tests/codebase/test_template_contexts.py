"""Compares the names that templates read with the fields of the contexts that they are given."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from jinja2 import Environment, nodes
from jinja2.meta import find_undeclared_variables

from resolver.agents.codeact import TagDialect
from resolver.agents.readonly import AnsweringPrompt
from resolver.agents.task_contexts import TaskPrompt
from resolver.config.templates import template_folder
from resolver.entrypoints.webhook.run_list_pages import CostPage, RunListPage, TotalRow
from resolver.github.comments.comment_contexts import (
    CommentContext,
    PullRequestSections,
    ReviewBody,
)
from resolver.github.comments.progress import ProgressSummary
from resolver.github.comments.report import Ending
from resolver.memory.condensers.rules import WorkRecord
from resolver.runtime.environment.environment import SetupFailure
from resolver.runtime.environment.plan import SetupPlan
from resolver.storage.run_index import RunFilter
from resolver.trace.html import TracePage, TraceStatus, TraceSteps
from resolver.trace.markdown import MarkdownHeader, MarkdownStep
from resolver.trace.view import TraceHeader
from resolver.verification.feedback import ChecksFailed
from tests.parts.cases import check_each

COMMENT = tuple(get_type_hints(CommentContext).values())
PULL_REQUEST_PART = "comments/pull_request_part.md.j2"

ANSWERING_AGENTS = ("browsing", "loc", "readonly", "reviewer", "visual_browsing")

CONTEXTS: dict[str, tuple[tuple[type, ...], set[str]]] = {
    **{f"comments/{ending.value}.md.j2": (COMMENT, {"trace"}) for ending in Ending},
    PULL_REQUEST_PART: ((*COMMENT, PullRequestSections), {"part", "of"}),
    "agent/task.md.j2": ((TaskPrompt,), {"marker"}),
    "agent/checks_failed.md.j2": ((ChecksFailed,), set()),
    "agent/setup_failed.md.j2": ((SetupFailure,), set()),
    "run/setup_failed.md.j2": ((SetupFailure,), set()),
    "agent/summary.md.j2": ((WorkRecord,), set()),
    "agent/system.md.j2": ((TagDialect,), {"dialect"}),
    "agent/defined.md.j2": ((TagDialect,), {"dialect", "definition"}),
    **{f"agent/{name}.md.j2": ((AnsweringPrompt,), set()) for name in ANSWERING_AGENTS},
    "comments/review_body.md.j2": ((ReviewBody,), set()),
    "comments/progress.md.j2": ((ProgressSummary,), set()),
    "trace/trace.md.j2": ((MarkdownHeader,), {"notices", "changes", "phases"}),
    "trace/step.md.j2": ((MarkdownStep,), set()),
    "trace/page.html.j2": ((TracePage, TraceStatus, TraceSteps), set()),
    "trace/live.html.j2": ((TraceStatus, TraceSteps), set()),
    "site/runs.html.j2": ((RunListPage,), set()),
    "site/costs.html.j2": ((CostPage,), set()),
}
"""The contexts that each template is rendered with, and the names of single values."""

BLOCK_ASSIGNED = {"lead"}
"""Names that a template sets before it includes the one that reads them."""

SHARED = {
    RunFilter,
    SetupPlan,
    TotalRow,
    TraceHeader,
}
"""Values that are not made for one template, so that not all fields are read."""


@cache
def tree_of(name: str) -> nodes.Template:
    """Return the parsed template. Many include the same ones."""
    return Environment().parse((template_folder() / name).read_text())


def parsed(name: str) -> Iterator[nodes.Template]:
    """Yield the template and all templates that it includes."""
    pending, seen = [name], set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        tree = tree_of(current)
        yield tree
        for include in tree.find_all((nodes.Include, nodes.FromImport)):
            assert isinstance(include.template, nodes.Const), f"{current} includes a computed name"
            pending.append(include.template.value)


def assigned_names(tree: nodes.Template) -> set[str]:
    """Return the names that a template sets, which the templates that it includes can read."""
    assignments = (*tree.find_all(nodes.Assign), *tree.find_all(nodes.AssignBlock))
    macros = {macro.name for macro in tree.find_all(nodes.Macro)}
    return macros | {
        assignment.target.name
        for assignment in assignments
        if isinstance(assignment.target, nodes.Name)
    }


@cache
def read_names(name: str) -> set[str]:
    """Return the names that a template and the templates that it includes take from a context."""
    trees = list(parsed(name))
    assigned = set().union(*map(assigned_names, trees))
    return set().union(*map(find_undeclared_variables, trees)) - assigned


@cache
def read_attributes(name: str) -> set[str]:
    """Return all attributes that a template and the templates that it includes read."""
    attributes: set[str] = set()
    for tree in parsed(name):
        attributes |= {access.attr for access in tree.find_all(nodes.Getattr)}
        for filter_node in tree.find_all(nodes.Filter):
            if filter_node.name in {"selectattr", "rejectattr"} and isinstance(
                filter_node.args[0], nodes.Const
            ):
                attributes.add(filter_node.args[0].value)
    return attributes


def parts_of(annotation: Any) -> Iterator[Any]:
    """Yield the types that an annotation is made of."""
    yield get_origin(annotation) or annotation
    for argument in get_args(annotation):
        yield from parts_of(argument)


def field_types(context: type) -> dict[str, Any]:
    assert is_dataclass(context)
    hints = get_type_hints(context)
    return {field.name: hints[field.name] for field in fields(context)}


def nested_contexts(context: type, seen: set[type]) -> set[type]:
    """Return the dataclasses that the fields of a context hold, at any depth."""
    for annotation in field_types(context).values():
        for part in parts_of(annotation):
            if isinstance(part, type) and is_dataclass(part) and part not in seen:
                seen.add(part)
                nested_contexts(part, seen)
    return seen


def dataclass_in(annotation: Any) -> type | None:
    """Return the dataclass of a field that holds one, or possibly None."""
    options = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    found = [option for option in options if isinstance(option, type) and is_dataclass(option)]
    return found[0] if len(found) == 1 else None


def test_a_template_reads_only_names_that_its_context_has() -> None:
    check_each(CONTEXTS, check_names)


def check_names(name: str) -> None:
    contexts, values = CONTEXTS[name]
    types = {field: kind for context in contexts for field, kind in field_types(context).items()}
    assert read_names(name) - BLOCK_ASSIGNED <= types.keys() | values
    for tree in parsed(name):
        for access in tree.find_all(nodes.Getattr):
            if isinstance(access.node, nodes.Name) and access.node.ctx == "load":
                nested = dataclass_in(types.get(access.node.name))
                known = {*field_types(nested), *dir(nested)} if nested else {access.attr}
                assert access.attr in known, f"{access.node.name} has no {access.attr}"


ALL_CONTEXTS = sorted(
    {context for contexts, _ in CONTEXTS.values() for context in contexts},
    key=lambda context: context.__name__,
)


def test_each_field_of_a_context_is_read_by_a_template() -> None:
    check_each(ALL_CONTEXTS, check_fields)


def check_fields(context: type) -> None:
    names = [name for name, (contexts, _) in CONTEXTS.items() if context in contexts]
    assert field_types(context).keys() <= set().union(*map(read_names, names))
    attributes = set().union(*map(read_attributes, names))
    for nested in nested_contexts(context, set()) - SHARED:
        assert field_types(nested).keys() <= attributes, nested.__name__


def test_the_groups_of_a_context_share_no_name() -> None:
    for contexts, values in CONTEXTS.values():
        names = [*values, *(name for context in contexts for name in field_types(context))]
        assert len(names) == len(set(names))
