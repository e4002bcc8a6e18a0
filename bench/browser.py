"""The sandbox's browser beside Playwright: time, processor time, memory and size.

    python bench/browser.py [--peer-python PATH] [--rounds 5] [--actions 30] [--hostile]

Needs a Chromium on PATH, which both sides drive. PATH is the Python of an environment that has
`playwright`. The sides take turns, each time in a new process (browser_side.py), and an action's
figures are means over `--actions`. Prints a Markdown table with the medians of the rounds. With
`--hostile`, it opens hostile pages instead, each in a new browser.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.sandbox.site import serve_site

HOSTILE = ("/loop", "/alerts", "/silent", "/huge", "/shadows", "/abyss", "/name", "/endless")
SIDE = Path(__file__).with_name("browser_side.py")
BUTTON = "<title>Click</title><button onclick=\"this.textContent='n' + Date.now()\">Go</button>"
CLICK = f"{BUTTON}<input aria-label=Name>"
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


def measure(python: str, side: str, site: str, task: str) -> dict[str, float]:
    """Return the figures of one start of a browser in a new process; see browser_side.py."""
    command = [python, str(SIDE), side, site, task]
    environment = {**os.environ, "PYTHONPATH": str(SIDE.parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def compare_actions(pythons: dict[str, str], rounds: int, actions: str) -> None:
    """Print the medians of each side's figures."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = f"http://127.0.0.1:{server.server_address[1]}"
    measured = [
        {side: measure(python, side, site, actions) for side, python in pythons.items()}
        for _ in range(rounds)
    ]
    server.shutdown()
    print("| what | ours | playwright | ours / playwright |")
    print("|---|--:|--:|--:|")
    for name in measured[0]["ours"]:
        medians = [statistics.median(times[side][name] for times in measured) for side in pythons]
        cells = [f"{value:,.1f}" for value in medians] + [""] * (2 - len(pythons))
        cells.append(f"{medians[0] / medians[-1]:.2f}" if len(pythons) > 1 else "")
        print(f"| {name} | {' | '.join(cells)} |")


def compare_hostile_pages(pythons: dict[str, str]) -> None:
    """Print what became of each hostile page, and of the next page in its tab."""
    print("| page | side | hostile page, s | next page, s |")
    print("|---|---|--:|--:|")
    with serve_site() as site:
        for path in HOSTILE:
            for side, python in pythons.items():
                figures = measure(python, side, site, path)
                cells = [
                    f"{figures[f'{name}, s']:.1f} {'read' if figures[f'{name}, read'] else 'lost'}"
                    for name in ("hostile page", "next page")
                ]
                print(f"| {path} | {side} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--actions", type=int, default=30)
    parser.add_argument("--hostile", action="store_true")
    options = parser.parse_args()
    pythons = {"ours": sys.executable}
    if options.peer_python:
        pythons["playwright"] = options.peer_python
    if options.hostile:
        compare_hostile_pages(pythons)
    else:
        compare_actions(pythons, options.rounds, str(options.actions))


if __name__ == "__main__":
    main()
