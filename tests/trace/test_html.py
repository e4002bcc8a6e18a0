"""Tests of the HTML trace: complete, self-contained and inert."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from playwright.sync_api import Browser, Page, expect

from resolver.events import actions as a
from resolver.trace.html import render_html
from resolver.trace.steps import build_view
from resolver.trace.view import TraceStep
from tests.trace.events import any_events
from tests.trace.sample import HOSTILE, hostile, numbered, realistic
from tests.trace.test_markdown import ParsedPage

OURS = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "section", "h1", "h2", "p",
    "dl", "dt", "dd", "div", "small", "span", "ol", "ul", "li", "code", "pre", "details", "summary",
    "a", "img", "br", "hr", "em", "strong", "blockquote", "h3", "h4", "h5", "h6", "b", "s", "nav",
    "table", "thead", "tbody", "tr", "th", "td", "kbd",
    "input", "select", "option", "button", "script",
}  # fmt: skip


def check(html: str) -> None:
    page = ParsedPage(html)
    names = page.tags
    assert set(names) <= OURS and names.count("script") == 1
    anchors = [attributes["id"] for _, attributes in page.seen if "id" in attributes]
    assert len(anchors) == len(set(anchors))
    for tag, attributes in page.seen:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        assert tag != "script" or not attributes
        if tag == "img":
            assert (attributes["src"] or "").startswith("data:image/")
        if tag == "a":
            target = attributes["href"] or ""
            assert re.match("https?://", target) or target.removeprefix("#") in anchors


@given(any_events())
def test_any_log_renders_closed_and_escaped(events: list) -> None:
    check(render_html(events))


def test_a_link_needs_to_be_a_web_address() -> None:
    events = realistic()
    task = events[0].task.model_copy(update={"url": "javascript:alert(1)"})
    events[0] = events[0].model_copy(update={"task": task})
    assert "javascript:" not in render_html(events)


def opened(chromium: Browser, page_file: Path, html: str) -> tuple[Page, list[str], list[str]]:
    page_file.write_text(html, encoding="utf-8")
    context = chromium.new_context()
    page = context.new_page()
    requests: list[str] = []
    events: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: (events.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: events.append(str(error)))
    page.on("console", lambda message: events.append(message.text))
    page.goto(page_file.as_uri())
    page.wait_for_timeout(200)
    return page, requests, events


@pytest.mark.attack
@pytest.mark.chromium
def test_in_a_browser_a_hostile_log_runs_nothing_and_asks_for_nothing(
    chromium: Browser, tmp_path: Path
) -> None:
    """A log contains scripts, handlers and remote resources: a browser runs and requests
    nothing."""
    log = [event for text in (*HOSTILE, "\n".join(HOSTILE)) for event in hostile(text)]
    page, requests, events = opened(chromium, tmp_path / "trace.html", render_html(log))
    remote = [url for url in requests if not url.startswith("data:image/")]
    assert remote == [(tmp_path / "trace.html").as_uri()]
    assert events == []
    assert page.locator("iframe, object, embed, form, base, link").count() == 0
    assert page.locator("script").count() == 1 and page.locator("svg").count() == 0
    steps = sum(isinstance(entry, TraceStep) for entry in build_view(log).entries)
    assert page.locator("li.step").count() == steps > 100
    page.context.close()


DIFF = """diff --git a/calc.py b/calc.py
index 1..2 100644
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return "</pre><script>alert(1)</script>\u202e" + b
diff --git a/x.png b/x.png
Binary files differ
"""


def test_the_result_comes_before_the_steps() -> None:
    html = render_html(realistic(), diff=DIFF)
    check(html)
    places = [html.index(part) for part in ('id="changes"', '<nav class="outline"', 'id="step-1"')]
    assert places == sorted(places)
    assert "<b>calc.py</b> +1 \u22121" in html and "<b>x.png</b>" in html
    assert "alert(1)</script>" not in html and "[U+202E]" in html


def test_the_agents_words_are_markdown_without_links_and_foreign_classes() -> None:
    words = '**Bold** [x](https://evil.example)\n\n| a |\n| - |\n| b |\n\n```py "><x\nreturn 1\n```'
    html = render_html(numbered([a.Think(content=words)]))
    check(html)
    assert "<strong>Bold</strong>" in html and "<td>b</td>" in html and "evil.example<" not in html
    assert "<pre><code>return 1\n</code></pre>" in html


@pytest.mark.chromium
def test_keys_search_and_filter_find_steps_and_everything_is_there_without_scripts(
    chromium: Browser, tmp_path: Path
) -> None:
    page, _, problems = opened(chromium, tmp_path / "trace.html", render_html(realistic()))
    steps, count = page.locator("main .timeline > li:visible"), page.locator("#count")
    everything = page.locator("main .timeline > li").count()
    # A browser recounts the list items for each one that is hidden: 10,000 events took 20 seconds.
    assert steps.first.evaluate("step => getComputedStyle(step).display") == "block"
    page.keyboard.press("f")
    failed = page.locator("li.current")
    assert "bad" in (failed.get_attribute("class") or "")
    assert page.url.endswith(f"#{failed.get_attribute('id')}")
    page.keyboard.press("k")
    assert page.url.endswith(f"#{page.locator('li.current').get_attribute('id')}")
    page.keyboard.press("/")
    page.keyboard.type("pytest")
    expect(count).not_to_be_empty()
    assert 0 < steps.count() < everything and count.inner_text().endswith(f"of {everything}")
    page.locator("#search").fill("")
    expect(count).to_be_empty()
    page.locator("#filter").select_option(label="Failures")
    assert set(steps.evaluate_all("all => all.map(li => li.matches('.bad, .error'))")) == {True}
    assert problems == []
    page.context.close()
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "trace.html").as_uri())
    assert page.locator("main .timeline > li").count() == everything
    assert not page.locator("#tools").is_visible()
    context.close()
