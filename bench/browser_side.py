"""One side of bench/browser.py, in a process of its own: one start of a browser, and its actions.

browser_side.py ours|playwright SITE ACTIONS
browser_side.py ours|playwright SITE /hostile

Prints the figures as JSON. With a path, it opens that page and then `/form` in the same tab, both
with LIMIT_SECONDS. Playwright reads a page as the snapshot that it makes for models, in which
elements have ids.
"""

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Protocol

LIMIT_SECONDS = 6
TICKS = os.sysconf("SC_CLK_TCK")
CHROMIUM = re.compile(r"chrom|headless")


class Driver(Protocol):
    """A browser as an agent uses it: each action returns the page as text."""

    def goto(self, url: str) -> str:
        """Raises RuntimeError if the page can't be opened or read."""

    def click(self, id: str) -> str: ...

    def fill(self, id: str, text: str) -> str: ...

    def read(self) -> str: ...

    def id_of(self, text: str, role: str) -> str:
        """Return the id of the first element with this role in the text of a page."""

    def close(self) -> None: ...


class Ours:
    """The sandbox's browser, as the action execution server calls it."""

    def __init__(self, folder: str) -> None:
        from resolver.sandbox.browser import Browser
        from resolver.sandbox.browser_page import PageTimeouts
        from resolver.sandbox.processes import Family

        limits = PageTimeouts(answer=LIMIT_SECONDS, load=LIMIT_SECONDS)
        parts = (Family(), "/bin/bash", os.environ, folder, f"{folder}/scratch", limits)
        self._browser = Browser(*parts)

    def _run(self, code: str) -> str:
        result = self._browser.run(code, 60)
        if result["error"]:
            raise RuntimeError(result["output"])
        return str(result["output"])

    def goto(self, url: str) -> str:
        return self._run(f"goto({url!r})")

    def click(self, id: str) -> str:
        return self._run(f"click({id!r})")

    def fill(self, id: str, text: str) -> str:
        return self._run(f"fill({id!r}, {text!r})")

    def read(self) -> str:
        return self._run("noop(0)")

    def id_of(self, text: str, role: str) -> str:
        found = re.search(rf"\[(\d+)\] {role}", text)
        return found[1] if found else ""

    def close(self) -> None:
        self._browser.close()


class Playwright:
    """Playwright with the system's Chromium."""

    def __init__(self, folder: str) -> None:
        from playwright.sync_api import Error, sync_playwright

        from resolver.sandbox.environment import find_chromium

        self._error = Error
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(
            executable_path=find_chromium(os.environ),
            args=["--no-sandbox", "--disable-dev-shm-usage"],
            artifacts_dir=folder,
        )
        self._page = self._browser.new_page(
            viewport={"width": 1280, "height": 720}, accept_downloads=False
        )
        self._page.set_default_timeout(1000 * LIMIT_SECONDS)
        self._page.on("dialog", lambda dialog: dialog.accept())

    def goto(self, url: str) -> str:
        try:
            self._page.goto(url)
            return self.read()
        except self._error as error:
            raise RuntimeError(str(error)) from error

    def click(self, id: str) -> str:
        self._page.locator(f"aria-ref={id}").click()
        return self.read()

    def fill(self, id: str, text: str) -> str:
        self._page.locator(f"aria-ref={id}").fill(text)
        return self.read()

    def read(self) -> str:
        return self._page.aria_snapshot(mode="ai")

    def id_of(self, text: str, role: str) -> str:
        found = re.search(rf"- {role}\b.*\[ref=(\w+)\]", text)
        return found[1] if found else ""

    def close(self) -> None:
        self._browser.close()
        self._playwright.stop()


OURS = Path(__file__).parents[1] / "resolver" / "sandbox"
OUR_FILES = ("browser*.py", "chromium.py", "devtools.py", "page_tree.py")
PEER_PACKAGES = ("playwright", "greenlet")
SIDES: dict[str, Callable[[str], Driver]] = {"ours": Ours, "playwright": Playwright}


def size_mb(side: str) -> float:
    """Return the size of the files that the sandbox needs besides Chromium and Python."""
    if side == "ours":
        found = [file for pattern in OUR_FILES for file in OURS.glob(pattern)]
    else:
        folders = [Path(str(files(name))) for name in PEER_PACKAGES]
        found = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in found if "__pycache__" not in file.parts) / 1e6


def processes() -> dict[int, bool]:
    """Return this process and all below it, with True for those of Chromium."""
    rows = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            name, _, rest = (folder / "stat").read_text().partition(" (")[2].rpartition(") ")
            rows.append((int(folder.name), int(rest.split()[1]), bool(CHROMIUM.search(name))))
    found = {os.getpid(): False}
    for _ in rows:
        below = {pid: named or found[parent] for pid, parent, named in rows if parent in found}
        if below.keys() <= found.keys():
            break
        found |= below
    return found


def memory_mb(pids: list[int]) -> float:
    """Return the memory of processes, each shared page divided among its users."""
    total = 0
    for pid in pids:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next(int(x.split()[1]) for x in rollup.splitlines() if x.startswith("Pss:"))
    return total / 1024


def processor_seconds(pids: list[int]) -> float:
    """Return the processor time of processes so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


class Meter:
    """Times actions, and the processor time of the processes besides Chromium."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        self.figures: dict[str, float] = {}

    def measure(self, name: str, actions: int, act: Callable[[int], object]) -> None:
        """Do it `actions` times and keep the means for one."""
        used, begun = processor_seconds(self._pids), time.perf_counter()
        for number in range(actions):
            act(number)
        seconds = time.perf_counter() - begun
        self.figures[f"{name}, ms"] = 1000 * seconds / actions
        processor = processor_seconds(self._pids) - used
        self.figures[f"{name}, processor time, ms"] = 1000 * processor / actions


def measure_actions(driver: Driver, side: str, site: str, actions: int) -> dict[str, float]:
    """Return the figures of each action, and the memory after all of them."""
    meter = Meter([pid for pid, is_chromium in processes().items() if not is_chromium])
    shown = driver.read()

    def click(_number: int) -> None:
        nonlocal shown  # the peer gives an element a new id if its name changes
        shown = driver.click(driver.id_of(shown, "button"))

    def fill(number: int) -> None:
        nonlocal shown
        shown = driver.fill(driver.id_of(shown, "textbox"), f"text {number}")

    meter.measure("read", actions, lambda _: driver.read())
    meter.measure("click and read", actions, click)
    meter.measure("fill and read", actions, fill)
    driver.goto(f"{site}/tree")
    meter.measure("read 5,000 nodes", max(2, actions // 5), lambda _: driver.read())
    everything = processes()
    return {
        **meter.figures,
        "size in the sandbox, MB": size_mb(side),
        "memory besides Chromium, MB": memory_mb([p for p, c in everything.items() if not c]),
        "memory, MB": memory_mb(list(everything)),
    }


def open_hostile_page(driver: Driver, url: str, next_url: str) -> dict[str, float]:
    """Return the seconds until the page was read or given up, and 1 for each page that was read."""
    figures = {}
    for name, address in (("hostile page", url), ("next page", next_url)):
        begun = time.perf_counter()
        try:
            is_read = bool(driver.goto(address))
        except RuntimeError:
            is_read = False
        figures[f"{name}, s"] = time.perf_counter() - begun
        figures[f"{name}, read"] = float(is_read)
    return figures


def main() -> None:
    side, site, task = sys.argv[1:4]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        begun = time.perf_counter()
        driver = SIDES[side](folder)
        if task.startswith("/"):
            print(json.dumps(open_hostile_page(driver, f"{site}{task}", f"{site}/form")))
            sys.stdout.flush()
            os._exit(0)  # a page that hangs would keep the peer from closing
        driver.goto(f"{site}/")
        first = {"first page, ms": 1000 * (time.perf_counter() - begun)}
        figures = measure_actions(driver, side, site, int(task))
        driver.close()
    print(json.dumps(first | figures))


if __name__ == "__main__":
    main()
