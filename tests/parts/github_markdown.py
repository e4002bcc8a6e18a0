"""Shows Markdown as GitHub does: its own stylesheet, its rules for line breaks and task lists."""

import re
from functools import cache

from markdown_it import MarkdownIt

from tests.parts.published import PublishedFile, published

STYLESHEET = PublishedFile(
    "github-markdown-css",
    "5.9.0",
    "sha512-tmT5sY+zvg2302XLYEfH2mtkViIM1SWf2nvYoF5N1ZsO0V6B2qZTiw3GOzw4vpjLygK/KG35qRlPFweHqfzz5w==",
    "package/github-markdown.css",
)

_OWN_STYLE = """
body { margin: 0; padding: 24px; box-sizing: border-box; min-height: 100vh; }
article { max-width: 830px; margin: 0 auto; padding-bottom: 16px; }
"""


_ALERT = re.compile(
    r"<blockquote>\n<p>\[!(NOTE|WARNING|CAUTION)\](?:<br />)?\n(.*?)</blockquote>", re.S
)
"""An alert: https://docs.github.com/en/get-started/writing-on-github#alerts"""


@cache
def _stylesheet() -> str:
    return published(STYLESHEET).read_text()


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


def github_page(*texts: str, is_comment: bool = True, own_style: str = "") -> str:
    """Return a page that shows each text as GitHub does, in the color scheme of the browser."""
    articles = "".join(
        f"<article>{render_github_markdown(text, is_comment=is_comment)}</article>"
        for text in texts
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>GitHub</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_stylesheet()}{_OWN_STYLE}{own_style}</style></head>"
        f'<body class="markdown-body">{articles}</body></html>'
    )
