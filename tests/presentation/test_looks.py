"""Tests of the trace and of the server's pages in a browser.

Each page is opened once, at the width of a laptop and of a phone, in light and dark colors. Pixels
are not compared: a page fits into its window, its text can be read, and its blocks are in order.
"""

from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

from resolver.entrypoints.webhook.run_lists import RunLists
from resolver.storage.database import parse_database_url
from resolver.storage.run_index import RunFilter, RunIndex
from resolver.trace.html import LiveStream, RunControls, render_html
from tests.storage.test_run_index import trigger_at
from tests.trace.sample import realistic

DIFF = """\
diff --git a/calendar/parse.py b/calendar/parse.py
--- a/calendar/parse.py
+++ b/calendar/parse.py
@@ -8,2 +8,2 @@
 def parse_date(text: str) -> date:
-    return datetime.strptime(text, "%d/%m/%Y").date()
+    return datetime.strptime(text, "%d/%m/%y").date()  # two digits mean the years 1969 to 2068
"""

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

# The contrast of each text with the nearest background behind it, by the definition of WCAG 2.2:
# https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio
LOW_CONTRAST = """() => {
  const light = (color) => {
    const parts = color.match(/[0-9.]+/g).map(Number);
    const [r, g, b] = parts.slice(0, 3).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return { value: 0.2126 * r + 0.7152 * g + 0.0722 * b, opaque: (parts[3] ?? 1) > 0.99 };
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = light(getComputedStyle(at).backgroundColor);
      if (found.opaque) return found.value;
    }
    return 1;
  };
  const low = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || element.closest("script, style, option")) continue;
    const [a, b] = [light(getComputedStyle(element).color).value, behind(element)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.add(`${ratio.toFixed(1)} ${element.outerHTML.slice(0, 120)}`);
  }
  return [...low];
}"""

WIDER_THAN_THE_WINDOW = """() => {
  return [...document.querySelectorAll("html, article")]
    .filter((block) => block.scrollWidth > block.clientWidth)
    .map((block) => `${block.scrollWidth} > ${block.clientWidth} ${block.innerText.slice(0, 80)}`);
}"""

BLOCKS = """() => [...document.querySelectorAll("h1, h2, h3, p strong:first-child, summary, table")]
  .map((block) => block.tagName === "TABLE" ? "table" : block.textContent.trim())"""


def problems(page: Page, html: str) -> dict[str, Any]:
    """Return what is wrong with a page in each width and color scheme, without what is right."""
    page.goto("about:blank")  # else the policy of the page before applies to this one, too
    page.set_content(html)
    found: dict[str, Any] = {}
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            found[f"wider than {width}"] = page.evaluate(WIDER_THAN_THE_WINDOW)
        found[f"low contrast, {scheme}"] = page.evaluate(LOW_CONTRAST)
    return {name: problem for name, problem in found.items() if problem}


def run_lists(folder: Path) -> tuple[str, str]:
    """Return the list of runs and the costs, with long names and runs of all kinds."""
    index = RunIndex(parse_database_url(f"sqlite:///{folder}/resolver.db"))
    name = "an-organization-with-a-long-name/a-repository-with-a-name-that-is-long-for-a-phone"
    for number, state in enumerate(("finished", "running", "error", "deferred")):
        changes = {
            "repository": name, "number": number, "title": "parse_date crashes " * 8,
            "person": "somebody-with-a-long-login", "state": state, "reason": "no answer " * 9,
            "cost": 12.345,
        }  # fmt: skip
        index.put(f"20260304-09300{number}-0a1b2c", trigger_at(0, 1), changes)
    lists, wanted = RunLists(index, ""), RunFilter(frozenset({name}))
    try:
        return lists.render_runs("octocat", wanted), lists.render_costs("octocat", wanted)
    finally:
        index.close()


@pytest.fixture
def page(chromium: Browser) -> Any:
    context = chromium.new_context(java_script_enabled=True)
    yield context.new_page()
    context.close()


@pytest.mark.chromium
def test_every_page_fits_and_can_be_read(page: Page, tmp_path: Path) -> None:
    """One test, because each opens a window of its own."""
    trace = render_html(realistic(), diff=DIFF)
    controls = RunControls("/runs/1/commands", "0" * 64, "1", "octocat")
    live = render_html(realistic()[:8], 10, ["A notice."], live=LiveStream(7), controls=controls)
    assert problems(page, trace) == {}
    assert problems(page, live) == {}
    runs, costs = run_lists(tmp_path)
    assert problems(page, runs) == {}
    assert problems(page, costs) == {}

    page.set_content(trace)
    blocks = page.evaluate(BLOCKS)
    places = [blocks.index(name) for name in ("The agent's summary", "Changes", "Work")]
    assert places == sorted(places)
