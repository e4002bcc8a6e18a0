"""Makes markdown ready for a comment: a model's text without any effect, a trace of limited length.

A model's text is parsed as GitHub parses it and written again from the syntax tree. Prose, lists,
tables and code are kept; raw HTML and images are shown as text; mentions and references to other
issues become code. What is not in the tree cannot get into the result.

A long trace keeps whole blocks from its start and end, with their tags closed. Sizes are in UTF-16
units. GitHub's limit is 65,536 characters, and a text never has more characters than units.
"""

import re
from collections.abc import Sequence

from markdown_it.tree import SyntaxTreeNode

from resolver.github.text.markdown import (
    block_parser,
    code_span,
    fence,
    join_line_parts,
    make_inert,
    markdown_parser,
    may_be_linked,
    shorten_text,
    visible,
    without_bot_commands,
)
from resolver.trace.untrusted_text import utf16_length

MAX_SOURCE_CHARACTERS = 20_000
"""Maximum number of characters of a model's text that are used."""


def safe_markdown(
    text: str,
    *,
    own_issue: int | None = None,
    limit: int = 12_000,
    forge_host: str | None = None,
    is_document: bool = False,
) -> str:
    """Return `text` as harmless markdown of at most `limit` UTF-16 units.

    Every construct is closed. `own_issue` is the number of the one issue that may be referenced,
    `forge_host` the one host whose pages are linked; other URLs are shown as code. A document keeps
    the levels of its headings and its checkboxes; other text is a part of one.
    """
    source = shorten_text(visible(text), MAX_SOURCE_CHARACTERS)
    while True:
        tree = SyntaxTreeNode(markdown_parser().parse(source))
        blocks = _Writer(own_issue, forge_host, is_document).blocks(tree.children)
        markdown = without_bot_commands(blocks)
        size = utf16_length(markdown)
        if size <= limit or len(source) <= 1:
            return markdown if size <= limit else ""
        source = shorten_text(source, max(1, min(len(source) * limit // size, len(source) - 1)))


_ESCAPED_BOX = re.compile(r"\A\\\[([ xX])\\\] ")


class _Writer:
    """Writes a syntax tree as markdown."""

    def __init__(self, own_issue: int | None, forge_host: str | None, is_document: bool) -> None:
        self._own_issue = own_issue
        self._forge_host = forge_host
        self._is_document = is_document
        self._is_in_link = False

    def blocks(self, nodes: Sequence[SyntaxTreeNode]) -> str:
        blocks = (self._block(node) for node in nodes)
        return "\n\n".join(block for block in blocks if block)

    def _block(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "paragraph":
                return self._inline(node.children, at_line_start=True)
            case "heading":
                content = self._inline(node.children, at_line_start=True).replace("\n", " ")
                level = int(node.tag[1:]) if self._is_document else 4
                return f"{'#' * level} {content}" if content else ""
            case "fence":
                return fence(node.content, node.info.strip().split(" ")[0])
            case "code_block":
                return fence(node.content)
            case "html_block":
                return fence(node.content, "html")
            case "hr":
                return "***"
            case "blockquote":
                return _prefix_lines(self.blocks(node.children), "> ", "> ")
            case "bullet_list":
                return self._list(node, None)
            case "ordered_list":
                return self._list(node, int(node.attrs.get("start", 1)))
            case "table":
                return self._table(node)
            case _:
                return self._inline(node.children, at_line_start=True)

    def _list(self, node: SyntaxTreeNode, number: int | None) -> str:
        items = []
        for offset, item in enumerate(node.children):
            marker = "- " if number is None else f"{min(number + offset, 999_999_999)}. "
            content = self._item(item)
            if self._is_document:
                content = _ESCAPED_BOX.sub(r"[\1] ", content)
            items.append(_prefix_lines(content, marker, " " * len(marker)))
        return "\n".join(items)

    def _item(self, item: SyntaxTreeNode) -> str:
        children = item.children
        is_tight = len(children) > 1 and children[0].type == "paragraph" and children[0].hidden
        if is_tight and children[1].type == "bullet_list":
            return f"{self._block(children[0])}\n{self.blocks(children[1:])}"
        return self.blocks(children)

    def _table(self, node: SyntaxTreeNode) -> str:
        rows = [
            [self._cell(cell) for cell in row.children]
            for section in node.children
            for row in section.children
        ]
        if not rows:
            return ""
        lines = [f"| {' | '.join(row)} |" for row in rows]
        return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])

    def _cell(self, node: SyntaxTreeNode) -> str:
        return self._inline(node.children, in_table=True).replace("\n", " ")

    def _inline(
        self,
        nodes: Sequence[SyntaxTreeNode],
        *,
        at_line_start: bool = False,
        in_table: bool = False,
    ) -> str:
        parts: list[str] = []
        for node in nodes:
            markdown = self._span(node, at_line_start, in_table)
            if markdown:
                parts.append(markdown)
                at_line_start = markdown.endswith("\n")
        return join_line_parts(parts)

    def _span(self, node: SyntaxTreeNode, at_line_start: bool, in_table: bool) -> str:
        match node.type:
            case "text" | "html_inline":
                return make_inert(
                    node.content,
                    own_issue=self._own_issue,
                    at_line_start=at_line_start,
                    # A link's text must not be a link of its own.
                    forge_host=None if self._is_in_link else self._forge_host,
                )
            case "softbreak":
                return "\n"
            case "hardbreak":
                return "\\\n"
            case "code_inline":
                return code_span(node.content, in_table=in_table)
            case "em" | "strong" | "s":
                mark = {"em": "*", "strong": "**", "s": "~~"}[node.type]
                content = self._inline(node.children, in_table=in_table)
                return f"{mark}{content}{mark}" if content.strip() else content
            case "link":
                return self._link(node, in_table)
            case "image":
                url = code_span(
                    shorten_text(str(node.attrs.get("src", "")), 200), in_table=in_table
                )
                description = make_inert(node.content, own_issue=self._own_issue)
                return f"(image: {' '.join(filter(None, (description, url)))})"
            case _:
                return self._inline(node.children, at_line_start=at_line_start, in_table=in_table)

    def _link(self, node: SyntaxTreeNode, in_table: bool) -> str:
        href = str(node.attrs.get("href", ""))
        self._is_in_link = True
        label = self._inline(node.children, in_table=in_table).replace("\n", " ")
        self._is_in_link = False
        is_autolink = node.info == "auto"
        if not may_be_linked(href, self._forge_host):
            url = code_span(shorten_text(href, 200), in_table=in_table)
            if is_autolink or not label:
                return url
            return f"{label} ({url})" if url else label
        target = f"<{href.replace(chr(92), '%5C').replace('|', '%7C')}>"
        return target if is_autolink or not label else f"[{label}]({target})"


def _prefix_lines(text: str, first_prefix: str, next_prefix: str) -> str:
    lines = text.split("\n")
    return "\n".join(
        (first_prefix if index == 0 else next_prefix) + line
        if line or index == 0
        else next_prefix.rstrip()
        for index, line in enumerate(lines)
    )


MAX_BODY = 65_536
"""Maximum length of the body of an issue, pull request or comment on GitHub, in characters."""

_SENTINEL = "end-of-the-text"
_OPEN = re.compile(r"<details\b", re.I)
_CLOSE = re.compile(r"</details\s*>", re.I)


def is_closed(markdown: str) -> bool:
    """Return True if text after `markdown` would be a paragraph outside of all constructs."""
    tokens = block_parser().parse(f"{markdown}\n\n{_SENTINEL}\n")
    if len(tokens) < 3 or tokens[-3].type != "paragraph_open" or tokens[-3].level != 0:
        return False
    html = "".join(token.content for token in tokens if token.type == "html_block")
    is_balanced = len(_OPEN.findall(html)) == len(_CLOSE.findall(html))
    return tokens[-2].content == _SENTINEL and is_balanced
