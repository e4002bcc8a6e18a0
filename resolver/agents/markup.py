"""Parser of tag blocks in a model's text: position, attributes and verbatim content.

It knows no tools. Content is never decoded. A tag in a code fence or in inline code of the prose is
text. Ambiguous text is a fault, because a guess could execute the wrong thing.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from xml.sax.saxutils import escape, unescape

_SPECIAL = {"&quot;": '"', "&apos;": "'", "&#10;": "\n", "&#13;": "\r", "&#9;": "\t"}
_ATTRIBUTE = re.compile(r"""\s+([\w-]+)\s*=\s*(?:"([^"<\n]*)"|'([^'<\n]*)')""")


@dataclass(frozen=True)
class Block:
    """One tag with its content."""

    name: str
    attributes: dict[str, str]
    content: str


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


def find_blocks(
    text: str, names: Collection[str], is_truncated: bool = False
) -> FoundBlocks | MarkupFault:
    """Return the blocks of `text` with these names in order, or the fault.

    is_truncated: the text was ended by an output limit. If not, a last block that begins a line may
    lack its closing tag, because providers leave out a stop sequence that ends a reply.
    """
    return _Scanner(text, names, is_truncated).scan()


def split_elements(
    content: str, names: tuple[str, ...]
) -> tuple[str, dict[str, str]] | MarkupFault:
    """Return the text of a block's content and the elements after it, or the fault.

    names: names that the elements can have. The first one begins a line.
    """
    if not names:
        return content, {}
    first_pattern, opening_pattern = _element_patterns(names)
    first = first_pattern.search(content)
    if first is None:
        return content, {}
    position = first.end()
    elements: dict[str, str] = {}
    while opening := opening_pattern.match(content, position):
        name, end_word, is_self_closing = opening.groups()
        if name in elements:
            return MarkupFault(f"{name} is given twice")
        if is_self_closing:
            elements[name], position = "", opening.end()
            continue
        text = _text_to_closing_tag(content, name, end_word, opening.end())
        if isinstance(text, MarkupFault):
            return text
        elements[name] = text
        position = opening.end() + len(text) + len(_closing_tag(name, end_word))
    if content[position:].strip():
        return MarkupFault(
            "the elements of a tag are written <NAME>...</NAME>, and only elements may follow them"
        )
    return content[: first.start()], elements


def write_block(name: str, attributes: dict[str, str], content: str) -> str:
    """Return the block as text, from which `find_blocks` returns the same block."""
    end_word = _unused_end_word(name, content)
    all_attributes = attributes | ({"end": end_word} if end_word else {})
    entities = {value: key for key, value in _SPECIAL.items()}
    attribute_text = "".join(
        f' {key}="{escape(value, entities)}"' for key, value in all_attributes.items()
    )
    return f"<{name}{attribute_text}>{content}{_closing_tag(name, end_word)}"


@cache
def _element_patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of where the first element begins, and of an element's opening tag."""
    name = f"({_alternatives(names)})"
    return (
        re.compile(rf"(?:\A|\n)[ \t]*+(?=<{name}[\s/>])"),
        re.compile(rf"""\s*+<{name}(?:\s+end=["']([^"'<>\n]+)["'])?\s*(/?)>"""),
    )


def _text_to_closing_tag(
    content: str, name: str, end_word: str | None, start: int
) -> str | MarkupFault:
    """Return the verbatim text from `start` to the closing tag, or the fault.

    Like the delimiter of a here-document, with end="WORD" only </name WORD> closes the tag, so that
    the text may contain the tag itself.
    """
    closing_tag = _closing_tag(name, end_word)
    end = content.find(closing_tag, start)
    if end < 0:
        return MarkupFault(f"<{name}> is not closed: {closing_tag} is missing")
    text = content[start:end]
    if not end_word and re.search(rf"<{name}[\s/>]", text):
        return MarkupFault(
            f"<{name}> stands inside <{name}>, so its end is not clear: when the content "
            f'holds that tag, write <{name} end="WORD"> ... </{name} WORD>'
        )
    return text


def _closing_tag(name: str, end_word: str | None) -> str:
    return f"</{name} {end_word}>" if end_word else f"</{name}>"


def _alternatives(names: Collection[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


def _unused_end_word(name: str, content: str) -> str | None:
    """Return a word for `end="WORD"` that does not occur in the content.

    Returns None if the content does not contain the tag, so that no word is needed.
    """
    if f"<{name}" not in content and f"</{name}" not in content:
        return None
    number = 1
    while f"END{number}" in content:
        number += 1
    return f"END{number}"


class _Scanner:
    """A single pass over a text."""

    def __init__(self, text: str, names: Collection[str], is_truncated: bool) -> None:
        self._text = text
        self._is_truncated = is_truncated
        any_name = _alternatives(names)
        self._any_tag = re.compile(rf"</?(?:{any_name})(?=[\s/>])")
        self._next_token = re.compile(
            rf"(?P<fence>^[ \t>]*(?:`{{3,}}|~{{3,}}))|(?P<ticks>`+)"
            rf"|<(?P<close>/?)(?P<name>{any_name})(?=[\s/>])",
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

    def _read_block(self, name: str, start: int) -> tuple[Block, int] | MarkupFault:
        """Return the block that begins at `start` and the position after it, or a fault."""
        opening = self._open_tag(name, start)
        if isinstance(opening, MarkupFault):
            return opening
        attributes, position, is_self_closing = opening
        end_word = attributes.pop("end", None)
        if is_self_closing:
            return Block(name, attributes, ""), position
        closing_tag = _closing_tag(name, end_word)
        if self._text.find(closing_tag, position) < 0:
            content = self._content_to_end(start, position)
            if content is not None:
                return Block(name, attributes, content), len(self._text)
        text = _text_to_closing_tag(self._text, name, end_word, position)
        if isinstance(text, MarkupFault):
            return text
        return Block(name, attributes, text), position + len(text) + len(closing_tag)

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
