"""Hooks with which mkdocs makes the site of docs/ from pages that are written for GitHub.

A link to a page in the root of the repository leads to a copy of it in the site, and a link to any
other file becomes its text.
A page that would load something from another host fails the build. Only mkdocs imports this module.

Source: https://www.mkdocs.org/user-guide/plugins/#events
"""

import os
import re
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ROOT_PAGES = {
    **{
        f"{name}.md": f"project/{name}.md"
        for name in (
            "ARCHITECTURE", "AGENTS", "CHANGELOG", "CODE_OF_CONDUCT", "CONTRIBUTING", "SECURITY",
            "README", "THREATS",
        )
    },
    "bench/README.md": "project/measurements.md",
    "bench/RESULTS.md": "project/results.md",
}  # fmt: skip
"""Pages outside docs/ that the site has too, and where."""

PLACES = {place: path for path, place in ROOT_PAGES.items()}
FENCE = re.compile(r"^(```+|~~~+).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
FILE_NAME = re.compile(r"[\w./-]+\.md")
BADGE = re.compile(r"^\[!\[[^\]]*\]\([^)]*\)\]\([^)]*\)$", re.MULTILINE)
EXTERNAL = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*\b(?:src|srcset)=[\"']?(?:https?:)?//[^>]*>"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preconnect|preload|icon))[^>]*href=[\"']?(?:https?:)?//[^>]*>"
)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of the root of the repository."""
    for path, place in ROOT_PAGES.items():
        files.append(File.generated(config, place, content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Return the text of a page with links that lead to pages of the site."""
    source = source_of(page.file.src_uri)
    markdown = BADGE.sub("", markdown)
    parts = []
    end = 0
    for fence in FENCE.finditer(markdown):
        parts += [site_links(markdown[end : fence.start()], source), fence[0]]
        end = fence.end()
    text = "".join([*parts, site_links(markdown[end:], source)])
    # README has its pictures as HTML, for light and dark.
    return re.sub(r'\b(src|srcset)="docs/', r'\1="../', text)


def on_post_page(output: str, *, page: Page, **_: Any) -> str:
    """Return the page. Raises PluginError if a browser would load something from another host."""
    if found := EXTERNAL.search(output):
        raise PluginError(f"{page.file.src_uri} loads something from another host: {found[0]}")
    return output


def source_of(place: str) -> str:
    """Return the path in the repository of a page of the site."""
    return PLACES.get(place, f"docs/{place}")


def site_links(markdown: str, source: str) -> str:
    """Return a text without fences with its links changed to lead to pages of the site.

    source: path of the page in the repository.
    """
    return LINK.sub(lambda match: _site_link(match, source), markdown)


def _site_link(match: re.Match[str], source: str) -> str:
    path, _, anchor = match["target"].partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return match[0]
    target = os.path.normpath(PurePosixPath(source).parent / path)
    place = ROOT_PAGES.get(target)
    if place is None and target.startswith("docs/"):
        place = target.removeprefix("docs/")
    if place is None:
        return match["text"]
    here = ROOT_PAGES.get(source, source.removeprefix("docs/"))
    link = os.path.relpath(place, PurePosixPath(here).parent)
    text = title_of(target) if FILE_NAME.fullmatch(match["text"]) else match["text"]
    return f"{match['image']}[{text}]({link}{'#' + anchor if anchor else ''})"


@cache
def title_of(target: str) -> str:
    """Return the title of a page of the repository. On GitHub its file name is a fit text for a
    link to it; a reader of the site does not see files."""
    first, _, _ = (ROOT / target).read_text().partition("\n")
    return first.removeprefix("# ")
