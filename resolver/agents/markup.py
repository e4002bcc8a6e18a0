"""Parser of tag blocks in a model's text: position, attributes and verbatim content.

It knows no tools. Content is never decoded. A tag in a code fence or in inline code of the prose is
text. Ambiguous text is a fault, because a guess could execute the wrong thing.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, unescape

_SPECIAL = {"&quot;": '"', "&apos;": "'", "&#10;": "\n", "&#13;": "\r", "&#9;": "\t"}
_ATTRIBUTE = re.compile(r"""\s+([\w-]+)\s*=\s*(?:"([^"<\n]*)"|'([^'<\n]*)')""")


@dataclass(frozen=True)
class Block:
    """One tag with its content. `children` is used only for tags that contain tags."""

    name: str
    attributes: dict[str, str]
    content: str
    children: tuple["Block", ...] = ()


@dataclass(frozen=True)
class MarkupFault:
    """The reason why a text can't be parsed, worded for the model."""

    reason: str


@dataclass
class FoundBlocks:
    """The blocks and the prose of a text.

    prose: the parts of the text outside of blocks.
    has_fenced_tags: True if a code fence contains tags.
    """

    blocks: list[Block] = field(default_factory=list)
    prose: list[str] = field(default_factory=list)
    has_fenced_tags: bool = False


@dataclass(frozen=True)
class Grammar:
    """The tags that are recognized.

    children: for each tag whose content consists only of tags, which tags these can be.
    """

    names: Collection[str]
    children: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def any_tag(self) -> re.Pattern[str]:
        """A pattern that matches an opening or closing tag with any of the names."""
        return re.compile(rf"</?(?:{_alternatives(self.names)})(?=[\s/>])")


def find_blocks(
    text: str, grammar: Grammar, is_truncated: bool = False
) -> FoundBlocks | MarkupFault:
    """Return the blocks of `text` in order, or the fault.

    is_truncated: the text was ended by an output limit. If not, a last block that begins a line may
    lack its closing tag, because providers leave out a stop sequence that ends a reply.
    """
    return _Scanner(text, grammar, is_truncated).scan()


def write_block(name: str, attributes: dict[str, str], content: str) -> str:
    """Return the block as text, from which `find_blocks` returns the same block."""
    end_word = _unused_end_word(name, content)
    all_attributes = attributes | ({"end": end_word} if end_word else {})
    entities = {value: key for key, value in _SPECIAL.items()}
    attribute_text = "".join(
        f' {key}="{escape(value, entities)}"' for key, value in all_attributes.items()
    )
    closing_tag = f"</{name} {end_word}>" if end_word else f"</{name}>"
    return f"<{name}{attribute_text}>{content}{closing_tag}"


def _alternatives(names: Collection[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


def _unused_end_word(name: str, content: str) -> str:
    """Return a word for `end="WORD"` that does not occur in the content.

    Returns "" if the content does not contain the tag, so that no word is needed.
    """
    if f"<{name}" not in content and f"</{name}" not in content:
        return ""
    number = 1
    while f"END{number}" in content:
        number += 1
    return f"END{number}"


class _Scanner:
    """A single pass over a text."""

    def __init__(self, text: str, grammar: Grammar, is_truncated: bool) -> None:
        self._text = text
        self._grammar = grammar
        self._is_truncated = is_truncated
        self._any_tag = grammar.any_tag
        names = _alternatives(grammar.names)
        self._next_token = re.compile(
            rf"(?P<fence>^[ \t>]*(?:`{{3,}}|~{{3,}}))|(?P<ticks>`+)"
            rf"|<(?P<close>/?)(?P<name>{names})(?=[\s/>])",
            re.MULTILINE,
        )

    def scan(self) -> FoundBlocks | MarkupFault:
        """Return the blocks of the text, or the first fault.

        Code fences and inline code are skipped only in the prose; inside a block they are content.
        """
        result = FoundBlocks()
        position = start = 0
        while match := self._next_token.search(self._text, position):
            if match["fence"]:
                position = self._fence_end(match)
                result.has_fenced_tags |= bool(
                    self._any_tag.search(self._text, match.start(), position)
                )
            elif match["ticks"]:
                position = self._inline_end(match)
            elif match["close"]:
                name = match["name"]
                return MarkupFault(
                    f"</{name}> closes nothing: the text before it has no open <{name}>"
                )
            else:
                result.prose.append(self._text[start : match.start()])
                block_or_fault = self._read_block(match["name"], match.start())
                if isinstance(block_or_fault, MarkupFault):
                    return block_or_fault
                block, position = block_or_fault
                result.blocks.append(block)
                start = position
        result.prose.append(self._text[start:])
        return result

    def _fence_end(self, match: re.Match[str]) -> int:
        """Return where the code fence ends, the end of the text if it is not closed."""
        fence = match["fence"].lstrip(" \t>")
        closing_fence = re.compile(
            rf"^[ \t>]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$", re.MULTILINE
        )
        end = closing_fence.search(self._text, match.end())
        return end.end() if end else len(self._text)

    def _inline_end(self, match: re.Match[str]) -> int:
        """Return where the inline code ends, within its paragraph; unmatched backticks are text."""
        ticks = match["ticks"]
        paragraph = self._text.find("\n\n", match.end())
        paragraph_end = paragraph if paragraph >= 0 else len(self._text)
        closing_ticks = re.compile(rf"(?<!`){ticks}(?!`)").search(
            self._text, match.end(), paragraph_end
        )
        return closing_ticks.end() if closing_ticks else match.end()

    def _read_block(
        self, name: str, start: int, is_child: bool = False
    ) -> tuple[Block, int] | MarkupFault:
        """Return the block that begins at `start` and the position after it, or a fault.

        is_child: the block is a child, which has to be closed.
        """
        opening = self._open_tag(name, start)
        if isinstance(opening, MarkupFault):
            return opening
        attributes, position, is_self_closing = opening
        # Like the delimiter of a here-document: with end="WORD" only </name WORD> closes the
        # block, so that the content may contain the tag itself.
        end_word = attributes.pop("end", "")
        closing_tag = f"</{name} {end_word}>" if end_word else f"</{name}>"
        if is_self_closing:
            return Block(name, attributes, ""), position
        if name in self._grammar.children:
            return self._read_children(name, attributes, position, closing_tag, start)
        end = self._text.find(closing_tag, position)
        if end < 0:
            whole = None if is_child else self._content_to_end(start, position)
            if whole is None:
                return MarkupFault(f"<{name}> is not closed: {closing_tag} is missing")
            return Block(name, attributes, whole), len(self._text)
        content = self._text[position:end]
        if not end_word and re.search(rf"<{name}[\s/>]", content):
            return MarkupFault(
                f"<{name}> stands inside <{name}>, so its end is not clear: when the content "
                f'holds that tag, write <{name} end="WORD"> ... </{name} WORD>'
            )
        return Block(name, attributes, content), end + len(closing_tag)

    def _open_tag(self, name: str, start: int) -> tuple[dict[str, str], int, bool] | MarkupFault:
        position = start + 1 + len(name)
        attributes: dict[str, str] = {}
        while match := _ATTRIBUTE.match(self._text, position):
            value = match[2] if match[2] is not None else match[3]
            if match[1] in attributes:
                return MarkupFault(f"the attribute {match[1]} of <{name}> is given twice")
            attributes[match[1]] = unescape(value, _SPECIAL)
            position = match.end()
        tag_end = re.compile(r"\s*(/?)>").match(self._text, position)
        if tag_end is None:
            return MarkupFault(
                f'the opening tag <{name}> is malformed: attributes are written name="value"'
            )
        return attributes, tag_end.end(), bool(tag_end[1])

    def _content_to_end(self, start: int, position: int) -> str | None:
        """Return the content of a last block without a closing tag, or None if that is not safe.

        It is safe only if the text was not cut, the block begins a line, and no other tag follows.
        """
        content = self._text[position:]
        starts_line = not self._text[self._text.rfind("\n", 0, start) + 1 : start].strip()
        if self._is_truncated or not starts_line or self._any_tag.search(content):
            return None
        return content

    def _read_children(
        self, name: str, attributes: dict[str, str], position: int, closing_tag: str, start: int
    ) -> tuple[Block, int] | MarkupFault:
        """Return the block with its children and the position after it, or a fault."""
        children: list[Block] = []
        child_names = self._grammar.children[name]
        child_tag = re.compile(rf"\s*<({_alternatives(child_names)})(?=[\s/>])")
        while match := child_tag.match(self._text, position):
            result = self._read_block(match[1], match.start(1) - 1, is_child=True)
            if isinstance(result, MarkupFault):
                return result
            block, position = result
            children.append(block)
        closing = re.compile(rf"\s*{re.escape(closing_tag)}").match(self._text, position)
        if closing:
            return Block(name, attributes, "", tuple(children)), closing.end()
        if self._text[position:].strip():
            allowed = ", ".join(f"<{child}>" for child in child_names)
            return MarkupFault(f"<{name}> holds nothing but {allowed}, and ends with {closing_tag}")
        if self._content_to_end(start, position) is None:
            return MarkupFault(f"<{name}> is not closed: {closing_tag} is missing")
        return Block(name, attributes, "", tuple(children)), len(self._text)
