"""Tests of the links between the pages of the documentation."""

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.parts.cases import check_each

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "bench" / "README.md"])

GITHUB_PAGES = ("../../actions/", "../../issues", "../../security/")
"""How links in the root's pages begin that lead to other pages of the repository on GitHub."""


def tokens_of(page: Path) -> list[Token]:
    blocks = MarkdownIt("commonmark").enable("table").parse(page.read_text())
    return [token for block in blocks for token in (block, *(block.children or ()))]


@cache
def anchors_of(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    tokens = tokens_of(page)
    texts = (after.content for token, after in pairwise(tokens) if token.type == "heading_open")
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "") for text in texts)
    slugs = [re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in plain]
    repeated = [
        f"{slug}-{slugs[:number].count(slug)}"
        for number, slug in enumerate(slugs)
        if slug in slugs[:number]
    ]
    ids = re.findall(r'<a (?:id|name)="([^"]+)"', page.read_text())
    return {*slugs, *repeated, *ids}


def test_links_lead_to_pages_and_headings_that_exist() -> None:
    check_each(PAGES, check_links)


def check_links(page: Path) -> None:
    links = [
        str(token.attrs.get("href") or token.attrs.get("src"))
        for token in tokens_of(page)
        if token.type in {"link_open", "image"}
    ]
    missing = []
    for link in links:
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link) or link.startswith(GITHUB_PAGES):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (
            anchor and target.suffix == ".md" and anchor not in anchors_of(target)
        ):
            missing.append(link)
    assert missing == []
