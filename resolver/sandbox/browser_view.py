"""Renders a page for the agent: address, events, accessibility tree, and screenshot."""

import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from .browser_page import ElementIds, Page
from .browser_scripts import (
    DRAW_MARKS,
    ELEMENTS_IN_VIEW,
    FACTS,
    IN_VIEW,
    REMOVE_MARKS,
    VISIBLE_TEXT,
)
from .browser_tabs import Tab, Tabs
from .browser_text import plain_text, short_url
from .chromium import HEIGHT, WIDTH
from .devtools import DevToolsRefused
from .page_tree import Frame, Item, shown_lines, tree_items
from .wire import MAX_TEXT

MAX_TREE: Final = MAX_TEXT - 5_000
"""Maximum number of characters of the tree; the rest of MAX_TEXT is for what surrounds it."""

MAX_ELEMENTS: Final = 25_000
"""Number of elements above which the tree is not built, because it would take seconds."""

MAX_FRAMES: Final = 20
"""Maximum number of frames that are read."""

MAX_IN_VIEW: Final = 100
"""Maximum number of elements listed for a page without a tree."""

MAX_MARKS: Final = 150
"""Maximum number of marked elements in a screenshot."""

MAX_SCREENSHOT: Final = 400_000
"""Maximum length in characters of a screenshot's data: URL."""

_QUALITIES: Final = ((80, 1.0), (50, 1.0), (30, 0.75), (20, 0.5))
"""JPEG quality and scale, tried in turn until the screenshot is small enough."""

TREE_SECONDS: Final = 30.0
"""Seconds that the browser may take for the tree of one frame."""


def page_text(page: Page, tabs: Tabs, bids: ElementIds) -> str:
    """Return the active page as text. Raises DevToolsError if it does not answer."""
    facts = page.evaluate(FACTS) or {}
    if int(facts.get("count", 0)) > MAX_ELEMENTS:
        body = _large_page(page, bids, int(facts["count"]))
    else:
        items = tree_items(_frames(page))
        first = _first_line(page, items, facts)
        body = shown_lines(items, first, MAX_TREE, partial(bids.bid_of, page.tab))
    return "\n".join([*_head(page.tab, tabs, facts), "", body])


def tabs_text(tabs: Tabs) -> list[str]:
    """Return one line for each tab if there are several, else an empty list."""
    if len(tabs.open) < 2:
        return []
    lines = ["Tabs:"]
    for number, tab in enumerate(tabs.open):
        active = ", active" if tab is tabs.active else ""
        lines.append(f"  [{number}] {plain_text(tab.title, 100)!r} {short_url(tab.url)}{active}")
    return lines


def take_screenshot(page: Page, bids: ElementIds, marks: bool) -> str | None:
    """Return the window as a JPEG data: URL; None if it can't be made small enough.

    marks: draw the ids of the elements.
    """
    view = page.call("Page.getLayoutMetrics").get("cssVisualViewport", {})
    clip = {
        "x": view.get("pageX", 0),
        "y": view.get("pageY", 0),
        "width": view.get("clientWidth", WIDTH),
        "height": view.get("clientHeight", HEIGHT),
    }
    if marks:
        boxes = [[bid, *facts["box"]] for bid, facts in _in_view(page, bids, MAX_MARKS)]
        page.evaluate(DRAW_MARKS % json.dumps(boxes))
    try:
        for quality, scale in _QUALITIES:
            parameters: dict[str, Any] = {
                "format": "jpeg",
                "quality": quality,
                "clip": {**clip, "scale": scale},
            }
            data = str(page.call("Page.captureScreenshot", **parameters).get("data", ""))
            if data and len(data) <= MAX_SCREENSHOT:
                return f"data:image/jpeg;base64,{data}"
        return None
    finally:
        if marks:
            page.evaluate(REMOVE_MARKS)


def _head(tab: Tab, tabs: Tabs, facts: dict[str, Any]) -> list[str]:
    tab.title = str(facts.get("title") or "")  # the browser's own event is late
    lines = [f"URL: {short_url(tab.url)}", f"Title: {plain_text(tab.title, 200)}", *tabs_text(tabs)]
    height, view, top = (int(facts.get(name) or 0) for name in ("height", "view", "top"))
    if height > view:
        lines.append(f"Scrolled: {top} of {height - view} pixels")
    return lines


def _frames(page: Page) -> list[Frame]:
    """Return the page's frames with their nodes, without frames that are being replaced."""
    tree = page.call("Page.getFrameTree").get("frameTree", {})
    frames: list[Frame] = []
    pending = [(tree, True)]
    while pending and len(frames) < MAX_FRAMES:
        branch, is_top = pending.pop(0)
        id = str(branch.get("frame", {}).get("id", ""))
        pending += [(child, False) for child in branch.get("childFrames", ())]
        try:
            owner = None
            if not is_top:
                owner = page.call("DOM.getFrameOwner", frameId=id).get("backendNodeId")
            nodes = page.call("Accessibility.getFullAXTree", TREE_SECONDS, frameId=id)
        except DevToolsRefused:
            if page.tab.crashed or is_top:
                raise
            continue
        frames.append(Frame(id, owner, nodes.get("nodes", [])))
    return frames


def _first_line(page: Page, items: Sequence[Item], facts: dict[str, Any]) -> int:
    """Return the number of the first line to show.

    That is 0 if the whole tree fits or the page is not scrolled, else the element at the top of the
    window.
    """
    top = int(facts.get("top") or 0)
    if top <= 0 or sum(len(item.text) + 8 for item in items) <= MAX_TREE:
        return 0
    numbers = {item.backend: number for number, item in enumerate(items) if item.backend}
    for part in (0.5, 0.3, 0.7, 0.1):
        point = {"x": int(facts.get("left") or 0) + int(int(facts["width"]) * part), "y": top + 5}
        try:
            hit = page.call("DOM.getNodeForLocation", **point)
        except DevToolsRefused:
            continue
        if hit.get("backendNodeId") in numbers:
            return max(0, numbers[hit["backendNodeId"]] - 3)
    return 0


def _large_page(page: Page, bids: ElementIds, count: int) -> str:
    """Return a page that is too large for a tree: the usable elements in view, and the text."""
    lines = [
        f"The page has {count:,} elements, too many for a tree. In view (scroll to see others):"
    ]
    for bid, found in _in_view(page, bids, MAX_IN_VIEW):
        lines.append(
            f"  [{bid}] {plain_text(found['kind'], 40)} {plain_text(found['text'], 100)!r}"
        )
    visible_text = str(page.evaluate(VISIBLE_TEXT % MAX_TREE, TREE_SECONDS) or "")
    remaining = MAX_TREE - sum(map(len, lines))
    text = "\n".join(plain_text(line, 500) for line in visible_text.splitlines() if line.strip())
    cut = (
        "\n[... the rest is not shown ...]"
        if len(text) > remaining or len(visible_text) >= MAX_TREE
        else ""
    )
    return "\n".join([*lines, "Its words:", text[:remaining] + cut])


def _in_view(page: Page, bids: ElementIds, limit: int) -> Iterable[tuple[str, dict[str, Any]]]:
    """Return the ids of the usable elements in view, with what IN_VIEW tells about each."""
    facts = page.evaluate(IN_VIEW % limit)
    backends = page.elements(ELEMENTS_IN_VIEW)
    found = [bids.bid_of(page.tab, page.tab.target, backend) for backend in backends]
    return zip(found, facts, strict=True)
