"""The agent's browser: the first page, a click's round trip, the tree of 5,000 nodes, memory.

    python bench/browser.py [--runs 10]

Needs a Chromium on PATH. Medians in milliseconds; memory in MB, shared pages counted once.
"""

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from resolver.sandbox.browser import Browser
from resolver.sandbox.processes import Family, descendant_pids

CLICK = "<title>Click</title><button onclick=\"this.textContent='n' + Date.now()\">Go</button>"
TREE = "".join(f"<li><a href=/{n}>link {n}</a> <b>{n}</b></li>" for n in range(1000))


class Pages(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        page = f"<title>Tree</title><ul>{TREE}</ul>" if self.path == "/tree" else CLICK
        self.wfile.write(page.encode())


def measure_ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def memory() -> float:
    """MB of all processes below this one, each shared page divided among its users."""
    total = 0
    for pid in descendant_pids(os.getpid()):
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next(int(x.split()[1]) for x in rollup.splitlines() if x.startswith("Pss:"))
    return total / 1024


def checked(browser: Browser, code: str) -> str:
    result = browser.run(code, 60)
    assert not result["error"], result["output"]
    return str(result["output"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = f"http://127.0.0.1:{server.server_address[1]}"
    first, click, tree, picture, used = [], [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(runs):
            browser = Browser(Family(), "/bin/bash", os.environ, folder, f"{folder}/scratch")
            try:
                first.append(measure_ms(lambda b=browser: checked(b, f"goto('{site}/')")))
                for _ in range(5):
                    shown = checked(browser, "noop(0)")
                    bid = shown.partition("] button")[0].rpartition("[")[2]
                    code = f"click('{bid}')"
                    click.append(measure_ms(lambda b=browser, c=code: checked(b, c)))
                picture.append(measure_ms(lambda b=browser: checked(b, "screenshot()")))
                checked(browser, f"goto('{site}/tree')")
                tree.append(measure_ms(lambda b=browser: checked(b, "noop(0)")))
                used.append(memory())
            finally:
                browser.close()
    server.shutdown()
    for name, values in (
        ("first page, browser started", first),
        ("click and new tree", click),
        ("screenshot and tree", picture),
        ("tree of 5,000 nodes", tree),
        ("memory, MB", used),
    ):
        low, high = min(values), max(values)
        print(f"{name:30} {statistics.median(values):8.1f}  ({low:.1f} to {high:.1f})")


if __name__ == "__main__":
    main()
