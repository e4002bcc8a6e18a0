"""Places in the code that an answer names, as links to the commit that was read."""

import re
from collections.abc import Callable
from functools import cache
from urllib.parse import quote

_PLACE = re.compile(
    r"(?<![\w/.`\[@:\\-])(?P<tick>`?)"
    r"(?P<path>\w[\w.+-]{0,99}(?:/[\w.+-]{1,100}){0,20}|\.\w[\w.-]{0,99}(?:/[\w.+-]{1,100}){0,20})"
    r"(?::(?P<line>[1-9][0-9]{0,6})(?:-(?P<last>[1-9][0-9]{0,6}))?"
    r"|#L(?P<line2>[1-9][0-9]{0,6})(?:-L?(?P<last2>[1-9][0-9]{0,6}))?)"
    r"(?P=tick)(?![\w`\]/:-])"
    # what stays as it is: fences, other code, links, addresses
    r"|(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)|(?P<span>`{1,2})[^`]{1,2000}(?P=span)"
    r"|\[[^\]\n]{0,500}\]\([^)\n]{0,500}\)|https?://\S+",
    re.S,
)


def with_links(text: str, page: str, lines_of: Callable[[str], int | None]) -> str:
    """`text` with each `path:12`, `path:12-18`, `path#L12-L18` that exists made a markdown link.

    page: URL under which a path of the commit is shown, without a slash at its end.
    lines_of: how many lines a file of the commit has, None when there is no such file. What it
        doesn't know, and what lies beyond a file's end, stays text.
    """
    known = cache(lines_of)

    def linked(found: re.Match[str]) -> str:
        path = found["path"]
        if path is None:
            return found[0]
        first = int(found["line"] or found["line2"])
        last = int(found["last"] or found["last2"] or first)
        length = known(path)
        if length is None or not first <= last <= length:
            return found[0]
        plain = "?plain=1" if path.lower().endswith((".md", ".rst")) else ""
        lines = f"#L{first}" if first == last else f"#L{first}-L{last}"
        return f"[`{found[0].strip('`')}`]({page}/{quote(path)}{plain}{lines})"

    return _PLACE.sub(linked, text)
