"""The agent's browser, which starts with the first page and lives as long as the sandbox.

It takes code and returns a text of bounded size, with a screenshot on request. Every call ends
within the time of the request, whatever the page does. A browser that has ended is started again.
"""

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from .browser_code import BrowserStep, CodeError, read_code
from .browser_page import ElementIds, Page, PageTimeouts, StepFailed
from .browser_steps import Steps
from .browser_tabs import Tab, Tabs
from .browser_text import short_url
from .browser_view import page_text, tabs_text, take_screenshot
from .chromium import Chromium
from .devtools import DevToolsClosed, DevToolsError, DevToolsRefused, DevToolsTimeout, Interrupted
from .environment import find_chromium
from .processes import Family
from .wire import ActionFailed, BrowseResult

START_SECONDS: Final = 30.0
"""Seconds that the browser may take to start."""

READ_SECONDS: Final = 15.0
"""Seconds to read the page if the time of the request is over."""

READ_ATTEMPTS: Final = 3
"""Number of attempts to read the page."""

DEFAULT_TIMEOUTS: Final = PageTimeouts()
REVIVAL_ATTEMPTS: Final = 2
"""Number of attempts to end the script of a page that does not answer."""

REVIVAL_SECONDS: Final = 2.0
"""Seconds that the page then has to answer."""

NO_CHROMIUM: Final = (
    "There is no Chromium in this sandbox, so pages can't be browsed: read them with curl, or "
    "have the run use an image in which `chromium` is on PATH (or which CHROMIUM names)."
)


class Browser:
    """The browser session. Only `interrupt` may be called from another thread.

    root: the workspace, whose files may be opened and uploaded.
    scratch: folder for the browser's profile.
    """

    def __init__(
        self,
        family: Family,
        bash: str,
        environment: Mapping[str, str],
        root: str,
        scratch: str,
        timeouts: PageTimeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        self._family = family
        self._bash = bash
        self._environment = environment
        self._root = root
        self._folder = os.path.join(scratch, "browser")
        self._timeouts = timeouts
        self._running: _RunningBrowser | None = None
        self._busy = False
        self._interrupted = False

    def run(self, code: str, timeout: float) -> BrowseResult:
        """Run code; see BrowseResult. Raises ActionFailed if there is no browser."""
        try:
            steps = read_code(code)
        except CodeError as error:
            return BrowseResult(output=f"Error: {error}", error=True, url=self._url(), images=[])
        return self._run(steps, timeout)

    def open(self, url: str, timeout: float) -> BrowseResult:
        """Open a page, like `run` with `goto(url)`."""
        return self._run((BrowserStep("goto", {"url": url}, f"goto({url[:200]!r})"),), timeout)

    def interrupt(self) -> bool:
        """Interrupt the running request; a second call kills the browser.

        Return False if no request is running.
        """
        running = self._running
        if not self._busy:
            return False
        if running:
            if self._interrupted:
                running.chromium.kill()
            running.chromium.tools.interrupt()
        self._interrupted = True
        return True

    def close(self) -> None:
        """End the browser; the next request starts a new one."""
        self._drop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, steps: Sequence[BrowserStep], timeout: float) -> BrowseResult:
        """Run the steps in the running browser, starting one if there is none."""
        self._busy, self._interrupted = True, False
        notes: list[str] = []
        try:
            if self._running and self._running.chromium.tools.lost:
                self._drop()
                notes.append("The browser had ended and was started again; its tabs are gone.")
            running = self._running = self._running or self._start()
            running.chromium.tools.resume()
            request = _Request(running, self._root, self._timeouts, timeout)
            return request.run(steps, notes)
        except DevToolsClosed:
            self._drop()
            reason = "the browser was ended" if self._interrupted else "the browser ended"
            output = f"Error: {reason} while it was used; the next action starts a new one."
            return BrowseResult(output=output, error=True, url="", images=[])
        finally:
            self._busy = False

    def _start(self) -> "_RunningBrowser":
        """Start a browser and return it. Raises ActionFailed if that fails."""
        program = find_chromium(self._environment)
        if program is None:
            raise ActionFailed(NO_CHROMIUM)
        shutil.rmtree(self._folder, ignore_errors=True)
        running = self._family.with_room(
            lambda: _RunningBrowser(
                self._family, program, self._bash, self._folder, self._environment, self._root
            )
        )
        try:
            running.open()
        except DevToolsError as error:
            code = running.chromium.close()
            reason = "did not answer" if code == -9 else f"ended with exit code {code}"
            raise ActionFailed(
                f"The browser {program} could not be started: it {reason}."
            ) from error
        return running

    def _drop(self) -> None:
        if self._running:
            self._running.chromium.close()
            self._running = None

    def _url(self) -> str:
        tab = self._running.tabs.active if self._running else None
        return tab.url if tab else ""


class _RunningBrowser:
    """A running browser with its tabs and element ids."""

    def __init__(
        self,
        family: Family,
        program: str,
        bash: str,
        folder: str,
        environment: Mapping[str, str],
        root: str,
    ) -> None:
        self.bids = ElementIds()
        self.chromium = Chromium(
            family, program, bash, folder, environment, lambda *event: self.tabs.on_event(*event)
        )
        # No event comes before `open` asks for them, so the tabs are there for the first one.
        self.tabs = Tabs(self.chromium.tools.send, root)

    def open(self) -> None:
        """Ask for events and wait for the first tab. Raises DevToolsError."""
        tools, until = self.chromium.tools, time.monotonic() + START_SECONDS
        pages: dict[str, Any] = {"filter": [{"type": "page"}]}
        tools.call("Target.setDiscoverTargets", {"discover": True, **pages}, until)
        attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True, **pages}
        tools.call("Target.setAutoAttach", attach, until)
        # Downloads are refused: the shell can fetch files and check their size and place.
        download = {"behavior": "deny", "eventsEnabled": True}
        tools.call("Browser.setDownloadBehavior", download, until)
        # The browser is started without a window, because commands sent to a window while it opens
        # can crash it.
        tools.call("Target.createTarget", {"url": "about:blank"}, until)
        tools.wait(lambda: bool(self.tabs.open), until, "the first tab")


class _Request:
    """One request: run the steps, then read the page."""

    def __init__(
        self, running: _RunningBrowser, root: str, timeouts: PageTimeouts, timeout: float
    ) -> None:
        self._tools = running.chromium.tools
        self._tabs = running.tabs
        self._bids = running.bids
        self._timeout = timeout
        self._until = time.monotonic() + timeout
        parts = (self._tools, self._tabs, self._bids, root, timeouts)
        self._steps = Steps(*parts, self._until)
        self._reading = Steps(*parts, self._until + READ_SECONDS)

    def run(self, steps: Sequence[BrowserStep], notes: list[str]) -> BrowseResult:
        """Do the steps up to the first one that fails, then read the page.

        Raises DevToolsClosed if the browser ends.
        """
        self._tabs.begin()
        self._bids.forget_old()
        error = ""
        for number, step in enumerate(steps):
            error = self._attempt(step)
            if error:
                remaining = len(steps) - number - 1
                error += f" ({remaining} more not done.)" if remaining else ""
                break
        self._tools.resume()
        images: list[str] = []
        body = self._read_page(images)
        parts = [f"Error: {error}"] if error else []
        parts += [f"Note: {sentence}" for sentence in (*notes, *self._tabs.notes.take())]
        tab = self._tabs.active
        return BrowseResult(
            output="\n".join([*parts, body]),
            error=bool(error),
            url=short_url(tab.url) if tab else "",
            images=images,
        )

    def _attempt(self, step: BrowserStep) -> str:
        """Do a step and return the error message; empty if it succeeded."""
        tab = self._tabs.active
        try:
            self._steps.do(step)
        except StepFailed as failed:
            return f"{step.text}: {failed}"
        except Interrupted:
            return f"{step.text}: interrupted."
        except DevToolsRefused as refused:
            if tab and tab.closed:
                self._tabs.notes.add("The page closed its tab.")
                return ""
            if tab and tab.crashed:
                return f"{step.text}: {self._gone(tab)}"
            return f"{step.text}: {refused}."
        except DevToolsTimeout:
            if time.monotonic() >= self._until:
                return f"{step.text}: not done within {self._timeout:g} s."
            return f"{step.text}: {self._revive()}"
        return ""

    def _revive(self) -> str:
        """End the script that keeps the page from answering, or else replace the tab.

        Return a sentence for the agent.
        """
        tab = self._reading.tab()
        for _ in range(REVIVAL_ATTEMPTS):
            self._tools.send("Runtime.terminateExecution", tab.session)
            with suppress(DevToolsTimeout, DevToolsRefused):
                self._reading.page(tab).evaluate("1", REVIVAL_SECONDS)
                return "The page did not answer, and its running script was ended."
        return self._gone(tab)

    def _gone(self, tab: Tab) -> str:
        """Replace a tab that has crashed or does not answer; return a sentence about it."""
        flooded, crashed = tab.flooded, tab.crashed
        self._reading.replace_tab(tab)
        reason = "did not answer, not even after its script was ended"
        if crashed:
            reason = "kept opening dialogs" if flooded else "crashed (usually out of memory)"
        return (
            f"The page {short_url(tab.url)} {reason}; its tab was closed and an empty one opened."
        )

    def _read_page(self, images: list[str]) -> str:
        """Return the page as text, and append the requested screenshot to `images`."""
        for _ in range(READ_ATTEMPTS):
            tab = self._tabs.active
            try:
                page = self._reading.page(self._reading.tab())
                text = page_text(page, self._tabs, self._bids)
                self._add_screenshot(page, images)
                return text
            except DevToolsRefused:  # the page has changed or is gone
                if tab and tab.crashed and not tab.closed:
                    self._tabs.notes.add(self._gone(tab))
            except DevToolsTimeout:
                self._tabs.notes.add(self._revive())
            except Interrupted:
                self._tools.resume()
        return "\n".join(["The page can't be seen now.", *tabs_text(self._tabs)])

    def _add_screenshot(self, page: Page, images: list[str]) -> None:
        if self._steps.screenshot is None or images:
            return
        image = take_screenshot(page, self._bids, self._steps.screenshot)
        if image:
            images.append(image)
        else:
            self._tabs.notes.add("The screenshot is too large to be shown.")
