"""Shows Markdown as GitHub does: its own stylesheet, its rules for line breaks and task lists."""

import re

from markdown_it import MarkdownIt

_ALERT = re.compile(
    r"<blockquote>\n<p>\[!(NOTE|WARNING|CAUTION)\](?:<br />)?\n(.*?)</blockquote>", re.S
)
"""An alert: https://docs.github.com/en/get-started/writing-on-github#alerts"""


def render_github_markdown(markdown: str, *, is_comment: bool = True) -> str:
    """Return what GitHub makes of the text, without its filter of tags and attributes.

    is_comment: a line break in a comment, issue or pull request is shown; in a file it is a space.
    """
    parser = MarkdownIt("gfm-like", {"linkify": False, "html": True, "breaks": is_comment})
    html = parser.render(markdown)
    box = '<li class="task-list-item"><input type="checkbox" disabled{}> '
    html = _ALERT.sub(_alert, html)
    html = re.sub(r"<li>(<p>)?\[x\] ", box.format(" checked") + r"\1", html)
    return re.sub(r"<li>(<p>)?\[ \] ", box.format("") + r"\1", html)


def _alert(found: re.Match[str]) -> str:
    kind, text = found[1].lower(), found[2]
    title = f'<p class="markdown-alert-title">{kind.capitalize()}</p>'
    return f'<div class="markdown-alert markdown-alert-{kind}">{title}\n<p>{text}</div>'
