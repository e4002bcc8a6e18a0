"""One tab, spoken to: scripts in a world of their own, navigation, waiting until it is quiet.

Every answer is waited for with a limit, and all of it with the limit of the request.
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
"""How often a page that begins something new is waited for once more."""

_HOST_AND_PORT: Final = re.compile(r"[\w.-]+:[0-9]{1,5}(?:[/?#]|$)")


class StepFailed(Exception):
    """An action could not be done; the message tells the agent why and what to do."""


@dataclass(frozen=True)
class Patience:
    """Seconds that are waited at most.

    answer: for a page to answer at all, after which its script is ended. load: for a document.
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


class Bids:
    """The ids of elements: small numbers, never used twice, the same as long as the element
    lives. They are kept here and not in the page, which can neither see nor forge them."""

    def __init__(self) -> None:
        self._elements: dict[str, Element] = {}
        self._known: dict[tuple[str, int, int], str] = {}
        self._last = 0

    def bid_of(self, tab: Tab, frame: str, backend: int) -> str:
        """The element's id, a new one when it has none."""
        key = (tab.target, tab.documents, backend)
        bid = self._known.get(key)
        if bid is None:
            self._last += 1
            bid = self._known[key] = str(self._last)
            self._elements[bid] = Element(bid, tab, frame, backend, tab.documents)
        return bid

    def forget_old(self) -> None:
        """Drop the ids of documents that are gone."""
        live = {
            bid: element
            for bid, element in self._elements.items()
            if not element.tab.crashed and element.tab.documents == element.documents
        }
        self._elements = live
        self._known = {key: bid for key, bid in self._known.items() if bid in live}

    def find(self, bid: str, tab: Tab) -> Element:
        """The element in the active tab. Raises StepFailed."""
        element = self._elements.get(bid)
        if element is None or element.documents != element.tab.documents:
            known = bid.isdigit() and int(bid) <= self._last
            why = "is of a page that is no longer open" if known else "was never shown"
            raise StepFailed(f"[{bid}] {why}. Use the ids of the newest tree.")
        if element.tab is not tab:
            raise StepFailed(f"[{bid}] is in another tab: use tab_focus(index) first.")
        return element


def checked_url(url: str, root: str) -> str:
    """The URL to open. Raises StepFailed for what is not a page of the web or the workspace."""
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
    """The commands of one tab. until: end of the whole request, on the monotonic clock."""

    def __init__(
        self, tools: DevTools, tabs: Tabs, tab: Tab, patience: Patience, until: float
    ) -> None:
        self.tab = tab
        self._tools = tools
        self._tabs = tabs
        self._patience = patience
        self._until = until

    def call(self, method: str, seconds: float | None = None, **params: Any) -> dict[str, Any]:
        """A command to the tab. seconds: instead of the usual patience. Raises DevToolsError."""
        until = time.monotonic() + (seconds or self._patience.answer)
        return self._tools.call(
            method, params, min(until, self._until), self.tab.session, lambda: self.tab.crashed
        )

    def evaluate(self, expression: str, seconds: float | None = None) -> Any:
        """The JSON value of an expression (or of its promise) in the top frame, in the world of
        ours. Raises DevToolsError."""
        return self._run(expression, seconds, returnByValue=True).get("value")

    def labelled(self, expression: str, label: str) -> list[tuple[int, Any]]:
        """The backend ids of an array of elements, each with what `label` gives for it."""
        array = self._run(expression, None, returnByValue=False).get("objectId", "")
        found = self.call("Runtime.getProperties", objectId=array, ownProperties=True)
        objects = [
            item["value"]["objectId"]
            for item in found.get("result", ())
            if str(item.get("name")).isdigit() and "objectId" in item.get("value", {})
        ]
        return [(self._backend(item), self._on_object(item, label)) for item in objects]

    def on(self, element: Element, function: str, *arguments: Any) -> Any:
        """The JSON value of a function with the element as `this`. Raises DevToolsError, and
        StepFailed when the element is gone."""
        object = self._object(element, element.backend)
        return self._on_object(object, function, *({"value": value} for value in arguments))

    def on_both(self, element: Element, function: str, other: int) -> Any:
        """As `on`, with another element, named by its backend id, as the argument."""
        object = self._object(element, element.backend)
        return self._on_object(object, function, {"objectId": self._object(element, other)})

    def wait(self, ready: Callable[[], bool]) -> None:
        """Until `ready`; it is asked whenever the browser said something. Raises DevToolsError."""
        until = min(self._until, time.monotonic() + self._patience.answer)
        self._tools.wait(lambda: ready() or self.tab.crashed, until)

    def goto(self, url: str) -> None:
        """Open a page and wait for it. Raises StepFailed when there is none."""
        try:
            result = self.call("Page.navigate", self._patience.load, url=url)
        except DevToolsTimeout as late:
            self._tools.send("Page.stopLoading", self.tab.session)
            raise StepFailed(f"{short_url(url)} did not answer in time.") from late
        problem = result.get("errorText")
        if result.get("isDownload"):
            raise StepFailed(f"{short_url(url)} is a download, not a page.")
        self.settle()
        if problem:
            raise StepFailed(f"{short_url(url)} could not be opened: {problem}.")

    def reload(self) -> None:
        """Load the page again and wait for it."""
        self._moving(lambda: self.call("Page.reload"))

    def travel(self, steps: int) -> None:
        """Back (-1) or forward (1) in the tab's history. Raises StepFailed at its end."""
        history = self.call("Page.getNavigationHistory")
        entries, current = history.get("entries", []), history.get("currentIndex", 0)
        if not 0 <= current + steps < len(entries):
            raise StepFailed(f"There is no page to go {'back' if steps < 0 else 'forward'} to.")
        entry = entries[current + steps]["id"]
        self._moving(lambda: self.call("Page.navigateToHistoryEntry", entryId=entry))

    def settle(self) -> None:
        """Until what the last input began is done: documents are loaded, requests answered. What
        takes too long is noted and left. Raises DevToolsError."""
        load_by = time.monotonic() + self._patience.load
        network_by: float | None = None
        for _ in range(ROUNDS):
            # A world can't be made while its document is on its way: the attempt crashes Chromium.
            if self.tab.target in self.tab.worlds or not self._is_loading():
                self._await_answer()
            if not self.tab.busy:
                return
            if self._is_loading() or network_by is None:
                network_by = time.monotonic() + self._patience.network
            until = min(self._until, load_by if self._is_loading() else network_by)
            try:
                self._tools.wait(self._next_change(), until)
            except DevToolsTimeout:
                if self._is_loading():
                    self._tools.send("Page.stopLoading", self.tab.session)
                    self._tabs.notes.add("The page loaded for too long and was stopped.")
                return

    def _await_answer(self) -> None:
        try:
            self.evaluate(ANSWERED)
        except DevToolsRefused:  # the world ended with its document: what comes next is waited for
            if self.tab.crashed:
                raise

    def _is_loading(self) -> bool:
        return bool(self.tab.loading or self.tab.expected)

    def _next_change(self) -> Callable[[], bool]:
        loading = self._is_loading()
        return lambda: not self.tab.busy or self.tab.crashed or (loading and not self._is_loading())

    def _moving(self, begin: Callable[[], object]) -> None:
        before = self.tab.moves
        begin()
        until = min(self._until, time.monotonic() + self._patience.load)
        try:
            self._tools.wait(lambda: self.tab.moves != before or self.tab.crashed, until)
        except DevToolsTimeout as late:
            self._tools.send("Page.stopLoading", self.tab.session)
            raise StepFailed("The page did not answer in time.") from late
        self.settle()

    def _run(self, expression: str, seconds: float | None, **how: Any) -> dict[str, Any]:
        given = {"expression": expression, "awaitPromise": True, **how}
        world = self._world(self.tab.target)
        return _result(self.call("Runtime.evaluate", seconds, contextId=world, **given))

    def _world(self, frame: str) -> int:
        """The world of ours in a frame; it is made once for each document."""
        world = self.tab.worlds.get(frame)
        if world is None:
            made = self.call("Page.createIsolatedWorld", frameId=frame, worldName=WORLD)
            world = self.tab.worlds[frame] = int(made.get("executionContextId", 0))
        return world

    def _object(self, element: Element, backend: int) -> str:
        try:
            world = self._world(element.frame)
            given: dict[str, Any] = {"backendNodeId": backend, "executionContextId": world}
            found = self.call("DOM.resolveNode", **given)
        except DevToolsRefused as refused:
            if self.tab.crashed:
                raise
            raise StepFailed(
                f"[{element.bid}] is no longer on the page. Use the ids of the newest tree."
            ) from refused
        return str(found.get("object", {}).get("objectId", ""))

    def _backend(self, object: str) -> int:
        node = self.call("DOM.describeNode", objectId=object).get("node", {})
        return int(node.get("backendNodeId", 0))

    def _on_object(self, object: str, function: str, *arguments: dict[str, Any]) -> Any:
        given: dict[str, Any] = {
            "functionDeclaration": function,
            "arguments": arguments,
            "returnByValue": True,
        }
        return _result(self.call("Runtime.callFunctionOn", objectId=object, **given)).get("value")


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    """What a script gave. Raises Refused when it threw."""
    if "exceptionDetails" in answer:
        details = answer["exceptionDetails"]
        thrown = details.get("exception", {}).get("description", details.get("text", ""))
        raise DevToolsRefused(f"the page's document does not allow it: {str(thrown)[:200]}")
    result = answer.get("result")
    return result if isinstance(result, dict) else {}
