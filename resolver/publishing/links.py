"""Links the places in the code that an agent names to the lines of the commit that it read."""

import re
from collections.abc import Callable
from functools import cache
from urllib.parse import quote

from resolver.config.settings import Settings
from resolver.git.workspace import Workspace
from resolver.models.run import Trigger, TriggerKind

_PATH = r"(?:\w[\w.+-]{0,99}(?:/[\w.+-]{1,100}){0,20}|\.\w[\w.-]{0,99}(?:/[\w.+-]{1,100}){0,20})"
_PLACE = re.compile(
    rf"(?<![\w/.`\[@:\\-])(?P<tick>`?)(?P<path>{_PATH})"
    r"(?::(?P<line>[1-9][0-9]{0,6})(?:-(?P<last>[1-9][0-9]{0,6}))?"
    r"|#L(?P<line1>[1-9][0-9]{0,6})(?:-L?(?P<last1>[1-9][0-9]{0,6}))?)"
    r"(?P=tick)(?![\w`\]/:-])"
    # in prose: "`calc.py`, line 10", "`calc.py` (lines 10-12)", "lines 10 to 12 of `calc.py`"
    rf"|(?<![\w/.`\[@:\\-])(?=`|[\w/+-]*\.\w)(?P<tick2>`?)(?P<path2>{_PATH})(?P=tick2)"
    r"(?:,? (?:(?:at|on|in) )?|,? (?P<open>\())"
    r"[Ll]ines? (?P<line2>[1-9][0-9]{0,6})(?:(?:-|–| to )(?P<last2>[1-9][0-9]{0,6}))?"
    r"(?(open)\))(?![\w`\]/:-])"
    r"|\b[Ll]ines? (?P<line3>[1-9][0-9]{0,6})(?:(?:-|–| to )(?P<last3>[1-9][0-9]{0,6}))?"
    rf" (?:of|in) (?P<tick3>`?)(?P<path3>{_PATH}(?<!\.))(?P=tick3)(?![\w`\]/:-])"
    # left as it is: fenced blocks, other code, links, URLs
    r"|(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)|(?P<span>`{1,2})[^`]{1,2000}(?P=span)"
    r"|\[[^\]\n]{0,500}\]\([^)\n]{0,500}\)|https?://\S+",
    re.S,
)
_PATHS, _FIRST, _LAST = (
    ("path", "path2", "path3"),
    ("line", "line1", "line2", "line3"),
    ("last", "last1", "last2", "last3"),
)


def link_code_places(text: str, page: str, lines_of: Callable[[str], int | None]) -> str:
    """Return `text` with each code location that exists made a markdown link.

    Locations are `path:12`, `path:12-18`, `path#L12-L18`, and prose such as "`path`, line 12" or
    "lines 12-18 of `path`". `page` is the URL under which the files of the commit are shown,
    without a trailing slash. `lines_of` returns how many lines a file of the commit has, or None if
    there is no such file. Locations in unknown files and beyond the end of a file are left as text.
    """
    known = cache(lines_of)

    def linked(found: re.Match[str]) -> str:
        path, first, last = (
            next((text for group in groups if (text := found[group])), None)
            for groups in (_PATHS, _FIRST, _LAST)
        )
        if path is None:
            return found[0]
        begin, end = int(first or 0), int(last or first or 0)
        length = known(path)
        if length is None or not begin <= end <= length:
            return found[0]
        plain = "?plain=1" if path.lower().endswith((".md", ".rst")) else ""
        lines = f"#L{begin}" if begin == end else f"#L{begin}-L{end}"
        words = f"`{found[0].strip('`')}`" if found["path"] else found[0]
        return f"[{words}]({page}/{quote(path)}{plain}{lines})"

    return _PLACE.sub(linked, text)


def code_linker(trigger: Trigger, settings: Settings, workspace: Workspace) -> Callable[[str], str]:
    """Return a function that links the code places in a text. A local run gets no links."""
    if trigger.kind is TriggerKind.LOCAL:
        return lambda text: text
    server = settings.github_server_url.rstrip("/")
    page = f"{server}/{trigger.repository}/blob/{workspace.base}"
    return lambda text: link_code_places(text, page, workspace.lines_of)
