"""Sends mouse and keyboard input to a page, as the browser's own input events.

The page receives what a person would cause: trusted events, hit-tested and in order. Source:
https://chromedevtools.github.io/devtools-protocol/tot/Input/
"""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any, Final

from .browser_code import MODIFIERS
from .browser_page import Element, Page, StepFailed
from .browser_scripts import COVERED_BY, DRAG_BEGAN, DRAG_BEGINS, USABLE
from .chromium import HEIGHT, WIDTH
from .devtools import DevToolsRefused

MAX_KEYS: Final = 1_000
"""Number of characters that are typed key by key; the rest is inserted at once."""

_BITS: Final = {"Alt": 1, "Control": 2, "ControlOrMeta": 2, "Ctrl": 2, "Meta": 4, "Shift": 8}
"""Bits of the modifier keys in the protocol."""

_ALIASES: Final = {"ControlOrMeta": "Control", "Ctrl": "Control"}
"""Other names of modifier keys."""

_MODIFIER_CODES: Final = {"Alt": 18, "Control": 17, "Meta": 91, "Shift": 16}

_KEYS: Final = {
    "Enter": 13, "Tab": 9, "Escape": 27, "Backspace": 8, "Delete": 46, "Insert": 45, "Space": 32,
    "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35,
    "PageUp": 33, "PageDown": 34, **{f"F{number}": 111 + number for number in range(1, 13)},
    **_MODIFIER_CODES,
}  # fmt: skip
"""Names of keys with the Windows virtual key codes that pages know them by."""

_TYPED: Final = {"Enter": "\r", "Space": " "}
"""Named keys that produce a character."""

_BUTTON_BITS: Final = {"left": 1, "right": 2, "middle": 4}
"""Bits of the mouse buttons in the protocol."""

Point = tuple[float, float]


class PageInput:
    """Mouse and keyboard of one page."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def click(self, element: Element, button: str, modifiers: Sequence[str], count: int) -> None:
        """Click in the middle of the element. Raises StepFailed if a person could not do it."""
        x, y = self._reach(element)
        bits = _bits(modifiers)
        self._mouse("mouseMoved", x, y, modifiers=bits)
        for number in range(1, count + 1):
            pressed = {"button": button, "clickCount": number, "modifiers": bits}
            self._mouse("mousePressed", x, y, buttons=_BUTTON_BITS[button], **pressed)
            self._mouse("mouseReleased", x, y, **pressed)

    def hover(self, element: Element) -> None:
        """Move the pointer over the element."""
        x, y = self._reach(element)
        self._mouse("mouseMoved", x, y)

    def scroll(self, right: int, down: int) -> None:
        """Turn the mouse wheel in the middle of the window by this many pixels."""
        self._mouse("mouseWheel", WIDTH / 2, HEIGHT / 2, deltaX=right, deltaY=down)

    def drag(self, start: Element, end: Element) -> None:
        """Drag one element onto another, with HTML drag and drop if the page supports it."""
        x, y = self._reach(start)
        page, tab = self._page, self._page.tab
        # With interception on, the browser reports the data of an HTML drag as an event instead of
        # handing it to the desktop; drag events with this data are then dispatched here.
        page.evaluate(DRAG_BEGINS)
        page.call("Input.setInterceptDrags", enabled=True)
        try:
            tab.drag = None
            self._mouse("mouseMoved", x, y)
            self._mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
            self._mouse("mouseMoved", x + 5, y + 5, button="left", buttons=1)
            to_x, to_y = self._middle(end)
            self._mouse("mouseMoved", (x + to_x) / 2, (y + to_y) / 2, button="left", buttons=1)
            if page.evaluate(DRAG_BEGAN):
                page.wait(lambda: tab.drag is not None)
            else:
                self._mouse("mouseMoved", to_x, to_y, button="left", buttons=1)
            if tab.drag is not None:
                for kind in ("dragEnter", "dragOver", "drop"):
                    parameters = {"type": kind, "x": to_x, "y": to_y, "data": tab.drag}
                    page.call("Input.dispatchDragEvent", **parameters)
            self._mouse("mouseReleased", to_x, to_y, button="left", clickCount=1)
        finally:
            page.call("Input.setInterceptDrags", enabled=False)

    def focus(self, element: Element) -> None:
        """Give the element the keyboard focus. Raises StepFailed."""
        try:
            self._page.call("DOM.focus", backendNodeId=element.backend)
        except DevToolsRefused as refused:
            raise StepFailed(f"[{element.bid}] can't have the focus.") from refused

    def press(self, combination: str) -> None:
        """Press a key with its modifiers, such as 'Enter' or 'Control+Shift+a'.

        Raises StepFailed if there is no such key.
        """
        *held, key = _split(combination)
        bits = _bits(held)
        for name in held:
            self._key("rawKeyDown", _ALIASES.get(name, name), bits)
        text = _TYPED.get(key, key if len(key) == 1 else "") if not bits & ~8 else ""
        self._key("keyDown" if text else "rawKeyDown", key, bits, text)
        self._key("keyUp", key, bits)
        for name in reversed(held):
            self._key("keyUp", _ALIASES.get(name, name), 0)

    def type(self, text: str) -> None:
        """Type the text key by key."""
        for character in text[:MAX_KEYS]:
            if character == "\n":
                self.press("Enter")
            elif character == "\t":
                self.press("Tab")
            elif character.isascii():
                self._key("keyDown", character, 0, character)
                self._key("keyUp", character, 0)
            else:
                self._page.call("Input.insertText", text=character)
        if text[MAX_KEYS:]:
            self._page.call("Input.insertText", text=text[MAX_KEYS:])

    def insert(self, text: str) -> None:
        """Replace the selection with the text."""
        if text:
            self._page.call("Input.insertText", text=text)
        else:
            self.press("Delete")

    def _reach(self, element: Element) -> Point:
        """Return the middle of the element.

        Raises StepFailed if it is disabled, invisible, or covered by another element.
        """
        problem = self._page.call_on(element, USABLE)
        if problem:
            raise StepFailed(f"[{element.bid}] {problem}.")
        x, y = self._middle(element)
        layout = self._page.call("Page.getLayoutMetrics").get("cssVisualViewport", {})
        where = {"x": int(x + layout.get("pageX", 0)), "y": int(y + layout.get("pageY", 0))}
        try:
            hit = self._page.call("DOM.getNodeForLocation", **where)
            covered = self._page.call_on(element, COVERED_BY, other=hit.get("backendNodeId", 0))
        except DevToolsRefused:
            return x, y  # no element is at this place: let the browser decide
        if covered:
            raise StepFailed(
                f"[{element.bid}] is covered by {covered}: close or move that first, "
                f"or scroll; focus({element.bid!r}) and press({element.bid!r}, 'Enter') work "
                "without the mouse."
            )
        return x, y

    def _middle(self, element: Element) -> Point:
        """Return the middle of the element's first visible part. Raises StepFailed."""
        id = {"backendNodeId": element.backend}
        try:
            self._page.call("DOM.scrollIntoViewIfNeeded", **id)
            quads = self._page.call("DOM.getContentQuads", **id).get("quads", [])
        except DevToolsRefused as refused:
            if self._page.tab.crashed:
                raise
            raise StepFailed(f"[{element.bid}] is not visible, or no longer there.") from refused
        for quad in quads:
            xs, ys = quad[0::2], quad[1::2]
            if max(xs) - min(xs) >= 1 and max(ys) - min(ys) >= 1:
                # If the part is larger than the window, take the middle of what is in the window.
                left, right = max(0, min(xs)), min(WIDTH, max(xs))
                top, bottom = max(0, min(ys)), min(HEIGHT, max(ys))
                if left < right and top < bottom:
                    return (left + right) / 2, (top + bottom) / 2
        raise StepFailed(f"[{element.bid}] is not visible.")

    def _mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self._page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def _key(self, kind: str, key: str, bits: int, text: str = "") -> None:
        code = _KEYS.get(key) or (ord(key.upper()) if key.isalnum() and key.isascii() else 0)
        parameters: dict[str, Any] = {
            "type": kind,
            "key": _TYPED["Space"] if key == "Space" else key,
            "code": _code(key),
            "modifiers": bits,
            "windowsVirtualKeyCode": code,
        }
        if text:
            parameters |= {"text": text, "unmodifiedText": text}
        self._page.call("Input.dispatchKeyEvent", **parameters)


def _split(combination: str) -> list[str]:
    """Return the keys of a combination. Raises StepFailed if one of them is unknown."""
    parts = combination.strip().split("+") if len(combination) > 1 else [combination]
    if parts[-2:] == ["", ""]:
        parts[-2:] = ["+"]
    *held, key = parts
    unknown = [name for name in held if name not in _BITS]
    if unknown or (key not in _KEYS and len(key) != 1):
        names = ", ".join(name for name in _KEYS if name not in _MODIFIER_CODES)
        raise StepFailed(
            f"There is no key {combination[:50]!r}. Keys are single characters and {names}, "
            f"with {', '.join(MODIFIERS)} before them, like 'Control+a'."
        )
    return parts


def _bits(modifiers: Sequence[str]) -> int:
    return reduce(or_, (_BITS[name] for name in modifiers), 0)


def _code(key: str) -> str:
    if len(key) == 1 and key.isascii() and key.isalpha():
        return f"Key{key.upper()}"
    if key.isdigit() and key.isascii():
        return f"Digit{key}"
    return f"{key}Left" if key in _MODIFIER_CODES else key if len(key) > 1 else ""
