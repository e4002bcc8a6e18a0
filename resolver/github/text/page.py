"""Reads HTML as a browser does: sanitized, and with the elements followed that hide their text."""

import re
from html.parser import HTMLParser

import nh3

HIDDEN_ELEMENTS = frozenset({"template", "noscript", "object", "head", "svg", "math", "datalist"})
"""Elements whose content is not shown. Without a closing tag, the opening one is shown as text."""

SHOWN_AS_TEXT = frozenset({
    "title", "textarea", "style", "xmp", "iframe", "noembed", "noframes", "script", "plaintext",
})  # fmt: skip
"""Source: https://github.github.com/gfm/#disallowed-raw-html-extension-"""

_VOID_ELEMENTS = {
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input",
    "keygen", "link", "meta", "param", "source", "track", "wbr",
}  # fmt: skip
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0|font-size\s*:\s*0|"
    r"(?<![\w-])color\s*:\s*(?:transparent|white|\#fff)",
    re.I,
)

TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)")
"""The beginning of a tag, with its slash and its name."""


def sanitize(html: str) -> str:
    """Return HTML as browsers read it, well-formed, without hidden elements by name and comments.

    All that is left of attributes is what hides, links or shows a picture.
    """
    names = {name.lower() for _, name in TAG.findall(html)}
    return nh3.clean(
        html,
        tags=names - HIDDEN_ELEMENTS - SHOWN_AS_TEXT,
        clean_content_tags=set(HIDDEN_ELEMENTS | SHOWN_AS_TEXT),
        attributes={"*": {"hidden", "style", "href", "src"}},
        link_rel=None,
    )


class PageReader(HTMLParser):
    """Reads sanitized HTML in order, and follows which open elements hide their text.

    A subclass says what it does with each part.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self._open: list[bool] = []
        self._hiding = 0

    def hides(self, tag: str, attributes: dict[str, str]) -> bool:  # noqa: ARG002
        """Return True if the text of the element is left out."""
        return "hidden" in attributes or bool(_HIDDEN_STYLE.search(attributes.get("style", "")))

    def start(self, tag: str, attributes: dict[str, str], *, is_hidden: bool) -> None:
        """Read where an element begins."""

    def end(self, tag: str, *, is_hidden: bool) -> None:
        """Read where an element ends."""

    def add(self, text: str, *, is_hidden: bool) -> None:
        """Read a piece of text, with its entities decoded, but `&lt;`."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read where an element begins."""
        attributes = {name: value or "" for name, value in attrs}
        hides = self.hides(tag, attributes)
        if tag not in _VOID_ELEMENTS:
            self._open.append(hides)
            self._hiding += hides
        self.start(tag, attributes, is_hidden=hides or self._hiding > 0)

    def handle_endtag(self, tag: str) -> None:
        """Read where an element ends."""
        is_hidden = self._hiding > 0
        self._hiding -= self._open.pop() if self._open else 0
        self.end(tag, is_hidden=is_hidden)

    def handle_data(self, data: str) -> None:
        """Read text without entities."""
        self.add(data, is_hidden=self._hiding > 0)

    def handle_entityref(self, name: str) -> None:
        """Read an entity. The sanitizer writes no others than these."""
        text = {"amp": "&", "gt": ">", "nbsp": " "}.get(name, f"&{name};")
        self.add(text, is_hidden=self._hiding > 0)
