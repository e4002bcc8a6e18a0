"""Measures the rendering of a long event log: processor time, size and memory.

    .venv/bin/python bench/rendering.py [EVENTS]
    .venv/bin/python bench/rendering.py EVENTS browser   # how fast the page is in Chromium

The log has as many events as given (10,000): commands with coloured output, edits and thoughts in
Markdown. Each format is rendered in a process of its own, so that its peak of memory is its own.
"""

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import EventBase
from resolver.events.log import Event
from resolver.models.run import Completion, Tokens
from resolver.trace.html import render_html
from resolver.trace.markdown import render_comment_trace, render_markdown

FORMATS: dict[str, Callable[[list[Event]], str]] = {
    "none": lambda _: "",
    "comment": lambda events: render_comment_trace(events, 60_000),
    "html": render_html,
    "markdown": render_markdown,
}


def make_log(count: int) -> list[Event]:
    """Return a log of about `count` events: three for each step."""
    start = datetime(2026, 1, 2, tzinfo=UTC)
    events: list[EventBase] = []
    for step in range(count // 3):
        at, first = start + timedelta(seconds=step), 3 * step
        thought = f"Step {step}: `calc.py` returns **{step}**, so I look at the *next* one."
        reply = Completion(
            model="bench", text=thought, cost=0.001, tokens=Tokens(input=900, output=40)
        )
        common = {"timestamp": at, "thought": thought, "reply": first}
        events.append(life.ModelReplied(id=first, timestamp=at, completion=reply))
        if step % 3:
            command = f"cd src && pytest -q tests/test_{step}.py && echo {step}"
            events.append(a.CmdRun(id=first + 1, command=command, **common))
            output = f"{'.' * 60} [{step}%]\n" * 10 + f"\x1b[31m{step} failed\x1b[0m, 2 passed\n"
            result: EventBase = o.CmdOutput(content=output, exit_code=step % 2)
        else:
            old, new = f"    return {step}\n", f"    return {step + 1}\n"
            edit = {"path": "src/calc.py", "old_str": old, "new_str": new}
            events.append(a.FileEdit(id=first + 1, command="str_replace", **edit, **common))
            diff = f"--- a/src/calc.py\n+++ b/src/calc.py\n@@ -1 +1 @@\n-{old}+{new}"
            result = o.FileEditResult(content="edited", path="src/calc.py", diff=diff)
        events.append(
            result.model_copy(update={"id": first + 2, "cause": first + 1, "timestamp": at})
        )
    return events  # type: ignore[return-value]


def measure(name: str, count: int) -> None:
    """Print one row of the table."""
    events = make_log(count)
    FORMATS[name](events[:30])  # templates are compiled once
    before = time.process_time()
    text = FORMATS[name](events)
    seconds = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {name} | {len(events):,} | {seconds:.2f} s | {len(text):,} | {peak:,.0f} MB |")


_SCROLLING = """async () => {
  const times = [];
  for (let y = 0, last = performance.now(); times.length < 60; y += 900) {
    window.scrollTo(0, y);
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - last);
    last = performance.now();
  }
  return times.sort((a, b) => a - b)[30];
}"""
_SEARCH = """async (words) => {
  const start = performance.now(), search = document.getElementById("search");
  search.value = words;
  search.dispatchEvent(new Event("input"));
  await new Promise((done) => setTimeout(done, 121));
  await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - start;
}"""


def measure_in_browser(count: int) -> None:
    """Print how long the page takes to load, to scroll by a screen, and to search, in seconds."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "trace.html"
        path.write_text(render_html(make_log(count)))
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        before = time.perf_counter()
        page.goto(path.as_uri())
        print(f"load: {time.perf_counter() - before:.2f} s")
        print(f"a screen further, median: {page.evaluate(_SCROLLING) / 1000:.3f} s")
        for words in ("test_3001", "calc", ""):
            print(f"search for {words!r}: {page.evaluate(_SEARCH, words) / 1000:.2f} s")
        browser.close()


def main() -> None:
    """Print the table, or one row of it in a child process."""
    if sys.argv[2:] == ["browser"]:
        measure_in_browser(int(sys.argv[1]))
        return
    if len(sys.argv) > 2:
        measure(sys.argv[2], int(sys.argv[1]))
        return
    count = sys.argv[1] if len(sys.argv) > 1 else "10000"
    print("| format | events | processor time | characters | peak memory |")
    print("| :-- | --: | --: | --: | --: |", flush=True)
    for name in FORMATS:
        subprocess.run([sys.executable, __file__, count, name], check=True)


if __name__ == "__main__":
    main()
