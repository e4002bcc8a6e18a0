"""Executes the actions of browser_code.py on a page.

The active tab may change during a request, so each step uses the tab that is active when it begins.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from .browser_code import BrowserStep
from .browser_input import PageInput
from .browser_page import Element, ElementIds, Page, PageTimeouts, StepFailed, checked_url
from .browser_scripts import CHECKED, CHOOSE, IS_FILE_INPUT, TAKES_TEXT
from .browser_tabs import MAX_TABS, Tab, Tabs, is_inside
from .devtools import DevTools, DevToolsTimeout

MAX_NOOP: Final = 30_000
"""Maximum number of milliseconds that `noop` waits."""

StepArguments = Mapping[str, Any]


class Steps:
    """Executes the steps of one request.

    until: end of the request, on the monotonic clock.
    """

    def __init__(
        self,
        tools: DevTools,
        tabs: Tabs,
        bids: ElementIds,
        root: str,
        timeouts: PageTimeouts,
        until: float,
    ) -> None:
        self._tools = tools
        self._tabs = tabs
        self._bids = bids
        self._root = root
        self._timeouts = timeouts
        self._until = until
        self.screenshot: bool | None = None
        """The requested screenshot: True with marks, False without; None if there is none."""
        self._table: dict[str, Callable[[Page, StepArguments], None]] = {
            "goto": lambda page, g: page.goto(checked_url(g["url"], root)),
            "go_back": lambda page, _: page.travel(-1),
            "go_forward": lambda page, _: page.travel(1),
            "reload": lambda page, _: page.reload(),
            "click": lambda page, g: self._click(page, g, 1),
            "dblclick": lambda page, g: self._click(page, g, 2),
            "hover": lambda page, g: PageInput(page).hover(self._element(page, g)),
            "focus": lambda page, g: PageInput(page).focus(self._element(page, g)),
            "fill": lambda page, g: self._fill(page, g, g["value"]),
            "clear": lambda page, g: self._fill(page, g, ""),
            "press": self._press,
            "keyboard_press": lambda page, g: PageInput(page).press(g["key"]),
            "keyboard_type": lambda page, g: PageInput(page).type(g["text"]),
            "select_option": self._select_option,
            "check": lambda page, g: self._check(page, g, "true"),
            "uncheck": lambda page, g: self._check(page, g, "false"),
            "scroll": lambda page, g: PageInput(page).scroll(g["delta_x"], g["delta_y"]),
            "drag_and_drop": self._drag_and_drop,
            "upload_file": self._upload_file,
            "new_tab": self._new_tab,
            "tab_close": self._tab_close,
            "tab_focus": self._tab_focus,
            "noop": self._noop,
            "screenshot": self._screenshot,
        }

    def do(self, step: BrowserStep) -> None:
        """Do the step and wait for its effects. Raises StepFailed and DevToolsError."""
        tab = self.tab()
        self._table[step.name](self.page(tab), step.arguments)
        if step.name not in ("noop", "screenshot", "goto", "reload", "go_back", "go_forward"):
            self.page(self.tab()).wait_until_idle()

    def tab(self) -> Tab:
        """Return the active tab, or open a new one if all are closed."""
        tab = self._tabs.active
        if tab is not None and not tab.crashed:
            return tab
        return self._open_tab()

    def page(self, tab: Tab) -> Page:
        """Return the commands of a tab for this request."""
        return Page(self._tools, self._tabs, tab, self._timeouts, self._until)

    def replace_tab(self, tab: Tab) -> None:
        """Close a tab that no longer answers, and open an empty one instead."""
        tab.crashed = True
        self._tools.send("Page.crash", tab.session)
        self._tools.send("Target.closeTarget", targetId=tab.target)
        if tab in self._tabs.open:
            self._tabs.open.remove(tab)
        self._open_tab()

    def _open_tab(self) -> Tab:
        until = time.monotonic() + self._timeouts.answer
        made = self._tools.call("Target.createTarget", {"url": "about:blank"}, until)
        target = made.get("targetId")
        self._tools.wait(lambda: any(tab.target == target for tab in self._tabs.open), until)
        tab = next(tab for tab in self._tabs.open if tab.target == target)
        self._tabs.active = tab
        return tab

    def _element(self, page: Page, arguments: StepArguments, name: str = "bid") -> Element:
        return self._bids.find(arguments[name], page.tab)

    def _click(self, page: Page, arguments: StepArguments, count: int) -> None:
        element = self._element(page, arguments)
        PageInput(page).click(element, arguments["button"], arguments["modifiers"], count)

    def _fill(self, page: Page, arguments: StepArguments, text: str) -> None:
        element = self._element(page, arguments)
        problem = page.call_on(element, TAKES_TEXT, text)
        if problem == "set":
            return
        if problem:
            raise StepFailed(f"[{element.bid}] {problem}.")
        PageInput(page).insert(text)

    def _press(self, page: Page, arguments: StepArguments) -> None:
        keyboard = PageInput(page)
        keyboard.focus(self._element(page, arguments))
        keyboard.press(arguments["key_comb"])

    def _select_option(self, page: Page, arguments: StepArguments) -> None:
        element = self._element(page, arguments)
        problem = page.call_on(element, CHOOSE, list(arguments["options"]))
        if problem:
            raise StepFailed(f"[{element.bid}] {problem}.")

    def _check(self, page: Page, arguments: StepArguments, wanted: str) -> None:
        element = self._element(page, arguments)
        state = page.call_on(element, CHECKED)
        if not state:
            raise StepFailed(f"[{element.bid}] is neither a checkbox nor a radio button.")
        if state == wanted:
            return
        PageInput(page).click(element, "left", (), 1)
        page.wait_until_idle()
        if page.call_on(element, CHECKED) != wanted:
            how = "checked" if wanted == "true" else "unchecked"
            raise StepFailed(f"[{element.bid}] was clicked, but is not {how} now.")

    def _drag_and_drop(self, page: Page, arguments: StepArguments) -> None:
        start, end = (self._element(page, arguments, name) for name in ("from_bid", "to_bid"))
        PageInput(page).drag(start, end)

    def _upload_file(self, page: Page, arguments: StepArguments) -> None:
        element = self._element(page, arguments)
        files = [os.path.realpath(os.path.join(self._root, path)) for path in arguments["file"]]
        for path, requested_path in zip(files, arguments["file"], strict=True):
            if not is_inside(path, self._root):
                raise StepFailed(
                    f"{requested_path} is not in {self._root}: only files in there are uploaded."
                )
            if not os.path.isfile(path):
                raise StepFailed(f"There is no file {requested_path}.")
        takes = page.call_on(element, IS_FILE_INPUT)
        if not takes:
            raise StepFailed(f"[{element.bid}] is not a file input (<input type=file>).")
        if takes == "one" and len(files) != 1:
            raise StepFailed(f"[{element.bid}] takes exactly one file.")
        page.call("DOM.setFileInputFiles", files=files, backendNodeId=element.backend)

    def _new_tab(self, _page: Page, arguments: StepArguments) -> None:
        url = checked_url(arguments["url"], self._root)
        if len(self._tabs.open) >= MAX_TABS:
            raise StepFailed(f"{MAX_TABS} tabs are open: close one with tab_close() first.")
        tab = self._open_tab()
        if url != "about:blank":
            self.page(tab).goto(url)

    def _tab_close(self, page: Page, _arguments: StepArguments) -> None:
        tab = page.tab
        page.call("Page.close")
        page.wait(lambda: tab not in self._tabs.open)
        self._show(self.tab())

    def _tab_focus(self, _page: Page, arguments: StepArguments) -> None:
        index, tabs = arguments["index"], self._tabs.open
        if not 0 <= index < len(tabs):
            raise StepFailed(f"There is no tab [{index}]: there are [0] to [{len(tabs) - 1}].")
        self._show(tabs[index])

    def _show(self, tab: Tab) -> None:
        self._tabs.active = tab
        self.page(tab).call("Page.bringToFront")

    def _noop(self, page: Page, arguments: StepArguments) -> None:
        seconds = min(max(arguments["wait_ms"], 0), MAX_NOOP) / 1000
        until = min(self._until, time.monotonic() + seconds)
        with suppress(DevToolsTimeout):  # the pause is over
            self._tools.wait(lambda: page.tab.crashed, until)

    def _screenshot(self, _page: Page, arguments: StepArguments) -> None:
        self.screenshot = arguments["marks"]
