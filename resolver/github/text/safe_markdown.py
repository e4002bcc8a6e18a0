"""Rewrites a model's markdown so that it has no effect but to be read.

The text is parsed as GitHub parses it and written again from the syntax tree. Prose, lists, tables
and code are kept; raw HTML and images are shown as text; mentions and references to other issues
become code. What is not in the tree cannot get into the result.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from markdown_it.tree import SyntaxTreeNode

from resolver.github.text.escape import (
    code_span,
    fence,
    inert,
    joined,
    links_to_forge,
    shorten_text,
    visible,
)
from resolver.github.text.markdown import markdown_parser
from resolver.trace.markdown import utf16_length

CUT_SOURCE = 20_000
"""Maximum number of characters of a model's text that are used."""


def safe_markdown(text: str, *, own_issue: int | None = None, limit: int = 12_000) -> str:
    """Return `text` as harmless markdown of at most `limit` UTF-16 units.

    Every construct is closed. `own_issue` is the number of the one issue that may be referenced.
    """
    source = shorten_text(visible(text), CUT_SOURCE)
    while True:
        tree = SyntaxTreeNode(markdown_parser().parse(source))
        written = _Writer(own_issue).blocks(tree.children)
        size = utf16_length(written)
        if size <= limit or len(source) <= 1:
            return written if size <= limit else ""
        source = shorten_text(source, max(1, min(len(source) * limit // size, len(source) - 1)))


class _Writer:
    """Writes a syntax tree as markdown."""

    def __init__(self, own_issue: int | None) -> None:
        self._own_issue = own_issue

    def blocks(self, nodes: Sequence[SyntaxTreeNode]) -> str:
        written = (self._block(node) for node in nodes)
        return "\n\n".join(block for block in written if block)

    def _block(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "paragraph":
                return self._inline(node.children, at_line_start=True)
            case "heading":
                words = self._inline(node.children, at_line_start=True).replace("\n", " ")
                return f"#### {words}" if words else ""
            case "fence":
                return fence(node.content, node.info.strip().split(" ")[0])
            case "code_block":
                return fence(node.content)
            case "html_block":
                return fence(node.content, "html")
            case "hr":
                return "***"
            case "blockquote":
                return _prefixed(self.blocks(node.children), "> ", "> ")
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
            items.append(_prefixed(self._item(item), marker, " " * len(marker)))
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
            written = self._span(node, at_line_start, in_table)
            if written:
                parts.append(written)
                at_line_start = written.endswith("\n")
        return joined(parts)

    def _span(self, node: SyntaxTreeNode, at_line_start: bool, in_table: bool) -> str:
        match node.type:
            case "text" | "html_inline":
                return inert(node.content, own_issue=self._own_issue, at_line_start=at_line_start)
            case "softbreak":
                return "\n"
            case "hardbreak":
                return "\\\n"
            case "code_inline":
                return code_span(node.content, in_table=in_table)
            case "em" | "strong" | "s":
                mark = {"em": "*", "strong": "**", "s": "~~"}[node.type]
                words = self._inline(node.children, in_table=in_table)
                return f"{mark}{words}{mark}" if words.strip() else words
            case "link":
                return self._link(node, in_table)
            case "image":
                where = code_span(
                    shorten_text(str(node.attrs.get("src", "")), 200), in_table=in_table
                )
                name = inert(node.content, own_issue=self._own_issue)
                return f"(image: {' '.join(filter(None, (name, where)))})"
            case _:
                return self._inline(node.children, at_line_start=at_line_start, in_table=in_table)

    def _link(self, node: SyntaxTreeNode, in_table: bool) -> str:
        href = str(node.attrs.get("href", ""))
        words = self._inline(node.children, in_table=in_table).replace("\n", " ")
        automatic = node.info == "auto"
        if not _may_be_linked(href):
            where = code_span(shorten_text(href, 200), in_table=in_table)
            if automatic or not words:
                return where
            return f"{words} ({where})" if where else words
        target = f"<{href.replace(chr(92), '%5C').replace('|', '%7C')}>"
        return target if automatic or not words else f"[{words}]({target})"


def _may_be_linked(href: str) -> bool:
    try:
        parts = urlsplit(href)
    except ValueError:
        return False
    if parts.scheme not in {"http", "https"} or not parts.netloc or "@" in href:
        return False
    return not any(c in href for c in "<>\n \t") and not links_to_forge(href)


def _prefixed(text: str, first: str, rest: str) -> str:
    lines = text.split("\n")
    return "\n".join(
        (first if index == 0 else rest) + line if line or index == 0 else rest.rstrip()
        for index, line in enumerate(lines)
    )
