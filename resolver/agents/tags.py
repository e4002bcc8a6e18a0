"""The tag dialect: actions as text like `<execute_bash>...</execute_bash>`.

The tag of a tool is derived from the model of its arguments. Its only required argument is the
text of the tag, and the others are elements after it, like `<timeout>300</timeout>`; a tool with
several required arguments has elements only. Lists and objects are JSON. The tag of a tool of an
MCP server holds one JSON object.

Parsing never fails: any text results in actions, in no action (prose only), or in one `Invalid`
that explains to the model what was wrong. If one block can't be read, no block is executed.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from resolver.agents.tools.base import SECURITY_RISK
from resolver.agents.tools.calls import (
    UnreadableCall,
    native_names,
    parse_call,
    parse_object,
    suggest_name,
)
from resolver.agents.tools.registry import TOOL_NAMES, TOOLS
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.models.base import JsonObject
from resolver.models.run import McpTool

OTHER_NAMES = {"execute_ipython": "execute_ipython_cell"}
"""Names of tags that models know from CodeAct, and the tools that they stand for."""

_FENCE = re.compile(r"(?P<fence>^[ \t>]*(?:`{3,}|~{3,}))", re.MULTILINE)
_ANY_OPENING_TAG = re.compile(r"^[ \t]*<([a-z_]+)(?: [^<>\n]*)?>", re.MULTILINE)
_MIN_SUGGESTION_LENGTH = 5
"""Minimum length of an unknown tag's name for which a suggestion is made."""


@dataclass(frozen=True)
class TagForm:
    """The arguments of a tool in its tag. content: the one that is the text; None if there is
    none."""

    content: str | None
    elements: tuple[str, ...]


@dataclass(frozen=True)
class ShownTool:
    """A tool as the system prompt shows it to a model without native tool calls.

    form: its tag, with what each argument is in the place of its value.
    """

    name: str
    description: str
    form: str


@dataclass(frozen=True)
class _Block:
    """One tag with its content."""

    name: str
    content: str


def show_tools(specs: Sequence[JsonObject]) -> tuple[ShownTool, ...]:
    """Return the tools for a prompt, from their native specifications in OpenAI's format."""
    return tuple(_shown_tool(**spec["function"]) for spec in specs)


def parse_tags(
    text: str,
    is_truncated: bool = False,
    mcp: Sequence[McpTool] = (),
    tool_names: Sequence[str] = (),
) -> tuple[ActionBase, ...]:
    """Return the actions of a reply in order, () if it has none. Prose becomes their thought.

    is_truncated: the provider ended the reply at its output limit.
    mcp: the MCP tools that were offered.
    tool_names: the agent's tools; empty for all.
    """
    mcp_tools = native_names(mcp)
    names = (*TOOL_NAMES, *OTHER_NAMES, *mcp_tools)
    reasoning, text = _split_reasoning(text, names)
    actions: list[ActionBase] = []
    prose = [reasoning]
    try:
        for part in _split_blocks(text, names, is_truncated):
            if isinstance(part, str):
                prose.append(part)
            else:
                actions.append(_action_of(part, mcp_tools, tool_names))
        if not actions:
            _check_misspelled_tag(text, names)
            return ()
    except UnreadableCall as fault:
        reason = render(
            "agent/invalid_tags.md.j2",
            problems=fault.args,
            tags=tool_names or TOOL_NAMES,
            cut=is_truncated,
        )
        return (a.Invalid(reason=reason.strip()),)
    thought = "\n\n".join(part for part in map(str.strip, prose) if part)
    return (actions[0].model_copy(update={"thought": thought}), *actions[1:])


def _action_of(
    block: _Block, mcp_tools: dict[str, McpTool], tool_names: Sequence[str]
) -> ActionBase:
    name = OTHER_NAMES.get(block.name, block.name)
    arguments = parse_object(block.content) if name in mcp_tools else _arguments_of(name, block)
    return parse_call(name, arguments, mcp_tools, tool_names)


def _arguments_of(name: str, block: _Block) -> JsonObject:
    form, verbatim = tag_form(name), TOOLS[name].arguments.verbatim
    try:
        # Models also rate calls of tools that take no rating.
        text, elements = _split_elements(block.content, {*form.elements, SECURITY_RISK})
    except UnreadableCall:
        if form.content is None:
            raise
        # What is not clearly an element belongs to the content, so that nothing gets lost.
        text, elements = block.content, {}
    if form.content is not None:
        elements[form.content] = text
    elif text.strip():
        allowed = ", ".join(f"<{name}>" for name in form.elements)
        raise UnreadableCall(f"<{block.name}> holds nothing but {allowed}")
    # The line breaks next to the tags are no part of the text.
    return {
        key: value.removeprefix("\n") if key in verbatim else _inner(value)
        for key, value in elements.items()
    }


def _inner(text: str) -> str:
    return text.removeprefix("\n").removesuffix("\n")


@cache
def tag_form(tool_name: str) -> TagForm:
    """Return where the arguments of a tool are in its tag."""
    fields = TOOLS[tool_name].arguments.model_fields
    required = [name for name, field in fields.items() if field.is_required()]
    content = required[0] if len(required) == 1 else None
    return TagForm(content, tuple(name for name in fields if name != content))


def _shown_tool(name: str, description: str, parameters: JsonObject) -> ShownTool:
    form, properties = tag_form(name), parameters["properties"]
    content = [_text_form(properties[form.content])] if form.content else []
    elements = [
        f"<{key}>{_text_form(properties[key])}</{key}>"
        for key in form.elements
        if key in properties
    ]
    return ShownTool(name, description, "\n".join([f"<{name}>", *content, *elements, f"</{name}>"]))


def _text_form(schema: JsonObject) -> str:
    """Return what stands in the place of a value: what it is, and its form if it is no text."""
    is_text = schema["type"] == "string" and "enum" not in schema
    return f"{schema['description']}{'' if is_text else ' ' + _value_form(schema)}"


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


def _alternatives(names: Collection[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


def _split_blocks(text: str, names: Collection[str], is_truncated: bool) -> Iterator[str | _Block]:
    """Yield the blocks with these names, and the prose around them, in order.

    A tag in a code fence or in inline code of the prose is text. Ambiguous text is a fault, because
    a guess could execute the wrong thing.
    """
    tag = rf"<(?P<close>/?)(?P<name>{_alternatives(names)})(?=[\s/>])"
    token = re.compile(rf"{_FENCE.pattern}|(?P<ticks>`+)|{tag}", re.MULTILINE)
    position = start = 0
    while match := token.search(text, position):
        name = match["name"]
        if match["fence"]:
            position = _fence_end(text, match)
        elif match["ticks"]:
            position = _inline_end(text, match)
        elif match["close"]:
            raise UnreadableCall(
                f"</{name}> closes nothing: the text before it has no open <{name}>"
            )
        else:
            yield text[start : match.start()]
            content, position = _read_block(text, match, re.compile(tag), is_truncated)
            yield _Block(name, content)
            start = position
    yield text[start:]


def _read_block(
    text: str, opening: re.Match[str], tag: re.Pattern[str], is_truncated: bool
) -> tuple[str, int]:
    """Return the content of the block that begins at the match, and the position after it."""
    name = opening["name"]
    end_of_tag = re.compile(r"\s*(/?)>").match(text, opening.end())
    if end_of_tag is None:
        raise UnreadableCall(
            f"the opening tag <{name}> is malformed: arguments are written inside of the tag, as "
            "<NAME>...</NAME>"
        )
    start = end_of_tag.end()
    if end_of_tag[1]:
        return "", start
    closing_tag = f"</{name}>"
    end = text.find(closing_tag, start)
    content = text[start : end if end >= 0 else len(text)]
    if end < 0:
        # Providers leave out a stop sequence that ends a reply: the last block may be open.
        begins_line = not text[text.rfind("\n", 0, opening.start()) + 1 : opening.start()].strip()
        if is_truncated or not begins_line or tag.search(content):
            raise UnreadableCall(f"<{name}> is not closed: {closing_tag} is missing")
        return content, len(text)
    if re.search(rf"<{name}[\s/>]", content):
        raise UnreadableCall(
            f"<{name}> stands inside <{name}>, so its end is not clear: write a text that holds "
            "its own tag in another way"
        )
    return content, end + len(closing_tag)


def _fence_end(text: str, match: re.Match[str]) -> int:
    """Return where the code fence ends, the end of the text if it is not closed."""
    fence = match["fence"].lstrip(" \t>")
    closing_fence = re.compile(
        rf"^[ \t>]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$", re.MULTILINE
    )
    end = closing_fence.search(text, match.end())
    return end.end() if end else len(text)


def _inline_end(text: str, match: re.Match[str]) -> int:
    """Return where the inline code ends, within its paragraph; unmatched backticks are text."""
    paragraph = text.find("\n\n", match.end())
    paragraph_end = paragraph if paragraph >= 0 else len(text)
    closing_ticks = re.compile(rf"(?<!`){match['ticks']}(?!`)")
    end = closing_ticks.search(text, match.end(), paragraph_end)
    return end.end() if end else match.end()


def _split_elements(content: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """Return the text of a block's content and the elements after it, the first of which begins a
    line."""
    name = _alternatives(names)
    first = re.search(rf"(?:\A|\n)[ \t]*+(?=<(?:{name})[\s/>])", content)
    if first is None:
        return content, {}
    element = re.compile(rf"\s*+<({name})>(.*?)</\1>", re.DOTALL)
    elements: dict[str, str] = {}
    position = first.end()
    while match := element.match(content, position):
        if match[1] in elements:
            raise UnreadableCall(f"{match[1]} is given twice")
        elements[match[1]] = match[2]
        position = match.end()
    if content[position:].strip():
        raise UnreadableCall(
            "the arguments of a tag are written <NAME>...</NAME>, and only they may follow the "
            "first of them"
        )
    return content[: first.start()], elements


def _split_reasoning(text: str, names: Sequence[str]) -> tuple[str, str]:
    """Split off reasoning at the start of a reply that ends with an unmatched `</think>`.

    The chat templates of some models leave it there. Tags in the reasoning are drafts, not actions.
    """
    reasoning, closing_tag, reply_text = text.partition("</think>")
    if not closing_tag or "<think" in reasoning:
        return "", text
    try:
        list(_split_blocks(reasoning, names, is_truncated=True))
    except UnreadableCall:  # `</think>` is inside of a block
        return "", text
    return reasoning, reply_text


def _check_misspelled_tag(text: str, names: Sequence[str]) -> None:
    """Raise a fault if a reply without a tag is not only prose."""
    tag = re.compile(rf"</?(?:{_alternatives(names)})(?=[\s/>])")
    position = 0
    while fence := _FENCE.search(text, position):
        position = _fence_end(text, fence)
        if tag.search(text, fence.start(), position):
            raise UnreadableCall(
                "a tag inside a code fence is text and is not run: write it without the fence"
            )
    for match in _ANY_OPENING_TAG.finditer(text):
        hint = suggest_name(match[1], names) if len(match[1]) >= _MIN_SUGGESTION_LENGTH else ""
        if hint and f"</{match[1]}>" in text:
            raise UnreadableCall(f"there is no tag <{match[1]}>{hint}")
