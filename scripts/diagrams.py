"""Draws the diagrams of the pages as pictures in docs/images/diagrams: part of `make screenshots`.

GitHub draws a block in Mermaid's language itself. The site can't: it loads no program from another
host. Each picture has the digest of its source in a comment, which a test compares.
"""

import re
import shutil
from hashlib import sha256
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.parts.published import PublishedFile, published

MERMAID = PublishedFile(
    "mermaid",
    "11.17.2",
    "sha512-V6K3C8EBdEsPFZXSKMJe6ppQOENxuHARr9GvHX4hh47lAbhMRD9qf4oEK7LoaRQxULMa80/qt5gHO73aCleBBg==",
    "package/dist/mermaid.min.js",
)
ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/images/diagrams"
THEMES = {"light": "default", "dark": "dark"}
DRAW = """async ([source, theme]) => {
  mermaid.initialize({startOnLoad: false, theme, htmlLabels: false, fontFamily: "sans-serif",
                      flowchart: {htmlLabels: false}, deterministicIds: true});
  return (await mermaid.render("diagram", source)).svg;
}"""


def diagrams() -> dict[str, str]:
    """Return the source of each diagram of the repository's pages, by the name of its picture."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return {
        f"{page.stem.lower()}-{number}": source
        for page in sorted(pages)
        for number, source in enumerate(
            re.findall(r"^```mermaid\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL), 1
        )
    }


def digest_comment(source: str) -> str:
    """Return the comment in a picture that names its source."""
    return f"<!-- sha256 of the source: {sha256(source.encode()).hexdigest()} -->\n"


def round_numbers(svg: str) -> str:
    """Return a picture with its coordinates rounded to a hundredth of a pixel.

    Mermaid draws some shapes with thousands of points of fifteen digits each.
    """
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", svg)


def draw_diagrams(browser: Browser, mermaid: Path) -> None:
    """Write the pictures. mermaid: the file `mermaid.min.js` of its npm package."""
    FOLDER.mkdir(exist_ok=True)
    page = browser.new_page()
    page.set_content("<body></body>")
    page.add_script_tag(path=mermaid)
    for name, source in diagrams().items():
        for scheme, theme in THEMES.items():
            svg = page.evaluate(DRAW, [source, theme])
            text = digest_comment(source) + round_numbers(svg) + "\n"
            (FOLDER / f"{name}-{scheme}.svg").write_text(text)
    page.close()


if __name__ == "__main__":
    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        draw_diagrams(chromium, published(MERMAID))
        chromium.close()
