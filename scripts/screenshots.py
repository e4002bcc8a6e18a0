"""Takes the screenshots in docs/images: the demo's pull request and its trace.html.

    .venv/bin/python -m scripts.screenshots OUTPUT github-markdown.css

OUTPUT is the output directory of `resolver demo`. The stylesheet is that of the npm package
github-markdown-css, with which Markdown looks as on GitHub. Needs a Chromium on PATH.
"""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from markdown_it import MarkdownIt
from playwright.sync_api import Browser, sync_playwright

FOLDER = Path(__file__).parents[1] / "docs" / "images"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTH, HEIGHT = 1280, 860
"""Size of the window, in CSS pixels."""


def main(output: Path, stylesheet: Path) -> None:
    """Write a screenshot for each page and color scheme."""
    FOLDER.mkdir(exist_ok=True)
    pages = {
        "pull-request": _as_on_github((output / "pull_request.md").read_text(), stylesheet),
        "trace": (output / "trace.html").read_text(),
    }
    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        _take_all(browser, pages)
        browser.close()


def _take_all(browser: Browser, pages: Mapping[str, str]) -> None:
    for scheme in SCHEMES:
        context = browser.new_context(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme
        )
        page = context.new_page()
        for name, html in pages.items():
            page.set_content(html)
            page.screenshot(path=FOLDER / f"{name}-{scheme}.png")
        context.close()


def _as_on_github(markdown: str, stylesheet: Path) -> str:
    parser = MarkdownIt("gfm-like", {"linkify": False, "html": True})
    own = "body { margin: 0; padding: 24px 180px; min-height: 100vh; }"
    return (
        '<!DOCTYPE html><meta name="viewport" content="width=device-width">'
        f"<style>{stylesheet.read_text()} {own}</style>"
        f'<body class="markdown-body">{parser.render(markdown)}</body>'
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
