"""Links the places in the code that an agent names to the lines of the commit that it read."""

import re
from collections.abc import Callable
from functools import cache
from urllib.parse import quote

from resolver.config.settings import Settings
from resolver.git.workspace import Workspace
from resolver.models.run import Trigger, TriggerKind

_PATH = r"(?:\w[\w.+-]{0,99}(?:/[\w.+-]{1,100}){0,20}|\.\w[\w.-]{0,99}(?:/[\w.+-]{1,100}){0,20})"
_LOCATION = re.compile(
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
_PATH_GROUPS, _FIRST_LINE_GROUPS, _LAST_LINE_GROUPS = (
    ("path", "path2", "path3"),
    ("line", "line1", "line2", "line3"),
    ("last", "last1", "last2", "last3"),
)


def link_code_places(text: str, page_url: str, count_lines: Callable[[str], int | None]) -> str:
    """Return `text` with a markdown link for each code location that exists.

    Locations are `path:12`, `path:12-18`, `path#L12-L18`, and prose such as "`path`, line 12" or
    "lines 12-18 of `path`". `page_url` is the URL under which the files of the commit are shown,
    without a trailing slash. `count_lines` returns how many lines a file of the commit has, or None
    if there is no such file. Locations in unknown files and beyond the end of a file are left as
    text.
    """
    line_count = cache(count_lines)

    def link(match: re.Match[str]) -> str:
        path, first, last = (
            next((text for group in groups if (text := match[group])), None)
            for groups in (_PATH_GROUPS, _FIRST_LINE_GROUPS, _LAST_LINE_GROUPS)
        )
        if path is None:
            return match[0]
        start, end = int(first or 0), int(last or first or 0)
        length = line_count(path)
        if length is None or not start <= end <= length:
            return match[0]
        plain = "?plain=1" if path.lower().endswith((".md", ".rst")) else ""
        lines = f"#L{start}" if start == end else f"#L{start}-L{end}"
        label = f"`{match[0].strip('`')}`" if match["path"] else match[0]
        return f"[{label}]({page_url}/{quote(path)}{plain}{lines})"

    return _LOCATION.sub(link, text)


def code_linker(trigger: Trigger, settings: Settings, workspace: Workspace) -> Callable[[str], str]:
    """Return a function that links the code places in a text. A local run gets no links."""
    if trigger.kind is TriggerKind.LOCAL:
        return lambda text: text
    server = settings.github_server_url.rstrip("/")
    page_url = f"{server}/{trigger.repository}/blob/{workspace.base}"
    return lambda text: link_code_places(text, page_url, workspace.lines_of)
