"""Controls one tab: runs scripts in an isolated world, navigates, and waits until the page is idle.

Every answer is awaited with a timeout, and all of them within the time of the request.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from .browser_scripts import ANSWERED, WORLD
from .browser_tabs import Tab, Tabs, allowed_file
from .browser_text import short_url
from .devtools import DevTools, DevToolsRefused, DevToolsTimeout

ROUNDS: Final = 20
"""Maximum number of times to wait again for a page that has begun something new."""

_HOST_AND_PORT: Final = re.compile(r"[\w.-]+:[0-9]{1,5}(?:[/?#]|$)")


class StepFailed(Exception):
    """Raised if an action can't be done; the message tells the agent why and what to do."""


@dataclass(frozen=True)
class PageTimeouts:
    """Timeouts in seconds.

    answer: for any answer of the page, after which its running script is ended.
    load: for a document.
    network: for requests that a loaded page makes.
    """

    answer: float = 10.0
    load: float = 30.0
    network: float = 3.0


@dataclass(frozen=True)
class Element:
    """An element that the agent was shown."""

    bid: str
    tab: Tab
    frame: str
    backend: int
    documents: int


class ElementIds:
    """The ids ("bids") of elements: small numbers that are never used twice.

    An element keeps its id as long as it lives. The ids are kept here and not in the page, which
    can neither see nor forge them.
    """

    def __init__(self) -> None:
        self._elements: dict[str, Element] = {}
        self._known: dict[tuple[str, int, int], str] = {}
        self._last = 0

    def bid_of(self, tab: Tab, frame: str, backend: int) -> str:
        """Return the element's id, a new one if it has none."""
        key = (tab.target, tab.documents, backend)
        bid = self._known.get(key)
        if bid is None:
            self._last += 1
            bid = self._known[key] = str(self._last)
            self._elements[bid] = Element(bid, tab, frame, backend, tab.documents)
        return bid

    def forget_old(self) -> None:
        """Remove the ids of documents that are gone."""
        live = {
            bid: element
            for bid, element in self._elements.items()
            if not element.tab.crashed and element.tab.documents == element.documents
        }
        self._elements = live
        self._known = {key: bid for key, bid in self._known.items() if bid in live}

    def find(self, bid: str, tab: Tab) -> Element:
        """Return the element with this id in the active tab. Raises StepFailed."""
        element = self._elements.get(bid)
        if element is None or element.documents != element.tab.documents:
            known = bid.isdigit() and int(bid) <= self._last
            why = "belongs to a page that is no longer open" if known else "was never shown"
            raise StepFailed(f"[{bid}] {why}. Use the ids of the newest tree.")
        if element.tab is not tab:
            raise StepFailed(f"[{bid}] is in another tab: use tab_focus(index) first.")
        return element


def checked_url(url: str, root: str) -> str:
    """Return the URL to open, with http:// if it has no scheme.

    Raises StepFailed if it is not a web page or a file of the workspace.
    """
    url = url.strip()
    if ":" not in url or _HOST_AND_PORT.match(url):
        url = f"http://{url}"
    scheme = url.partition(":")[0].lower()
    if scheme in ("http", "https") or url == "about:blank":
        return url
    if scheme == "file" and allowed_file(url, root):
        return url
    raise StepFailed(
        f"{short_url(url)} is not opened: the browser shows http and https pages and files of "
        f"{root} (file://{root}/...)."
    )


class Page:
    """The commands of one tab.

    until: end of the whole request, on the monotonic clock.
    """

    def __init__(
        self, tools: DevTools, tabs: Tabs, tab: Tab, timeouts: PageTimeouts, until: float
    ) -> None:
        self.tab = tab
        self._tools = tools
        self._tabs = tabs
        self._timeouts = timeouts
        self._until = until

    def call(self, method: str, seconds: float | None = None, **params: Any) -> dict[str, Any]:
        """Send a command to the tab and return its result. Raises DevToolsError.

        seconds: timeout in place of the usual one.
        """
        until = time.monotonic() + (seconds or self._timeouts.answer)
        return self._tools.call(
            method, params, min(until, self._until), self.tab.session, lambda: self.tab.crashed
        )

    def evaluate(self, expression: str, seconds: float | None = None) -> Any:
        """Return the JSON value of an expression, or of its promise.

        It is evaluated in the top frame, in our isolated world. Raises DevToolsError.
        """
        return self._run(expression, seconds, returnByValue=True).get("value")

    def elements(self, expression: str) -> list[int]:
        """Return the backend ids of the elements in an array."""
        array = self._run(expression, None, returnByValue=False).get("objectId", "")
        found = self.call("Runtime.getProperties", objectId=array, ownProperties=True)
        objects = [
            item["value"]["objectId"]
            for item in found.get("result", ())
            if str(item.get("name")).isdigit() and "objectId" in item.get("value", {})
        ]
        nodes = [self.call("DOM.describeNode", objectId=object) for object in objects]
        return [int(node.get("node", {}).get("backendNodeId", 0)) for node in nodes]

    def call_on(
        self, element: Element, function: str, value: Any = None, other: int | None = None
    ) -> Any:
        """Return the JSON value of a function called with the element as `this`.

        value: the function's argument.
        other: backend id of an element that is the argument instead.
        Raises DevToolsError, and StepFailed if the element is gone.
        """
        parameters: dict[str, Any] = {
            "objectId": self._object(element, element.backend),
            "functionDeclaration": function,
            "arguments": [
                {"value": value} if other is None else {"objectId": self._object(element, other)}
            ],
            "returnByValue": True,
        }
        return _result(self.call("Runtime.callFunctionOn", **parameters)).get("value")

    def wait(self, ready: Callable[[], bool]) -> None:
        """Wait until `ready()` is true, which is checked after each message of the browser.

        Raises DevToolsError.
        """
        until = min(self._until, time.monotonic() + self._timeouts.answer)
        self._tools.wait(lambda: ready() or self.tab.crashed, until)

    def goto(self, url: str) -> None:
        """Open a page and wait for it. Raises StepFailed if it can't be opened."""
        try:
            result = self.call("Page.navigate", self._timeouts.load, url=url)
        except DevToolsTimeout as late:
            self._tools.send("Page.stopLoading", self.tab.session)
            raise StepFailed(f"{short_url(url)} did not answer in time.") from late
        problem = result.get("errorText")
        if result.get("isDownload"):
            raise StepFailed(f"{short_url(url)} is a download, not a page.")
        self.wait_until_idle()
        if problem:
            raise StepFailed(f"{short_url(url)} could not be opened: {problem}.")

    def reload(self) -> None:
        """Reload the page and wait for it."""
        self._navigate(lambda: self.call("Page.reload"))

    def travel(self, steps: int) -> None:
        """Go back (-1) or forward (1) in the tab's history. Raises StepFailed at either end."""
        history = self.call("Page.getNavigationHistory")
        entries, current = history.get("entries", []), history.get("currentIndex", 0)
        if not 0 <= current + steps < len(entries):
            raise StepFailed(f"There is no page to go {'back' if steps < 0 else 'forward'} to.")
        entry = entries[current + steps]["id"]
        self._navigate(lambda: self.call("Page.navigateToHistoryEntry", entryId=entry))

    def wait_until_idle(self) -> None:
        """Wait for the effects of the last input: documents are loaded and requests are answered.

        If that takes too long, note it and stop waiting. Raises DevToolsError.
        """
        load_by = time.monotonic() + self._timeouts.load
        network_by: float | None = None
        for _ in range(ROUNDS):
            # Creating a world while its document is still loading crashes Chromium.
            if self.tab.target in self.tab.worlds or not self._is_loading():
                self._await_answer()
            if not self.tab.busy:
                return
            if self._is_loading() or network_by is None:
                network_by = time.monotonic() + self._timeouts.network
            until = min(self._until, load_by if self._is_loading() else network_by)
            try:
                self._tools.wait(self._next_change(), until)
            except DevToolsTimeout:
                if self._is_loading():
                    self._tools.send("Page.stopLoading", self.tab.session)
                    self._tabs.notes.add("The page loaded for too long and was stopped.")
                # Otherwise a request that never ends would delay every later action as well.
                self.tab.requests.clear()
                return

    def _await_answer(self) -> None:
        try:
            self.evaluate(ANSWERED)
        except DevToolsRefused:  # the world is gone with its document; the next one is awaited
            if self.tab.crashed:
                raise

    def _is_loading(self) -> bool:
        return bool(self.tab.loading or self.tab.expected)

    def _next_change(self) -> Callable[[], bool]:
        loading = self._is_loading()
        return lambda: not self.tab.busy or self.tab.crashed or (loading and not self._is_loading())

    def _navigate(self, begin: Callable[[], object]) -> None:
        """Begin a navigation within the tab's history and wait for its end."""
        before = self.tab.moves
        begin()
        until = min(self._until, time.monotonic() + self._timeouts.load)
        try:
            self._tools.wait(lambda: self.tab.moves != before or self.tab.crashed, until)
        except DevToolsTimeout as late:
            self._tools.send("Page.stopLoading", self.tab.session)
            raise StepFailed("The page did not answer in time.") from late
        self.wait_until_idle()

    def _run(self, expression: str, seconds: float | None, **options: Any) -> dict[str, Any]:
        parameters = {"expression": expression, "awaitPromise": True, **options}
        world = self._world(self.tab.target)
        return _result(self.call("Runtime.evaluate", seconds, contextId=world, **parameters))

    def _world(self, frame: str) -> int:
        """Return our isolated world in a frame. It is created once for each document.

        Scripts in an isolated world share the page's DOM but not its JavaScript objects, so the
        page can't interfere with them. See Page.createIsolatedWorld of the protocol.
        """
        world = self.tab.worlds.get(frame)
        if world is None:
            answer = self.call("Page.createIsolatedWorld", frameId=frame, worldName=WORLD)
            world = self.tab.worlds[frame] = int(answer.get("executionContextId", 0))
        return world

    def _object(self, element: Element, backend: int) -> str:
        """Return the remote object of an element in our isolated world.

        Raises StepFailed if the element is gone.
        """
        try:
            world = self._world(element.frame)
            parameters: dict[str, Any] = {"backendNodeId": backend, "executionContextId": world}
            found = self.call("DOM.resolveNode", **parameters)
        except DevToolsRefused as refused:
            if self.tab.crashed:
                raise
            raise StepFailed(
                f"[{element.bid}] is no longer on the page. Use the ids of the newest tree."
            ) from refused
        return str(found.get("object", {}).get("objectId", ""))


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a script. Raises DevToolsRefused if it threw."""
    if "exceptionDetails" in answer:
        details = answer["exceptionDetails"]
        thrown = details.get("exception", {}).get("description", details.get("text", ""))
        raise DevToolsRefused(f"the page's document does not allow it: {str(thrown)[:200]}")
    result = answer.get("result")
    return result if isinstance(result, dict) else {}
