"""Reads raw HTML in a markdown text: where tags, comments and hidden elements begin and end.

Two readers have to agree on what is hidden. Markdown decides what is HTML and what is text or code;
a browser then reads the HTML. In a line, markdown accepts complete tags only. In a block of HTML it
checks nothing, so a browser may find the end of a tag or of an element far behind.

Sources: https://spec.commonmark.org/0.31.2/#html-blocks and
https://html.spec.whatwg.org/multipage/parsing.html
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from resolver.github.text.markdown import block_parser, link_parser

_MAX_SEARCHED_TAGS = 1_000
"""Maximum number of tags that are searched for the end of a hidden element."""

# Atomic groups keep these patterns linear without limits on length: what is longer than a limit
# would not be found. (Possessive groups match wrongly before Python 3.11.5.)
_TAG = re.compile(
    r"""<(?P<close>/)?(?P<name>[A-Za-z][A-Za-z0-9-]*+)
    (?P<attributes>(?(close)\s*+|(?>(?:\s+[A-Za-z_:][\w:.-]*
      (?:\s*=\s*(?:[^\s"'=<>`]+|'[^']*'|"[^"]*"))?)*)\s*+/?))>""",
    re.X | re.A,
)
"""A tag as markdown reads it in a line: https://spec.commonmark.org/0.31.2/#raw-html"""

_BLOCK_TAG = re.compile(
    r"""<(?P<close>/)?(?P<name>[A-Za-z][^\s/>]*)
    (?P<attributes>(?>(?:[\s/]+|[^\s/>][^\s/>=]*
      (?:\s*=\s*(?:"[^"]*(?:"|(?P<open>\Z))|'[^']*(?:'|(?P<open_single>\Z))|[^\s>"'][^\s>]*)?)?)*))
    (?P<end>>?)""",
    re.X,
)
"""A tag as browsers read it, perhaps without its end. In a block of HTML, markdown does not check
tags."""

_BLOCK_ATTRIBUTE = re.compile(
    r"""([^\s/>][^\s/>=]*)(?:\s*=\s*("[^"]*"?|'[^']*'?|[^\s>"'][^\s>]*))?"""
)
_ATTRIBUTE = re.compile(r"""([A-Za-z_:][\w:.-]*+)(?:\s*+=\s*+("[^"]*"|'[^']*'|[^\s"'=<>`]+))?""")
_COMMENT = re.compile(r"<!--(?>>|->|(?s:.*?)(?:-->|\Z))|<[!?][^>]*>?")
"""A comment as browsers read it, with all that they take for one: `<?...>` and `<!...>`."""

_LINE_COMMENTS = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">"))
"""Pairs of the text that begins a comment in a line and the text that ends it in its paragraph."""

_SHOWN_ATTRIBUTES = {"href", "src", "open", "align", "width", "height", "colspan", "rowspan"}
_PLAIN_VALUE = re.compile(r"""["']?[\w.%-]{0,20}["']?""")
"""A value that is too short for words to a model."""

_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0|font-size\s*:\s*0|"
    r"(?<![\w-])color\s*:\s*(?:transparent|white|\#fff)",
    re.I,
)
_HIDDEN_ELEMENTS = {
    "script", "style", "template", "noscript", "iframe", "object", "title", "head", "svg",
    "noembed", "noframes", "datalist",
}  # fmt: skip
_SCOPES = {"applet", "marquee", "math", "object", "select", "svg", "table", "template"}
"""Elements in which a browser ignores the closing tags of the elements around them."""

_BLOCKS = {
    "address", "article", "aside", "blockquote", "center", "details", "dialog", "dir", "div", "dl",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "main", "menu", "nav",
    "ol", "pre", "search", "section", "summary", "ul",
}  # fmt: skip
"""Elements whose closing tags close all that is open in them, but for `_SCOPES`."""

_PARTS = {
    "caption", "dd", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "li", "p", "tbody", "td", "tfoot",
    "th", "thead", "tr",
}  # fmt: skip
"""Elements that keep the closing tag of a `<span>` or another part of a line from closing it."""

_VOID_ELEMENTS = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
}  # fmt: skip

Region = tuple[int, int]


def has_hidden_html(text: str) -> bool:
    """Return True if the parser finds HTML in the text that hides something."""
    if "<" not in text:
        return False
    tokens = link_parser().parse(text)
    blocks = [token.content for token in tokens if token.type == "html_block"]
    inline = [
        child.content
        for token in tokens
        for child in token.children or []
        if child.type == "html_inline"
    ]
    return (
        any("<!" in part or "<?" in part for part in blocks + inline)
        or any(is_hiding_tag(tag) for part in inline for tag in _TAG.finditer(part))
        or any(
            is_hiding_tag(tag) or not tag["end"]
            for part in blocks
            for tag in _BLOCK_TAG.finditer(part)
        )
    )


def line_starts(text: str) -> list[int]:
    """Return the offset of each line, and one after the end of the text."""
    return [0, *(m.end() for m in re.finditer("\n", text)), len(text) + 1]


def code_regions(text: str) -> list[Region]:
    """Return the offsets of code blocks and code spans, in order."""
    return read_raw_html(text).code


@dataclass(frozen=True)
class RawHtml:
    """A text with the offsets of its code blocks and code spans, of its blocks of HTML, and of its
    paragraphs and other blocks of lines."""

    text: str
    code: list[Region]
    html: list[Region]
    lines: list[Region]

    def tag_at(self, position: int) -> re.Match[str] | None:
        """Return the complete tag at the offset, None if there is none."""
        block = region_at(self.html, position)
        if block is None:
            return _TAG.match(self.text, position, self.end_of_lines(position))
        tag = _BLOCK_TAG.match(self.text, position, block[1])
        return tag if tag and tag["end"] else None

    def end_of_comment(self, position: int) -> int:
        """Return where a comment at the offset ends; `position` if there is none.

        In a line that is not HTML alone, one without an end is text. It is removed nevertheless up
        to the next tag, because many programs take it for a comment.
        """
        block = region_at(self.html, position)
        if block is not None:
            comment = _COMMENT.match(self.text, position, block[1])
            is_endless = comment and comment[0].startswith("<!--") and comment[0][-1] != ">"
            return len(self.text) if is_endless else comment.end() if comment else position
        last = self.end_of_lines(position)
        for opening, closing in _LINE_COMMENTS:
            if not self.text.startswith(opening, position):
                continue
            after = position + len(opening)
            if opening == "<!" and not self.text[after : after + 1].isalpha():
                return position
            comment = _COMMENT.match(self.text, position, last)
            end = self.text.find(closing, position + 2, last) + len(closing)
            if comment and end >= len(closing):
                # For a browser the first `>` ends it. What follows may hide more.
                is_longer = "<" in self.text[comment.end() : end]
                return len(self.text) if is_longer else max(comment.end(), end)
            if opening != "<!--":
                return position
            next_tag = self.text.find("<", after, last)
            return last if next_tag == -1 else next_tag
        return position

    def end_of_block(self, position: int) -> int:
        """Return the end of the block of HTML or the paragraph around the offset."""
        block = region_at(self.html, position)
        return block[1] if block else self.end_of_lines(position)

    def end_of_lines(self, position: int) -> int:
        """Return the end of the paragraph around the offset. No tag in it continues beyond that."""
        block = region_at(self.lines, position)
        return block[1] if block else len(self.text)

    def end_of_unfinished_tag(self, position: int) -> int:
        """Return where a tag without an end in its block of HTML ends; `position` if none is there.

        The tag continues in what follows the block, which matters if it hides that.
        """
        block = region_at(self.html, position)
        tag = _BLOCK_TAG.match(self.text, position, block[1]) if block else None
        if block is None or tag is None:
            return position
        is_open = tag["open"] is not None or tag["open_single"] is not None
        return len(self.text) if is_open or is_hiding_tag(tag) else block[1]

    def is_escaped(self, position: int) -> bool:
        """Return True if a backslash makes text of the character at the offset."""
        before = self.text[max(0, position - 100) : position]
        backslashes = len(before) - len(before.rstrip("\\"))
        return backslashes % 2 == 1 and region_at(self.html, position) is None


def read_raw_html(text: str) -> RawHtml:
    """Return the text with the places of its code and its HTML."""
    starts = line_starts(text)
    code: list[Region] = []
    html: list[Region] = []
    blocks: list[Region] = []
    row_regions: set[Region] = set()
    for token in block_parser().parse(text):
        if token.map is None:
            continue
        first, last = (min(starts[min(line, len(starts) - 1)], len(text)) for line in token.map)
        if token.type in {"fence", "code_block"}:
            code.append((first, last))
        elif token.type == "html_block":
            html.append((first, last))
        elif token.type in {"inline", "tr_open"} and (first, last) not in row_regions:
            row_regions.add((first, last))  # all cells of a table row have the position of the row
            blocks.append((first, last))
            code.extend(_code_spans(text, first, last))
    return RawHtml(text, sorted(code), html, blocks)


def region_at(regions: Sequence[Region], position: int) -> Region | None:
    """Return the region that contains the offset, or None."""
    index = bisect_right(regions, position, key=lambda region: region[0]) - 1
    return regions[index] if index >= 0 and position < regions[index][1] else None


def _code_spans(text: str, start: int, end: int) -> list[Region]:
    """Return the code spans between two offsets.

    As in CommonMark, the leftmost of backslash escape, code span and HTML tag takes precedence. See
    https://spec.commonmark.org/0.31.2/#code-spans
    """
    spans: list[Region] = []
    runs: dict[int, list[int]] = {}
    for run in re.compile("`+").finditer(text, start, end):
        runs.setdefault(len(run[0]), []).append(run.start())
    position = start
    while position < end:
        character = text[position]
        if character == "\\":
            position += 2
        elif character == "`":
            length = len(re.compile("`+").match(text, position, end)[0])  # type: ignore[index]
            closers = runs.get(length, [])
            index = bisect_right(closers, position + length - 1)
            if index < len(closers):
                spans.append((position, closers[index] + length))
                position = closers[index] + length
            else:
                position += length
        elif character == "<":
            tag = _TAG.match(text, position, end)
            position = tag.end() if tag else position + 1
        else:
            position += 1
    return spans


def is_hiding_tag(tag: re.Match[str]) -> bool:
    """Return True if the tag begins an element that is not shown."""
    if tag["close"]:
        return False
    if tag["name"].lower() in _HIDDEN_ELEMENTS:
        return True
    return any(
        name.lower() == "hidden" or (name.lower() == "style" and _HIDDEN_STYLE.search(value))
        for name, value in _attributes(tag)
    )


def _attributes(tag: re.Match[str]) -> list[tuple[str, str]]:
    pattern = _BLOCK_ATTRIBUTE if tag.re is _BLOCK_TAG else _ATTRIBUTE
    return pattern.findall(tag["attributes"])


def end_of_element(markup: RawHtml, tag: re.Match[str]) -> int:
    """Return where an element ends that hides its content, with all others that begin in it."""
    name = tag["name"].lower()
    if name in _VOID_ELEMENTS:
        return tag.end()
    open_elements = [name]
    # What markdown makes of the next block keeps the closing tag of a part of a line from working.
    limit = len(markup.text) if name in _BLOCKS | _SCOPES else markup.end_of_block(tag.start())
    position = tag.end()
    for _ in range(_MAX_SEARCHED_TAGS):
        position = markup.text.find("<", position, limit)
        if position == -1:
            # GitHub shows an unclosed <script> as text; otherwise all the rest is hidden.
            return tag.end() if name in _HIDDEN_ELEMENTS else len(markup.text)
        region = region_at(markup.code, position)
        end_of_comment = markup.end_of_comment(position)
        inner = markup.tag_at(position)
        if region is not None:
            position = region[1]
        elif end_of_comment > position and not markup.is_escaped(position):
            position = end_of_comment
        elif inner is None or markup.is_escaped(position):
            if markup.end_of_unfinished_tag(position) > position:
                return len(markup.text)
            position += 1
        else:
            position = inner.end()
            _follow_tag(open_elements, inner)
            if not open_elements:
                return position
    # Drop the rest: nothing hidden may remain, and searching further takes too long.
    return len(markup.text)


def _follow_tag(open_elements: list[str], tag: re.Match[str]) -> None:
    """Add the element that the tag opens, or remove those that it closes, as far as they matter."""
    name = tag["name"].lower()
    if not tag["close"]:
        matters = name in open_elements or name in _SCOPES or is_hiding_tag(tag)
        in_line = not _BLOCKS.union(_SCOPES).issuperset(open_elements)
        if name not in _VOID_ELEMENTS and (matters or (in_line and name in _BLOCKS | _PARTS)):
            open_elements.append(name)
        return
    barriers = _SCOPES if name in _BLOCKS | _SCOPES else _SCOPES | _BLOCKS | _PARTS
    for index in range(len(open_elements) - 1, -1, -1):
        if open_elements[index] == name:
            # Only a block closes all that is open in it.
            last = len(open_elements) if name in _BLOCKS | _SCOPES else index + 1
            del open_elements[index:last]
            return
        if open_elements[index] in barriers:
            return


def without_hidden_attributes(tag: re.Match[str]) -> str:
    """Return the tag with the attributes whose values people see or follow."""
    attributes = _attributes(tag)
    shown_attributes = [
        f" {name}={value}" if value else f" {name}"
        for name, value in attributes
        if _is_shown_attribute(name, value)
    ]
    if not tag["attributes"].strip() or len(shown_attributes) == len(attributes):
        return tag[0]
    return f"<{tag['close'] or ''}{tag['name']}{''.join(shown_attributes)}>"


def _is_shown_attribute(name: str, value: str) -> bool:
    is_plain = name.lower() in {"href", "src"} or _PLAIN_VALUE.fullmatch(value) is not None
    return name.lower() in _SHOWN_ATTRIBUTES and is_plain


def is_plain_image(tag: re.Match[str]) -> bool:
    """Return True for an `<img>` such as GitHub writes for a file that was dropped into a text."""
    names = {name.lower() for name, _ in _attributes(tag)}
    return tag["name"].lower() == "img" and names <= _SHOWN_ATTRIBUTES | {"alt"}
