"""The tag dialect: conversion between actions and tags like `<execute_bash>...</execute_bash>`.

The tag of a tool is derived from the model of its arguments. Its only required argument is the
content. Other texts, lists and objects are elements inside the tag, the rest are attributes; a
model may also write any argument as an attribute. Lists and objects are JSON.

Parsing never fails: any text results in actions, in no action (prose only), or in one `Invalid`
that explains to the model what was wrong. If one block can't be read, no block is executed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from resolver.agents.markup import (
    Block,
    MarkupFault,
    find_blocks,
    split_elements,
    write_block,
)
from resolver.agents.tools.base import Tool
from resolver.agents.tools.calls import MCP_TAG as MCP
from resolver.agents.tools.calls import parse_action, parse_mcp_tag, suggest_name, write_call
from resolver.agents.tools.registry import TOOL_NAMES, TOOLS, tool_of
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.models.base import JsonObject
from resolver.models.run import McpTool

_OTHER_NAMES = {"execute_ipython": "execute_ipython_cell"}
"""Names of tags that models know from CodeAct, and the tools that they stand for."""

TAG_NAMES = (*TOOL_NAMES, *_OTHER_NAMES)
"""Tags that are recognized, apart from the one for MCP tools."""

_ANY_OPENING_TAG = re.compile(r"^[ \t]*<([a-z_]+)(?: [^<>\n]*)?>", re.MULTILINE)
_MIN_SUGGESTION_LENGTH = 5
"""Minimum length of an unknown tag's name for which a suggestion is made."""


@dataclass(frozen=True)
class TagForm:
    """Which arguments of a tool stand where in its tag. Those not named here are attributes.

    content: None if the tag contains elements only.
    """

    content: str | None
    elements: tuple[str, ...]


@dataclass(frozen=True)
class ShownTool:
    """A tool as the system prompt shows it to a model without native tool calls.

    form: its tag, with what each argument is in the place of its value.
    attributes: descriptions of the arguments that are attributes, by name.
    """

    name: str
    description: str
    form: str
    attributes: Mapping[str, str]


def show_tools(specs: Sequence[JsonObject]) -> tuple[ShownTool, ...]:
    """Return the tools for a prompt, from their native specifications in OpenAI's format."""
    return tuple(_shown_tool(**spec["function"]) for spec in specs)


def parse_tags(
    text: str,
    is_truncated: bool = False,
    mcp: Sequence[McpTool] = (),
    tag_names: Sequence[str] = (),
) -> tuple[ActionBase, ...]:
    """Return the actions of a reply in order, () if it has none. Prose becomes their thought.

    is_truncated: the provider ended the reply at its output limit.
    mcp: the MCP tools that were offered; without any, the tag `mcp` does not exist.
    tag_names: the agent's tags, listed in the feedback on a reply that can't be read; all tags if
    empty.
    """
    tag_names = tag_names or TOOL_NAMES
    known = (*TAG_NAMES, MCP) if mcp else TAG_NAMES
    reasoning, text_after_reasoning = _split_reasoning(text, known)
    parsed = find_blocks(text_after_reasoning, known, is_truncated)
    if isinstance(parsed, MarkupFault):
        return (_invalid_action([parsed.reason], is_truncated, tag_names),)
    if not parsed.blocks:
        problem = _find_misspelled_tag(text_after_reasoning, parsed.has_fenced_tags)
        return (_invalid_action([problem], is_truncated, tag_names),) if problem else ()
    actions: list[ActionBase] = []
    for block in parsed.blocks:
        outcome = parse_mcp_tag(block, mcp) if block.name == MCP else _action_of_block(block)
        if isinstance(outcome, tuple):
            return (_invalid_action(list(outcome), is_truncated, tag_names),)
        actions.append(outcome)
    prose = (part.strip() for part in (reasoning, *parsed.prose))
    thought = "\n\n".join(part for part in prose if part)
    return (actions[0].model_copy(update={"thought": thought}), *actions[1:])


def write_tags(action: ActionBase) -> str:
    """Return the action as a model writes it, so that `parse_tags` returns the same action.

    Raises KeyError for actions that this dialect does not have.
    """
    if isinstance(action, a.McpCall):
        return write_call(action)
    found = tool_of(action)
    if found is None:
        raise KeyError(type(action).__name__)
    tool, arguments = found
    fields = tool.arguments.model_fields
    all_texts = tool.arguments.texts_of(arguments)
    texts = {
        name: text for name, text in all_texts.items() if arguments[name] != fields[name].default
    }
    form = _tag_form(tool.name)
    content = texts.get(form.content, "") if form.content else ""
    elements = {name: _wrap(texts[name], name, tool) for name in form.elements if name in texts}
    inner = content + "".join(f"\n{write_block(name, {}, elements[name])}" for name in elements)
    is_attribute = {name: name not in (form.content, *form.elements) for name in texts}
    if split_elements(inner, form.elements) != (content, elements):
        # The content ends like elements, which could not be distinguished from the real ones.
        inner = content
        texts = {name: text for name, text in all_texts.items() if name in form.elements} | texts
        is_attribute = {name: name != form.content for name in texts}
    attributes = {name: text for name, text in texts.items() if is_attribute[name]}
    return write_block(tool.name, attributes, f"\n{inner}\n")


@cache
def _tag_form(tool_name: str) -> TagForm:
    arguments = TOOLS[tool_name].arguments
    required = [name for name, field in arguments.model_fields.items() if field.is_required()]
    content = required[0] if len(required) == 1 else None
    properties = arguments.model_json_schema()["properties"]
    elements = (
        name for name, schema in properties.items() if name != content and _is_element(schema)
    )
    return TagForm(content, tuple(elements))


def _is_element(schema: JsonObject) -> bool:
    return schema["type"] in {"string", "array", "object"} and "enum" not in schema


def _shown_tool(name: str, description: str, parameters: JsonObject) -> ShownTool:
    form = _tag_form(name)
    properties: JsonObject = parameters["properties"]
    attributes = {
        key: schema
        for key, schema in properties.items()
        if key not in (form.content, *form.elements)
    }
    values = "".join(f' {key}="{_value_form(schema)}"' for key, schema in attributes.items())
    elements = [
        f"<{key}>{_text_form(properties[key])}</{key}>"
        for key in form.elements
        if key in properties
    ]
    content = [_text_form(properties[form.content])] if form.content else []
    return ShownTool(
        name=name,
        description=description,
        form="\n".join([f"<{name}{values}>", *content, *elements, f"</{name}>"]),
        attributes={key: schema["description"] for key, schema in attributes.items()},
    )


def _text_form(schema: JsonObject) -> str:
    """Return what stands in the place of a text, a list or an object: what it is."""
    form = "" if schema["type"] == "string" else f" {_value_form(schema)}"
    return f"{schema['description']}{form}"


def _value_form(schema: JsonObject) -> str:
    """Return the form of a value, like `low|high` or `[{"path": string}, ...]`."""
    if "enum" in schema:
        return "|".join(schema["enum"])
    if "items" in schema:
        return f"[{_value_form(schema['items'])}, ...]"
    if "properties" in schema:
        fields = (f'"{key}": {_value_form(v)}' for key, v in schema["properties"].items())
        return f"{{{', '.join(fields)}}}"
    return str(schema["type"])


def _wrap(text: str, name: str, tool: Tool) -> str:
    # The closing tag of a verbatim argument follows its text without a newline, so that a text
    # without a final newline can be written.
    return f"\n{text}" if name in tool.arguments.verbatim else f"\n{text}\n"


def _unwrap(text: str, name: str | None, tool: Tool) -> str:
    """Return the text without the newlines next to the opening and the closing tag."""
    text = text.removeprefix("\n")
    return text if name in tool.arguments.verbatim else text.removesuffix("\n")


def _action_of_block(block: Block) -> ActionBase | tuple[str, ...]:
    """Return the action of a block, or the problems with it."""
    tool = TOOLS[_OTHER_NAMES.get(block.name, block.name)]
    form = _tag_form(tool.name)
    given: JsonObject = dict(block.attributes)
    content = _unwrap(block.content, form.content, tool)
    if form.content is None:
        names = tuple(tool.arguments.model_fields)
    else:
        names = tuple(name for name in form.elements if name not in given)
    split = split_elements(content, names)
    if isinstance(split, MarkupFault) and form.content is None:
        return (split.reason,)
    # What is not clearly an element belongs to the content, so that nothing gets lost.
    text, elements = (content, {}) if isinstance(split, MarkupFault) else split
    arguments = {name: _unwrap(element, name, tool) for name, element in elements.items()}
    if form.content is not None:
        arguments[form.content] = text
    elif text.strip():
        allowed = ", ".join(f"<{name}>" for name in names)
        return (f"<{block.name}> holds nothing but {allowed}",)
    for name in arguments:
        if name in given:
            return (f"{name} is given twice in <{block.name}>",)
    return parse_action(tool.name, given | arguments)


def _split_reasoning(text: str, names: Sequence[str]) -> tuple[str, str]:
    """Split off reasoning at the start of a reply that ends with an unmatched `</think>`.

    The chat templates of some models leave it there. Tags in the reasoning are drafts, not actions.
    """
    reasoning, closing_tag, reply_text = text.partition("</think>")
    if not closing_tag or "<think" in reasoning:
        return "", text
    is_inside_block = isinstance(find_blocks(reasoning, names, is_truncated=True), MarkupFault)
    return ("", text) if is_inside_block else (reasoning, reply_text)


def _find_misspelled_tag(text: str, has_fenced_tags: bool) -> str | None:
    """Return the problem with a reply that has no tag, None if it is only prose."""
    if has_fenced_tags:
        return "a tag inside a code fence is text and is not run: write it without the fence"
    for match in _ANY_OPENING_TAG.finditer(text):
        hint = suggest_name(match[1], TAG_NAMES) if len(match[1]) >= _MIN_SUGGESTION_LENGTH else ""
        if hint and f"</{match[1]}>" in text:
            return f"there is no tag <{match[1]}>{hint}"
    return None


def _invalid_action(problems: list[str], is_truncated: bool, tags: Sequence[str]) -> a.Invalid:
    reason = render("agent/invalid_tags.md.j2", problems=problems, tags=tags, cut=is_truncated)
    return a.Invalid(reason=reason.strip())
