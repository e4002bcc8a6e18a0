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
from resolver.agents.tools import TAG as MCP
from resolver.agents.tools import action_of, call_of_tag, did_you_mean, write_call
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.models.run import JsonObject, McpTool

_CONTENT = {
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

_TOOL_OF = {name: tool for name, (tool, _) in _CONTENT.items()}
_BOXES = {"todo": "[ ]", "doing": "[>]", "done": "[x]"}

GRAMMAR = Grammar(
    names=(*_CONTENT, _EDITOR, _REMARK, _PLACES),
    parents=(_EDITOR, _REMARK, _PLACES),
    children=(*TOOLS[_EDITOR].model_fields, "body", "suggestion", "message", "places"),
)
_WITH_MCP = replace(GRAMMAR, names=(*GRAMMAR.names, MCP))
_ANY_OPEN = re.compile(r"^[ \t]*<([a-z_]+)(?: [^<>\n]*)?>", re.MULTILINE)
_LEAST_ALIKE = 5
"""Minimum length of an unknown tag's name for which a suggestion is made."""


def available_tags(tools: Collection[str]) -> tuple[str, ...]:
    """Return the tags of an agent that has these tools."""
    return tuple(name for name in TAG_NAMES if _TOOL_OF.get(name, name) in tools)


def parse_tags(
    text: str, cut: bool = False, mcp: Sequence[McpTool] = (), offered: Sequence[str] = ()
) -> tuple[ActionBase, ...]:
    """Return the actions of a reply in order, () if it has none. Prose becomes their thought.

    cut: the provider ended the reply at its output limit.
    mcp: the MCP tools that were offered; without any, the tag `mcp` does not exist.
    offered: the agent's tags, listed in the feedback on a reply that can't be read; all tags if
    empty.
    """
    offered = offered or TAG_NAMES
    grammar = _WITH_MCP if mcp else GRAMMAR
    thinking, rest = _split_reasoning(text, grammar)
    found = find_blocks(rest, grammar, cut)
    if isinstance(found, MarkupFault):
        return (_invalid([found.reason], cut, offered),)
    if not found.blocks:
        problem = _near_miss(rest, found.fenced)
        return (_invalid([problem], cut, offered),) if problem else ()
    actions: list[ActionBase] = []
    for block in found.blocks:
        outcome = call_of_tag(block, mcp) if block.name == MCP else _action_of_block(block)
        if isinstance(outcome, tuple):
            return (_invalid(list(outcome), cut, offered),)
        actions.append(outcome)
    prose = (part.strip() for part in (thinking, *found.prose))
    thought = "\n\n".join(part for part in prose if part)
    return (actions[0].model_copy(update={"thought": thought}), *actions[1:])


def write_tags(action: ActionBase) -> str:
    """Return the action as a model writes it, so that `parse_tags` returns the same action.

    Raises KeyError for actions that this dialect does not have.
    """
    match action:
        case a.CmdRun(command=command, timeout=timeout, is_input=is_input):
            attributes = {} if timeout is None else {"timeout": _number(timeout)}
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
            lines = "\n".join(f"{_BOXES[item.status]} {item.title}" for item in items)
            return write_block("plan", {}, f"\n{lines}\n")
        case a.Delegate(agent=agent, task=task):
            return write_block("delegate", {"agent": agent}, f"\n{task}\n")
        case a.Finish(verdict=verdict) if verdict:
            told = {"verification": action.verification, "remaining": action.remaining}
            marks = {"verdict": verdict} | {name: text for name, text in told.items() if text}
            return write_block("submit_review", marks, f"\n{action.message}\n")
        case a.Finish(places=places) if places:
            return _write_places(action)
        case a.Finish():
            return _write_finish(action)
        case a.CodeSearch(terms=terms, path=path):
            below = {"path": path} if path else {}
            return write_block("search_code", below, f"\n{write_texts(terms)}\n")
        case a.CodeExplore(start=start):
            return write_block("explore_code", _walk(action), f"\n{write_texts(start)}\n")
        case a.ReviewComment():
            return _write_remark(action)
        case a.FileRead(path=path, view_range=lines):
            children = {} if lines is None else {"view_range": f"[{lines[0]}, {lines[1]}]"}
            return _write_editor("view", path, children)
        case a.FileWrite(path=path, content=content):
            return _write_editor("create", path, {"file_text": content})
        case a.FileEdit(command=command, path=path):
            given = {
                "insert_line": action.insert_line,
                "old_str": action.old_str,
                "new_str": action.new_str,
            }
            children = {k: str(v) for k, v in given.items() if v is not None}
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
    told = "".join(f"\n<{k}>\n{text}\n</{k}>" for k, text in sections.items() if text)
    return write_block("finish", attributes, f"\n{action.message}{told}\n")


def _write_remark(action: a.ReviewComment) -> str:
    attributes = {"path": action.path, "line": str(action.line), "severity": action.severity}
    attributes |= {} if action.start_line is None else {"start_line": str(action.start_line)}
    attributes |= {"side": action.side} if action.side == "LEFT" else {}
    children = {"body": action.body, "suggestion": action.suggestion}
    inner = "".join(
        write_block(name, {}, f"\n{text}\n") + "\n" for name, text in children.items() if text
    )
    return write_block(_REMARK, attributes, f"\n{inner}")


def _write_places(action: a.Finish) -> str:
    attributes = {} if action.task_completed else {"task_completed": "false"}
    children = {"message": action.message, "places": write_places(action.places)}
    inner = "".join(write_block(name, {}, f"\n{text}\n") + "\n" for name, text in children.items())
    return write_block(_PLACES, attributes, f"\n{inner}")


def _walk(action: a.CodeExplore) -> dict[str, str]:
    given: dict[str, str] = {"direction": action.direction} if action.direction != "both" else {}
    given |= {"depth": str(action.depth)} if action.depth != 1 else {}
    return given | ({"edges": " ".join(action.edges)} if action.edges else {})


def _number(value: float) -> str:
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _write_editor(command: str, path: str, children: dict[str, str]) -> str:
    # The closing tag of file_text follows its content without a newline, so that a file without a
    # final newline can be written.
    inner = "".join(
        write_block(name, {}, f"\n{text}" if name == "file_text" else f"\n{text}\n") + "\n"
        for name, text in children.items()
    )
    return write_block(_EDITOR, {"command": command, "path": path}, f"\n{inner}")


def _action_of_block(block: Block) -> ActionBase | tuple[str, ...]:
    """Return the action of a block, or the problems with it."""
    arguments: JsonObject = dict(block.attributes)
    if block.name in GRAMMAR.parents:
        pairs = [(child.name, _unwrapped(child)) for child in block.children]
        tool = block.name
    else:
        tool, key = _CONTENT[block.name]
        pairs = [(key, _unwrapped(block))]
    if block.name == "finish" and not arguments.keys() & set(_SECTIONS):
        message, sections = _split_sections(_unwrapped(block))
        pairs = [(key, message), *sections.items()]
    for key, value in pairs:
        if key in arguments:
            return (f"{key} is given twice in <{block.name}>",)
        arguments[key] = value
    return action_of(tool, arguments)


def _split_sections(content: str) -> tuple[str, dict[str, str]]:
    """Return the message of a `finish` and the sections after it.

    If the sections can't be told apart with certainty, the whole content is the message, so that no
    text gets lost.
    """
    begin = _FIRST_SECTION.search(content)
    position = begin.start(1) if begin else len(content)
    sections: dict[str, str] = {}
    while match := _SECTION_OPEN.match(content, position):
        name = match[1]
        end = content.find(f"</{name}>", match.end())
        if end < 0 or name in sections:
            return content, {}
        text = content[match.end() : end]
        sections[name] = text.removeprefix("\n").removesuffix("\n")
        position = end + len(f"</{name}>")
    if begin is None or content[position:].strip():
        return content, {}
    return content[: begin.start()], sections


def _unwrapped(block: Block) -> str:
    """Return the content without the newlines next to the opening and the closing tag.

    The last newline of `file_text` is kept: it is part of the file.
    """
    content = block.content.removeprefix("\n")
    return content if block.name == "file_text" else content.removesuffix("\n")


def _split_reasoning(text: str, grammar: Grammar) -> tuple[str, str]:
    """Split off reasoning at the start of a reply that ends with an unmatched `</think>`.

    The chat templates of some models leave it there. Tags in the reasoning are drafts, not actions.
    """
    before, close, after = text.partition("</think>")
    if not close or "<think" in before:
        return "", text
    inside_a_block = isinstance(find_blocks(before, grammar, cut=True), MarkupFault)
    return ("", text) if inside_a_block else (before, after)


def _near_miss(text: str, fenced: bool) -> str:
    if fenced:
        return "a tag inside a code fence is text and is not run: write it without the fence"
    for match in _ANY_OPEN.finditer(text):
        hint = did_you_mean(match[1], TAG_NAMES) if len(match[1]) >= _LEAST_ALIKE else ""
        if hint and f"</{match[1]}>" in text:
            return f"there is no tag <{match[1]}>{hint}"
    return ""


def _invalid(problems: list[str], cut: bool, tags: Sequence[str]) -> a.Invalid:
    reason = render("agent/invalid_tags.md.j2", problems=problems, tags=tags, cut=cut)
    return a.Invalid(reason=reason.strip())
