"""The tag dialect: conversion between actions and tags like `<execute_bash>...</execute_bash>`.

Parsing never fails: any text results in actions, in no action (prose only), or in one `Invalid`
that explains to the model what was wrong. If one block can't be read, no block is executed.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from resolver.agents.argument_types import write_answers
from resolver.agents.arguments import TOOLS
from resolver.agents.code_arguments import write_places, write_texts
from resolver.agents.markup import Block, Grammar, MarkupFault, find_blocks, write_block
from resolver.agents.tools import MCP_TAG as MCP
from resolver.agents.tools import did_you_mean, parse_action, parse_mcp_tag, write_call
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.models.run import JsonObject, McpTool

_CONTENT_ARGUMENTS = {
    "execute_bash": ("execute_bash", "command"),
    "execute_ipython": ("execute_ipython_cell", "code"),
    "execute_ipython_cell": ("execute_ipython_cell", "code"),
    "think": ("think", "thought"),
    "plan": ("plan", "items"),
    "delegate": ("delegate", "task"),
    "recall": ("recall", "query"),
    "remember": ("remember", "note"),
    "execute_browse": ("browser", "code"),
    "browser": ("browser", "code"),
    "finish": ("finish", "message"),
    "submit_review": ("submit_review", "summary"),
    "search_code": ("search_code", "terms"),
    "explore_code": ("explore_code", "start"),
}
"""Tags, each with its tool and the argument that holds the tag's content."""

_EDITOR = "str_replace_editor"
_REMARK = "review_comment"
_PLACES = "report_places"
TAG_NAMES = (
    "execute_bash",
    "execute_ipython",
    _EDITOR,
    "think",
    "plan",
    "delegate",
    "execute_browse",
    "recall",
    "remember",
    "finish",
    _REMARK,
    "submit_review",
    "search_code",
    "explore_code",
    _PLACES,
)
"""Tags that can be offered to a model."""

_SECTIONS = ("cause", "change", "verification", "remaining", "threads", "pull_request_title")
"""Sections that can follow the message in a `finish` tag, each as a tag of its own."""
_SECTION_TAG = re.compile(rf"</?(?:{'|'.join(_SECTIONS)})>")
_SECTION_OPEN = re.compile(rf"\s*<({'|'.join(_SECTIONS)})>")
_FIRST_SECTION = re.compile(rf"(?:\A|\n)(<(?:{'|'.join(_SECTIONS)})>)")

_TOOL_BY_TAG = {name: tool for name, (tool, _) in _CONTENT_ARGUMENTS.items()}
_CHECKBOXES = {"todo": "[ ]", "doing": "[>]", "done": "[x]"}

GRAMMAR = Grammar(
    names=(*_CONTENT_ARGUMENTS, _EDITOR, _REMARK, _PLACES),
    parents=(_EDITOR, _REMARK, _PLACES),
    children=(*TOOLS[_EDITOR].model_fields, "body", "suggestion", "message", "places"),
)
_GRAMMAR_WITH_MCP = replace(GRAMMAR, names=(*GRAMMAR.names, MCP))
_ANY_OPENING_TAG = re.compile(r"^[ \t]*<([a-z_]+)(?: [^<>\n]*)?>", re.MULTILINE)
_MIN_SUGGESTION_LENGTH = 5
"""Minimum length of an unknown tag's name for which a suggestion is made."""


def available_tags(tools: Collection[str]) -> tuple[str, ...]:
    """Return the tags of an agent that has these tools."""
    return tuple(name for name in TAG_NAMES if _TOOL_BY_TAG.get(name, name) in tools)


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
    match action:
        case a.CmdRun(command=command, timeout=timeout, is_input=is_input):
            attributes = {} if timeout is None else {"timeout": _format_number(timeout)}
            attributes |= {"is_input": "true"} if is_input else {}
            return write_block("execute_bash", attributes, f"\n{command}\n")
        case a.IPythonRunCell(code=code):
            return write_block("execute_ipython", {}, f"\n{code}\n")
        case a.BrowseInteractive(code=code):
            return write_block("execute_browse", {}, f"\n{code}\n")
        case a.McpCall():
            return write_call(action)
        case a.Think(content=content):
            return write_block("think", {}, f"\n{content}\n")
        case a.Recall(query=query):
            return write_block("recall", {}, f"\n{query}\n")
        case a.Remember(note=note):
            return write_block("remember", {}, f"\n{note}\n")
        case a.PlanUpdate(items=items):
            lines = "\n".join(f"{_CHECKBOXES[item.status]} {item.title}" for item in items)
            return write_block("plan", {}, f"\n{lines}\n")
        case a.Delegate(agent=agent, task=task):
            return write_block("delegate", {"agent": agent}, f"\n{task}\n")
        case a.Finish(verdict=verdict) if verdict:
            sections = {"verification": action.verification, "remaining": action.remaining}
            marks = {"verdict": verdict} | {name: text for name, text in sections.items() if text}
            return write_block("submit_review", marks, f"\n{action.message}\n")
        case a.Finish(places=places) if places:
            return _write_places(action)
        case a.Finish():
            return _write_finish(action)
        case a.CodeSearch(terms=terms, path=path):
            path_attributes = {"path": path} if path else {}
            return write_block("search_code", path_attributes, f"\n{write_texts(terms)}\n")
        case a.CodeExplore(start=start):
            return write_block(
                "explore_code", _explore_attributes(action), f"\n{write_texts(start)}\n"
            )
        case a.ReviewComment():
            return _write_remark(action)
        case a.FileRead(path=path, view_range=lines):
            children = {} if lines is None else {"view_range": f"[{lines[0]}, {lines[1]}]"}
            return _write_editor("view", path, children)
        case a.FileWrite(path=path, content=content):
            return _write_editor("create", path, {"file_text": content})
        case a.FileEdit(command=command, path=path):
            arguments = {
                "insert_line": action.insert_line,
                "old_str": action.old_str,
                "new_str": action.new_str,
            }
            children = {k: str(value) for k, value in arguments.items() if value is not None}
            return _write_editor(command, path, children)
        case _:
            raise KeyError(type(action).__name__)


def _write_finish(action: a.Finish) -> str:
    """Return a `finish` tag with its sections as tags after the message."""
    attributes = {} if action.task_completed else {"task_completed": "false"}
    attributes |= {"reason": action.declined} if action.declined else {}
    sections = {
        "cause": action.root_cause,
        "change": action.change,
        "verification": action.verification,
        "remaining": action.remaining,
        "threads": write_answers(action.threads) if action.threads else "",
        "pull_request_title": action.pull_request_title,
    }
    if _SECTION_TAG.search("\n".join([action.message, *sections.values()])):
        # The texts contain tags of sections, so sections could not be told apart: write them as
        # attributes.
        return write_block("finish", attributes | sections, f"\n{action.message}\n")
    section_text = "".join(
        f"\n<{name}>\n{text}\n</{name}>" for name, text in sections.items() if text
    )
    return write_block("finish", attributes, f"\n{action.message}{section_text}\n")


def _write_remark(action: a.ReviewComment) -> str:
    attributes = {"path": action.path, "line": str(action.line), "severity": action.severity}
    attributes |= {} if action.start_line is None else {"start_line": str(action.start_line)}
    attributes |= {"side": action.side} if action.side == "LEFT" else {}
    children = {"body": action.body, "suggestion": action.suggestion}
    content = "".join(
        write_block(name, {}, f"\n{text}\n") + "\n" for name, text in children.items() if text
    )
    return write_block(_REMARK, attributes, f"\n{content}")


def _write_places(action: a.Finish) -> str:
    attributes = {} if action.task_completed else {"task_completed": "false"}
    children = {"message": action.message, "places": write_places(action.places)}
    content = "".join(
        write_block(name, {}, f"\n{text}\n") + "\n" for name, text in children.items()
    )
    return write_block(_PLACES, attributes, f"\n{content}")


def _explore_attributes(action: a.CodeExplore) -> dict[str, str]:
    attributes: dict[str, str] = (
        {"direction": action.direction} if action.direction != "both" else {}
    )
    attributes |= {"depth": str(action.depth)} if action.depth != 1 else {}
    return attributes | ({"edges": " ".join(action.edges)} if action.edges else {})


def _format_number(value: float) -> str:
    text = f"{value:g}"
    return text if float(text) == value else repr(value)


def _write_editor(command: str, path: str, children: dict[str, str]) -> str:
    # The closing tag of file_text follows its content without a newline, so that a file without a
    # final newline can be written.
    content = "".join(
        write_block(name, {}, f"\n{text}" if name == "file_text" else f"\n{text}\n") + "\n"
        for name, text in children.items()
    )
    return write_block(_EDITOR, {"command": command, "path": path}, f"\n{content}")


def _action_of_block(block: Block) -> ActionBase | tuple[str, ...]:
    """Return the action of a block, or the problems with it."""
    arguments: JsonObject = dict(block.attributes)
    if block.name in GRAMMAR.parents:
        pairs = [(child.name, _unwrapped_content(child)) for child in block.children]
        tool = block.name
    else:
        tool, key = _CONTENT_ARGUMENTS[block.name]
        pairs = [(key, _unwrapped_content(block))]
    if block.name == "finish" and not arguments.keys() & set(_SECTIONS):
        message, sections = _split_sections(_unwrapped_content(block))
        pairs = [(key, message), *sections.items()]
    for key, value in pairs:
        if key in arguments:
            return (f"{key} is given twice in <{block.name}>",)
        arguments[key] = value
    return parse_action(tool, arguments)


def _split_sections(content: str) -> tuple[str, dict[str, str]]:
    """Return the message of a `finish` and the sections after it.

    If the sections can't be told apart with certainty, the whole content is the message, so that no
    text gets lost.
    """
    first_section = _FIRST_SECTION.search(content)
    position = first_section.start(1) if first_section else len(content)
    sections: dict[str, str] = {}
    while match := _SECTION_OPEN.match(content, position):
        name = match[1]
        end = content.find(f"</{name}>", match.end())
        if end < 0 or name in sections:
            return content, {}
        text = content[match.end() : end]
        sections[name] = text.removeprefix("\n").removesuffix("\n")
        position = end + len(f"</{name}>")
    if first_section is None or content[position:].strip():
        return content, {}
    return content[: first_section.start()], sections


def _unwrapped_content(block: Block) -> str:
    """Return the content without the newlines next to the opening and the closing tag.

    The last newline of `file_text` is kept: it is part of the file.
    """
    content = block.content.removeprefix("\n")
    return content if block.name == "file_text" else content.removesuffix("\n")


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
        hint = did_you_mean(match[1], TAG_NAMES) if len(match[1]) >= _MIN_SUGGESTION_LENGTH else ""
        if hint and f"</{match[1]}>" in text:
            return f"there is no tag <{match[1]}>{hint}"
    return ""


def _invalid_action(problems: list[str], is_truncated: bool, tags: Sequence[str]) -> a.Invalid:
    reason = render("agent/invalid_tags.md.j2", problems=problems, tags=tags, cut=is_truncated)
    return a.Invalid(reason=reason.strip())
