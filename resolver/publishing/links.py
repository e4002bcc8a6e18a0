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
    # left as it is: fenced blocks, other code, links, URLs
    r"|(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)|(?P<span>`{1,2})[^`]{1,2000}(?P=span)"
    r"|\[[^\]\n]{0,500}\]\([^)\n]{0,500}\)|https?://\S+",
    re.S,
)


def link_code_places(text: str, page_url: str, count_lines: Callable[[str], int | None]) -> str:
    """Return `text` with a markdown link for each code location that exists.

    Locations are `path:12`, `path:12-18` and `path#L12-L18`. Those in unknown files and beyond the
    end of a file are left as text.

    page_url: the URL under which the files of the commit are shown, without a trailing slash.
    count_lines: returns how many lines a file of the commit has, None if there is no such file.
    """
    line_count = cache(count_lines)

    def link(match: re.Match[str]) -> str:
        path = match["path"]
        if path is None:
            return match[0]
        start = int(match["line"] or match["line1"])
        end = int(match["last"] or match["last1"] or start)
        length = line_count(path)
        if length is None or not start <= end <= length:
            return match[0]
        plain = "?plain=1" if path.lower().endswith((".md", ".rst")) else ""
        lines = f"#L{start}" if start == end else f"#L{start}-L{end}"
        return f"[`{match[0].strip('`')}`]({page_url}/{quote(path)}{plain}{lines})"

    return _LOCATION.sub(link, text)


def code_linker(trigger: Trigger, settings: Settings, workspace: Workspace) -> Callable[[str], str]:
    """Return a function that links the code places in a text. A local run gets no links."""
    if trigger.kind is TriggerKind.LOCAL:
        return lambda text: text
    server = settings.github_server_url.rstrip("/")
    page_url = f"{server}/{trigger.repository}/blob/{workspace.base}"
    return lambda text: link_code_places(text, page_url, workspace.lines_of)
