"""The tag dialect: conversion between actions and tags like `<execute_bash>...</execute_bash>`.

Parsing never fails: any text results in actions, in no action (prose only), or in one `Invalid`
that explains to the model what was wrong. If one block can't be read, no block is executed.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache

from resolver.agents.markup import Block, Grammar, MarkupFault, find_blocks, write_block
from resolver.agents.tools.base import Tag, Tool
from resolver.agents.tools.calls import MCP_TAG as MCP
from resolver.agents.tools.calls import parse_action, parse_mcp_tag, suggest_name, write_call
from resolver.agents.tools.registry import TOOLS, tool_of
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.models.base import JsonObject
from resolver.models.run import McpTool

TAG_NAMES = tuple(tool.tag_name for tool in TOOLS.values())
"""Tags that can be offered to a model."""

_TOOL_BY_TAG = TOOLS | {tool.tag_name: tool for tool in TOOLS.values()}
_PARENTS = {tool.name: tool for tool in TOOLS.values() if not tool.tag.content}

GRAMMAR = Grammar(
    names=tuple(_TOOL_BY_TAG),
    children={name: tuple(tool.arguments.model_fields) for name, tool in _PARENTS.items()},
)
_GRAMMAR_WITH_MCP = replace(GRAMMAR, names=(*GRAMMAR.names, MCP))
_ANY_OPENING_TAG = re.compile(r"^[ \t]*<([a-z_]+)(?: [^<>\n]*)?>", re.MULTILINE)
_MIN_SUGGESTION_LENGTH = 5
"""Minimum length of an unknown tag's name for which a suggestion is made."""


def available_tags(tools: Collection[str]) -> tuple[str, ...]:
    """Return the tags of an agent that has these tools."""
    return tuple(tool.tag_name for tool in TOOLS.values() if tool.name in tools)


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
    tag_names = tag_names or TAG_NAMES
    grammar = _GRAMMAR_WITH_MCP if mcp else GRAMMAR
    reasoning, text_after_reasoning = _split_reasoning(text, grammar)
    parsed = find_blocks(text_after_reasoning, grammar, is_truncated)
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
    return _write_tool_tag(tool, tool.arguments.texts_of(_without_defaults(tool, arguments)))


def write_examples(actions: Mapping[str, ActionBase]) -> dict[str, str]:
    """Return the actions as a model writes them, by their names."""
    return {name: write_tags(action) for name, action in actions.items()}


def _without_defaults(tool: Tool, arguments: JsonObject) -> JsonObject:
    fields = tool.arguments.model_fields
    return {
        name: value
        for name, value in arguments.items()
        if name in tool.tag.explicit or value != fields[name].default
    }


def _write_tool_tag(tool: Tool, texts: dict[str, str]) -> str:
    """Return the tag of a tool.

    texts: the arguments; those that are left out have their default.
    """
    tag = tool.tag
    inner_names = {tag.content, *tag.sections, *tag.children}
    attributes = {name: text for name, text in texts.items() if name not in inner_names}
    if not tag.content:
        children = "".join(
            f"{_write_child(name, texts[name], tag)}\n" for name in tag.children if name in texts
        )
        return write_block(tool.tag_name, attributes, f"\n{children}")
    text = texts.get(tag.content, "")
    sections = {name: texts[name] for name in tag.sections if name in texts}
    content = text + "".join(
        f"\n<{name}>\n{section}\n</{name}>" for name, section in sections.items()
    )
    if _split_sections(content, tag.sections) != (text, sections):
        # The texts contain tags of sections, so that the sections could not be distinguished.
        attributes |= {name: sections.get(name, "") for name in tag.sections}
        content = text
    return write_block(tool.tag_name, attributes, f"\n{content}\n")


def _write_child(name: str, text: str, tag: Tag) -> str:
    # The closing tag of a verbatim child follows its text without a newline, so that a text without
    # a final newline can be written.
    last_newline = "" if name in tag.verbatim else "\n"
    return write_block(name, {}, f"\n{text}{last_newline}")


def _action_of_block(block: Block) -> ActionBase | tuple[str, ...]:
    """Return the action of a block, or the problems with it."""
    tool = _TOOL_BY_TAG[block.name]
    tag = tool.tag
    arguments: JsonObject = dict(block.attributes)
    if not tag.content:
        pairs = [(child.name, _unwrapped_content(child, tag)) for child in block.children]
    elif arguments.keys().isdisjoint(tag.sections):
        content, sections = _split_sections(_unwrapped_content(block, tag), tag.sections)
        pairs = [(tag.content, content), *sections.items()]
    else:
        pairs = [(tag.content, _unwrapped_content(block, tag))]
    for key, value in pairs:
        if key in arguments:
            return (f"{key} is given twice in <{block.name}>",)
        arguments[key] = value
    return parse_action(tool.name, arguments)


@cache
def _section_patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of the first section's tag, which begins a line, and of any section's."""
    tag = rf"<({'|'.join(names)})>"
    return re.compile(rf"(?:\A|\n)(?={tag})"), re.compile(rf"\s*{tag}")


def _split_sections(content: str, names: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """Return the text of the content, and the sections after it.

    names: the sections that the tag can have.
    If the sections can't be distinguished with certainty, all of the content is the text, so that
    nothing gets lost.
    """
    first_pattern, tag_pattern = _section_patterns(names)
    first_section = first_pattern.search(content) if names else None
    if first_section is None:
        return content, {}
    position = first_section.end()
    sections: dict[str, str] = {}
    while match := tag_pattern.match(content, position):
        name = match[1]
        end = content.find(f"</{name}>", match.end())
        if end < 0 or name in sections:
            return content, {}
        text = content[match.end() : end]
        sections[name] = text.removeprefix("\n").removesuffix("\n")
        position = end + len(f"</{name}>")
    if content[position:].strip():
        return content, {}
    return content[: first_section.start()], sections


def _unwrapped_content(block: Block, tag: Tag) -> str:
    """Return the content without the newlines next to the opening and the closing tag."""
    content = block.content.removeprefix("\n")
    return content if block.name in tag.verbatim else content.removesuffix("\n")


def _split_reasoning(text: str, grammar: Grammar) -> tuple[str, str]:
    """Split off reasoning at the start of a reply that ends with an unmatched `</think>`.

    The chat templates of some models leave it there. Tags in the reasoning are drafts, not actions.
    """
    reasoning, closing_tag, reply_text = text.partition("</think>")
    if not closing_tag or "<think" in reasoning:
        return "", text
    is_inside_block = isinstance(find_blocks(reasoning, grammar, is_truncated=True), MarkupFault)
    return ("", text) if is_inside_block else (reasoning, reply_text)


def _find_misspelled_tag(text: str, has_fenced_tags: bool) -> str:
    if has_fenced_tags:
        return "a tag inside a code fence is text and is not run: write it without the fence"
    for match in _ANY_OPENING_TAG.finditer(text):
        hint = suggest_name(match[1], TAG_NAMES) if len(match[1]) >= _MIN_SUGGESTION_LENGTH else ""
        if hint and f"</{match[1]}>" in text:
            return f"there is no tag <{match[1]}>{hint}"
    return ""


def _invalid_action(problems: list[str], is_truncated: bool, tags: Sequence[str]) -> a.Invalid:
    reason = render("agent/invalid_tags.md.j2", problems=problems, tags=tags, cut=is_truncated)
    return a.Invalid(reason=reason.strip())
