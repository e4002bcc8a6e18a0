"""Parser of tag blocks in a model's text: position, attributes and verbatim content.

It knows no tools. Content is never decoded. A tag in a code fence or in inline code of the prose is
text. Ambiguous text is a fault, because a guess could execute the wrong thing.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, unescape

_SPECIAL = {"&quot;": '"', "&apos;": "'", "&#10;": "\n", "&#13;": "\r", "&#9;": "\t"}
_ATTRIBUTE = re.compile(r"""\s+([\w-]+)\s*=\s*(?:"([^"<\n]*)"|'([^'<\n]*)')""")


@dataclass(frozen=True)
class Block:
    """One tag with its content. `children` is used only for the grammar's parents."""

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
    fenced: True if a code fence contains tags.
    """

    blocks: list[Block] = field(default_factory=list)
    prose: list[str] = field(default_factory=list)
    fenced: bool = False


@dataclass(frozen=True)
class Grammar:
    """The tags that are recognized.

    parents: tags whose content consists only of `children` tags.
    """

    names: Collection[str]
    parents: Collection[str] = ()
    children: Collection[str] = ()

    @property
    def any_tag(self) -> re.Pattern[str]:
        """A pattern that matches an opening or closing tag with any of the names."""
        return re.compile(rf"</?(?:{_choice(self.names)})(?=[\s/>])")


def find_blocks(text: str, grammar: Grammar, cut: bool = False) -> FoundBlocks | MarkupFault:
    """Return the blocks of `text` in order, or the fault.

    cut: the text was ended by an output limit. If not, a last block that begins a line may lack its
    closing tag, because providers leave out a stop sequence that ends a reply.
    """
    return _Scanner(text, grammar, cut).scan()


def write_block(name: str, attributes: dict[str, str], content: str) -> str:
    """Return the block as text, from which `find_blocks` returns the same block."""
    word = _free_word(name, content)
    marks = attributes | ({"end": word} if word else {})
    entities = {value: key for key, value in _SPECIAL.items()}
    written = "".join(f' {key}="{escape(value, entities)}"' for key, value in marks.items())
    close = f"</{name} {word}>" if word else f"</{name}>"
    return f"<{name}{written}>{content}{close}"


def _choice(names: Collection[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


def _free_word(name: str, content: str) -> str:
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

    def __init__(self, text: str, grammar: Grammar, cut: bool) -> None:
        self._text = text
        self._grammar = grammar
        self._cut = cut
        self._tag = grammar.any_tag
        names = _choice(grammar.names)
        self._next = re.compile(
            rf"(?P<fence>^[ \t>]*(?:`{{3,}}|~{{3,}}))|(?P<ticks>`+)"
            rf"|<(?P<close>/?)(?P<name>{names})(?=[\s/>])",
            re.MULTILINE,
        )

    def scan(self) -> FoundBlocks | MarkupFault:
        """Return the blocks of the text, or the first fault.

        Code fences and inline code are skipped only in the prose; inside a block they are content.
        """
        found = FoundBlocks()
        position = start = 0
        while match := self._next.search(self._text, position):
            if match["fence"]:
                position = self._fence_end(match)
                found.fenced |= bool(self._tag.search(self._text, match.start(), position))
            elif match["ticks"]:
                position = self._inline_end(match)
            elif match["close"]:
                name = match["name"]
                return MarkupFault(
                    f"</{name}> closes nothing: the text before it has no open <{name}>"
                )
            else:
                found.prose.append(self._text[start : match.start()])
                read = self._read(match["name"], match.start())
                if isinstance(read, MarkupFault):
                    return read
                block, position = read
                found.blocks.append(block)
                start = position
        found.prose.append(self._text[start:])
        return found

    def _fence_end(self, match: re.Match[str]) -> int:
        """Return where the code fence ends, the end of the text if it is not closed."""
        fence = match["fence"].lstrip(" \t>")
        close = re.compile(rf"^[ \t>]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$", re.MULTILINE)
        end = close.search(self._text, match.end())
        return end.end() if end else len(self._text)

    def _inline_end(self, match: re.Match[str]) -> int:
        """Return where the inline code ends, within its paragraph; unmatched backticks are text."""
        ticks = match["ticks"]
        paragraph = self._text.find("\n\n", match.end())
        limit = paragraph if paragraph >= 0 else len(self._text)
        close = re.compile(rf"(?<!`){ticks}(?!`)").search(self._text, match.end(), limit)
        return close.end() if close else match.end()

    def _read(self, name: str, at: int, inner: bool = False) -> tuple[Block, int] | MarkupFault:
        """Return the block that begins at `at` and the position after it, or a fault.

        inner: the block is a child, which has to be closed.
        """
        opened = self._open_tag(name, at)
        if isinstance(opened, MarkupFault):
            return opened
        attributes, position, closed = opened
        # Like the delimiter of a here-document: with end="WORD" only </name WORD> closes the
        # block, so that the content may contain the tag itself.
        word = attributes.pop("end", "")
        close = f"</{name} {word}>" if word else f"</{name}>"
        if closed:
            return Block(name, attributes, ""), position
        if name in self._grammar.parents:
            return self._read_children(name, attributes, position, close, at)
        end = self._text.find(close, position)
        if end < 0:
            whole = None if inner else self._until_the_end(at, position)
            if whole is None:
                return MarkupFault(f"<{name}> is not closed: {close} is missing")
            return Block(name, attributes, whole), len(self._text)
        content = self._text[position:end]
        if not word and re.search(rf"<{name}[\s/>]", content):
            return MarkupFault(
                f"<{name}> stands inside <{name}>, so its end is not clear: when the content "
                f'holds that tag, write <{name} end="WORD"> ... </{name} WORD>'
            )
        return Block(name, attributes, content), end + len(close)

    def _open_tag(self, name: str, at: int) -> tuple[dict[str, str], int, bool] | MarkupFault:
        position = at + 1 + len(name)
        attributes: dict[str, str] = {}
        while match := _ATTRIBUTE.match(self._text, position):
            value = match[2] if match[2] is not None else match[3]
            if match[1] in attributes:
                return MarkupFault(f"the attribute {match[1]} of <{name}> is given twice")
            attributes[match[1]] = unescape(value, _SPECIAL)
            position = match.end()
        end = re.compile(r"\s*(/?)>").match(self._text, position)
        if end is None:
            return MarkupFault(
                f'the opening tag <{name}> is malformed: attributes are written name="value"'
            )
        return attributes, end.end(), bool(end[1])

    def _until_the_end(self, at: int, position: int) -> str | None:
        """Return the content of a last block without a closing tag, or None if that is not safe.

        It is safe only if the text was not cut, the block begins a line, and no other tag follows.
        """
        content = self._text[position:]
        starts_line = not self._text[self._text.rfind("\n", 0, at) + 1 : at].strip()
        if self._cut or not starts_line or self._tag.search(content):
            return None
        return content

    def _read_children(
        self, name: str, attributes: dict[str, str], position: int, close: str, at: int
    ) -> tuple[Block, int] | MarkupFault:
        """Return the block with its children and the position after it, or a fault."""
        children: list[Block] = []
        child = re.compile(rf"\s*<({_choice(self._grammar.children)})(?=[\s/>])")
        while match := child.match(self._text, position):
            read = self._read(match[1], match.start(1) - 1, inner=True)
            if isinstance(read, MarkupFault):
                return read
            block, position = read
            children.append(block)
        end = re.compile(rf"\s*{re.escape(close)}").match(self._text, position)
        if end:
            return Block(name, attributes, "", tuple(children)), end.end()
        if self._text[position:].strip():
            inside = ", ".join(f"<{c}>" for c in self._grammar.children)
            return MarkupFault(f"<{name}> holds nothing but {inside}, and ends with {close}")
        if self._until_the_end(at, position) is None:
            return MarkupFault(f"<{name}> is not closed: {close} is missing")
        return Block(name, attributes, "", tuple(children)), len(self._text)
