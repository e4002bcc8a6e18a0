"""The state of the browser's tabs, kept up to date from DevTools events.

It runs in the thread that reads events: it records them and sends commands without waiting for the
answers.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from .browser_text import plain_text, short_url

MAX_TABS: Final = 10
"""Maximum number of open tabs."""

MAX_DIALOGS: Final = 20
"""Dialogs that a page may open during one request before it is crashed."""

MAX_DOCUMENT: Final = 64 * 1024 * 1024
"""Maximum size in bytes of one response."""

MAX_NOTES: Final = 12
"""Maximum number of different notes for one observation."""

_ENDLESS: Final = {"EventSource", "WebSocket", "Ping", "Media", "Preflight"}
"""Kinds of requests that are not awaited."""

Params = dict[str, Any]
Send = Callable[..., object]


@dataclass
class Tab:
    """The state of one tab.

    target, session: ids of the tab and of its DevTools session.
    documents: number of documents that its main frame has loaded.
    moves: number of navigations, including those within a document.
    expected: True if it was opened with an address whose document has not arrived yet.
    crashed: True if it will never answer again.
    closed: True if that is because the tab is gone.
    flooded: True if it was crashed because it had opened too many dialogs.
    dialogs: number of dialogs that it has opened during this request.
    drag: data of the current drag.
    worlds: execution context of our scripts in the current document, by frame.
    loading: ids of the frames that are loading.
    requests: ids of the requests that are expected to end soon.
    received: number of bytes received so far, by request.
    """

    target: str
    session: str
    url: str = "about:blank"
    title: str = ""
    documents: int = 0
    moves: int = 0
    expected: bool = False
    crashed: bool = False
    closed: bool = False
    flooded: bool = False
    dialogs: int = 0
    drag: Params | None = None
    worlds: dict[str, int] = field(default_factory=dict)
    loading: set[str] = field(default_factory=set)
    requests: set[str] = field(default_factory=set)
    received: dict[str, int] = field(default_factory=dict)

    @property
    def busy(self) -> bool:
        """True if something is being loaded that is expected to end."""
        return bool(self.loading or self.requests or self.expected)


class TabNotes:
    """Sentences about events other than the action itself, for the next observation."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, sentence: str) -> None:
        """Add a sentence; above MAX_NOTES different ones, only that more happened."""
        if len(self._counts) >= MAX_NOTES and sentence not in self._counts:
            sentence = "More happened."
        self._counts[sentence] = self._counts.get(sentence, 0) + 1

    def take(self) -> list[str]:
        """Return the sentences so far, each once, and forget them."""
        counts, self._counts = self._counts, {}
        return [f"{text} ({n} times)" if n > 1 else text for text, n in counts.items()]


def allowed_file(url: str, root: str) -> str | None:
    """Return the real path that a file: URL names if it is in `root`, else None."""
    try:
        parts = urlsplit(url)
        path = os.path.realpath(unquote(parts.path, errors="strict"))
    except (ValueError, OSError):
        return None
    return path if is_inside(path, root) and parts.netloc in ("", "localhost") else None


def is_inside(path: str, root: str) -> bool:
    """Return True if a real path is that of the folder, or of something in it."""
    base = os.path.realpath(root)
    return path == base or path.startswith(base.rstrip("/") + "/")


class Tabs:
    """The tabs in the order in which they were opened, and the active one.

    send: DevTools.send.
    root: folder whose files may be opened by file: URLs.
    """

    def __init__(self, send: Send, root: str) -> None:
        self._send = send
        self._root = root
        self.notes = TabNotes()
        self.open: list[Tab] = []
        self.active: Tab | None = None
        self._next_url = ""
        self._events: dict[str, Callable[[Tab, Params], None]] = {
            "Page.frameStartedLoading": lambda tab, p: tab.loading.add(_text(p, "frameId")),
            "Page.frameStoppedLoading": lambda tab, p: tab.loading.discard(_text(p, "frameId")),
            "Page.frameDetached": lambda tab, p: tab.loading.discard(_text(p, "frameId")),
            "Page.frameNavigated": self._navigated,
            "Page.navigatedWithinDocument": self._moved,
            "Page.windowOpen": self._window_open,
            "Page.javascriptDialogOpening": self._dialog,
            "Page.fileChooserOpened": self._file_chooser,
            "Network.requestWillBeSent": self._request,
            "Network.dataReceived": self._received,
            "Network.loadingFinished": _ended,
            "Network.loadingFailed": _ended,
            "Fetch.requestPaused": self._paused,
            "Input.dragIntercepted": _dragged,
        }

    def on_event(self, session: str, method: str, params: Params) -> None:
        """Process one event; see DevTools."""
        match method:
            case "Target.attachedToTarget":
                self._attached(params)
            case "Target.targetDestroyed":
                self._gone(_text(params, "targetId"))
            case "Target.targetCrashed":
                self._crashed(_text(params, "targetId"))
            case "Target.targetInfoChanged":
                self._info(params.get("targetInfo", {}))
            case "Browser.downloadWillBegin":
                name = _text(params, "suggestedFilename")[:100]
                self.notes.add(
                    f"The download of {name!r} ({short_url(_text(params, 'url'))}) was refused; "
                    "fetch files with curl in the shell."
                )
            case _:
                tab = next((tab for tab in self.open if tab.session == session), None)
                if tab and method in self._events:
                    self._events[method](tab, params)

    def begin(self) -> None:
        """Reset the counters at the beginning of a request."""
        for tab in self.open:
            tab.dialogs = 0

    def _attached(self, params: Params) -> None:
        """Take control of a new tab, or close it if there are too many."""
        info, session = params.get("targetInfo", {}), _text(params, "sessionId")
        target = _text(info, "targetId")
        # Targets wait for Runtime.runIfWaitingForDebugger, so that a tab is under control before
        # its first script runs.
        if info.get("type") != "page" or any(tab.target == target for tab in self.open):
            self._send("Runtime.runIfWaitingForDebugger", session)
            return
        if len(self.open) >= MAX_TABS:
            self._send("Target.closeTarget", targetId=target)
            self.notes.add(f"A new tab was closed at once: {MAX_TABS} are open.")
            return
        tab = Tab(target, session, _text(info, "url") or "about:blank", _text(info, "title"))
        if self.open and info.get("openerId"):
            tab.expected = self._next_url.startswith(("http:", "https:", "file:"))
            self._next_url = ""
            self.notes.add(f"The page opened a new tab, which is [{len(self.open)}] and active.")
        self.open.append(tab)
        self.active = tab
        self._send("Page.enable", session)
        # Response bodies are never requested, so few bytes need to be kept.
        sizes = {"maxTotalBufferSize": 100_000, "maxResourceBufferSize": 50_000}
        self._send("Network.enable", session, **sizes)
        # Otherwise a page that the agent has just changed might come from the cache.
        self._send("Network.setCacheDisabled", session, cacheDisabled=True)
        self._send("Fetch.enable", session, patterns=[{"urlPattern": "file://*"}])
        self._send("Page.setInterceptFileChooserDialog", session, enabled=True)
        # Focus emulation is not used: enabled before the first document of a tab, it crashes some
        # tabs.
        self._send("Runtime.runIfWaitingForDebugger", session)

    def _gone(self, target: str) -> None:
        tab = self._of(target)
        if tab is None:
            return
        tab.crashed = tab.closed = True
        self.open.remove(tab)
        if self.active is tab:
            self.active = self.open[-1] if self.open else None

    def _crashed(self, target: str) -> None:
        tab = self._of(target)
        if tab:
            tab.crashed = True

    def _info(self, info: Params) -> None:
        tab = self._of(_text(info, "targetId"))
        if tab:
            tab.url, tab.title = _text(info, "url"), _text(info, "title")

    def _of(self, target: str) -> Tab | None:
        return next((tab for tab in self.open if tab.target == target), None)

    def _navigated(self, tab: Tab, params: Params) -> None:
        """Reset what belongs to the document that a frame has replaced."""
        frame = params.get("frame", {})
        tab.worlds.pop(_text(frame, "id"), None)
        if not frame.get("parentId"):
            tab.documents += 1
            tab.moves += 1
            tab.expected = False
            tab.worlds.clear()
            tab.url = _text(frame, "url")
            tab.loading &= {_text(frame, "id")}
            tab.requests &= {_text(frame, "loaderId")}
            tab.received = {id: n for id, n in tab.received.items() if id in tab.requests}

    def _moved(self, tab: Tab, _params: Params) -> None:
        tab.moves += 1

    def _window_open(self, _tab: Tab, params: Params) -> None:
        self._next_url = _text(params, "url")

    def _dialog(self, tab: Tab, params: Params) -> None:
        """Accept and note a dialog, which would block the page.

        A page that opens more than MAX_DIALOGS is crashed.
        """
        kind, message = _text(params, "type"), plain_text(_text(params, "message"), 300)
        tab.dialogs += 1
        if tab.dialogs > MAX_DIALOGS:
            if not tab.flooded:
                tab.flooded = True
                self._send("Page.crash", tab.session)
            return
        default = _text(params, "defaultPrompt")
        self._send("Page.handleJavaScriptDialog", tab.session, accept=True, promptText=default)
        answer = f"answered with {plain_text(default, 100)!r}" if kind == "prompt" else "accepted"
        what = (
            "The page asked whether to leave it"
            if kind == "beforeunload"
            else (f"The page showed {'an' if kind == 'alert' else 'a'} {kind} {message!r}")
        )
        self.notes.add(f"{what}: {answer}.")

    def _file_chooser(self, _tab: Tab, _params: Params) -> None:
        self.notes.add("The page asked for a file: give it with upload_file(bid, path).")

    def _request(self, tab: Tab, params: Params) -> None:
        if params.get("type") not in _ENDLESS:
            id = _text(params, "requestId")
            tab.requests.add(id)
            tab.received.setdefault(id, 0)

    def _received(self, tab: Tab, params: Params) -> None:
        id, size = _text(params, "requestId"), params.get("dataLength")
        if id not in tab.received or not isinstance(size, int):
            return
        total = tab.received[id] = tab.received[id] + size
        if total - size <= MAX_DOCUMENT < total:
            self._send("Page.stopLoading", tab.session)
            self.notes.add(f"A response of more than {MAX_DOCUMENT >> 20} MB was stopped.")

    def _paused(self, tab: Tab, params: Params) -> None:
        id, url = _text(params, "requestId"), _text(params.get("request", {}), "url")
        if allowed_file(url, self._root):
            self._send("Fetch.continueRequest", tab.session, requestId=id)
            return
        self._send("Fetch.failRequest", tab.session, requestId=id, errorReason="AccessDenied")
        self.notes.add(f"{short_url(url)} was refused: only files of {self._root} are shown.")


def _ended(tab: Tab, params: Params) -> None:
    id = _text(params, "requestId")
    tab.requests.discard(id)
    tab.received.pop(id, None)


def _dragged(tab: Tab, params: Params) -> None:
    data = params.get("data")
    tab.drag = data if isinstance(data, dict) else None


def _text(params: Params, name: str) -> str:
    value = params.get(name)
    return value if isinstance(value, str) else ""
