"""Renders a page's accessibility tree as text of limited length, with one line per element.

It is pure: nodes of DevTools in, lines out. Sources: the Accessibility domain of
https://chromedevtools.github.io/devtools-protocol/, and the form of such trees in BrowserGym.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .browser_text import plain_text

MAX_VISITS: Final = 200_000
"""Maximum number of nodes that are visited."""

MAX_NAME: Final = 300
"""Maximum length of an element's name in characters."""

MAX_TEXT_LINE: Final = 2_000
"""Maximum length of a text in characters."""

MAX_OPTIONS: Final = 30
"""Maximum number of options listed of a select element."""

MAX_PARTS: Final = 1_000
"""Maximum number of descendants of one node that are visited for its text."""

MAX_DEPTH: Final = 20
"""Maximum number of indentation steps; deeper lines are indented by as many."""

Node = Mapping[str, Any]

_NOTHING: Final = {"InlineTextBox", "LineBreak", "ListMarker", "MenuListPopup"}
"""Roles that are left out together with their descendants."""

_LEAVES: Final = {"Date", "DateTime", "InputTime", "ColorWell"}
"""Roles whose parts are not set one by one, and are therefore left out."""

_TEXT: Final = {"StaticText", "text"}
"""Roles of plain text."""

_PLAIN: Final = {"generic", "none", "presentation", "Section", "Pre", "LayoutTable", "LabelText",
                 "LayoutTableRow", "LayoutTableCell", "rowgroup"}  # fmt: skip
"""Roles without a meaning of their own, shown only if they have text or a name."""

_FLAGS: Final = ("focused", "disabled", "required", "multiselectable", "modal", "busy")
"""Boolean properties that are shown if true."""

_VALUES: Final = ("checked", "pressed", "expanded", "selected", "level", "valuemin", "valuemax")
"""Properties that are shown with their value."""


@dataclass(frozen=True)
class Frame:
    """The nodes of one frame.

    owner: backend id of its element in the parent frame; None for the top frame.
    """

    id: str
    owner: int | None
    nodes: Sequence[Node]


@dataclass
class Item:
    """A line of the tree.

    backend: the element's id for DevTools; None for plain text.
    """

    depth: int
    frame: str
    backend: int | None
    text: str


def tree_items(frames: Sequence[Frame]) -> list[Item]:
    """Return the lines of the page, with inner frames at the places of their elements."""
    inside = {frame.owner: frame for frame in frames if frame.owner is not None}
    top = next((frame for frame in frames if frame.owner is None), None)
    items: list[Item] = []
    if top is None or not top.nodes:
        return items
    nodes_by_id = {frame.id: {str(n.get("nodeId")): n for n in frame.nodes} for frame in frames}
    stack: list[tuple[str, Node, int]] = [(top.id, top.nodes[0], 0)]
    visited: set[int] = set()
    while stack and len(visited) < MAX_VISITS:
        frame, node, depth = stack.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        below = _add(items, frame, node, depth, nodes_by_id[frame])
        if below < 0:
            continue
        children = [(frame, child, below) for child in _children(node, nodes_by_id[frame])]
        within = inside.pop(node.get("backendDOMNodeId", 0), None)
        if within and within.nodes:
            children.append((within.id, within.nodes[0], below))
        stack.extend(reversed(children))
    return items


def shown_lines(
    items: Sequence[Item], first: int, max_characters: int, bid_of: Callable[[str, int], str]
) -> str:
    """Return the lines from number `first` on, and how many are left out.

    The lines have up to `max_characters` characters.

    bid_of: returns the id of an element; called only for lines that are shown.
    """
    lines: list[str] = []
    size = 0
    for item in items[first:]:
        mark = f"[{bid_of(item.frame, item.backend)}] " if item.backend is not None else ""
        line = f"{'  ' * min(item.depth, MAX_DEPTH)}{mark}{item.text}"
        size += len(line) + 1
        if size > max_characters and lines:
            break
        lines.append(line)
    hidden_count = len(items) - first - len(lines)
    if first:
        lines.insert(0, f"[... {first} lines before this one are not shown: scroll up ...]")
    if hidden_count:
        lines.append(f"[... {hidden_count} more lines are not shown: scroll down to see them ...]")
    return "\n".join(lines)


def _add(
    items: list[Item], frame: str, node: Node, depth: int, nodes_by_id: Mapping[str, Node]
) -> int:
    """Add the node's line, if it gets one, and return the depth of its children.

    -1 means that the children are not shown.
    """
    role = _role(node)
    if node.get("ignored"):
        return depth
    if role in _NOTHING:
        return -1
    if role in _TEXT:
        _add_text(items, frame, depth, plain_text(_field(node, "name"), MAX_TEXT_LINE))
        return -1
    name = plain_text(_field(node, "name"), MAX_NAME)
    properties = _properties(node)
    text = _own_text(node, nodes_by_id)
    backend = node.get("backendDOMNodeId") if depth else None
    if not name and text is None and role in _PLAIN and not _acts(properties):
        return depth
    facts = _facts(node, role, properties, name)
    options = _options(node, nodes_by_id) if role in ("combobox", "PopupButton") else ""
    label = name or plain_text(text or "", MAX_TEXT_LINE)
    if not label and not facts and role in _PLAIN:
        return -1
    parts = [f"{role} {label!r}" if label else role, *facts]
    items.append(Item(depth, frame, backend, ", ".join(parts) + options))
    if options or role in _LEAVES or properties.get("editable") == "plaintext":
        return -1
    if text is not None and (not name or _squeezed(text) in _squeezed(name)):
        return -1
    return depth + 1


def _add_text(items: list[Item], frame: str, depth: int, text: str) -> None:
    if not text or not any(character.isprintable() for character in text):
        return
    items.append(Item(depth, frame, None, f"StaticText {text!r}"))


def _own_text(node: Node, nodes_by_id: Mapping[str, Node]) -> str | None:
    """Return the text of a node that contains nothing but text; None for any other node."""
    parts: list[str] = []
    stack = list(reversed(_children(node, nodes_by_id)))
    size = 0
    for _ in range(MAX_PARTS):
        if not stack:
            break
        child = stack.pop()
        role = _role(child)
        if child.get("ignored"):
            stack.extend(reversed(_children(child, nodes_by_id)))
        elif role in _TEXT:
            parts.append(_field(child, "name")[:MAX_TEXT_LINE])
            size += len(parts[-1])
        elif role == "LineBreak":
            parts.append(" ")
        elif role not in _NOTHING:
            return None
        if size > 2 * MAX_TEXT_LINE:
            break
    return "".join(parts) if parts else None


def _options(node: Node, nodes_by_id: Mapping[str, Node]) -> str:
    """Return the options of a closed list as text."""
    names: list[str] = []
    stack = list(reversed(_children(node, nodes_by_id)))
    for _ in range(MAX_PARTS):
        if not stack or len(names) > MAX_OPTIONS:
            break
        child = stack.pop()
        if _role(child) in ("option", "MenuListOption"):
            names.append(repr(plain_text(_field(child, "name"), 80)))
        elif _role(child) in ("MenuListPopup", "group") or child.get("ignored"):
            stack.extend(reversed(_children(child, nodes_by_id)))
    if not names:
        return ""
    more = ", ..." if len(names) > MAX_OPTIONS else ""
    return f", options=[{', '.join(names[:MAX_OPTIONS])}{more}]"


def _facts(node: Node, role: str, properties: Mapping[str, Any], name: str) -> list[str]:
    facts = []
    value = _field(node, "value")
    if value and value != name:
        facts.append(f"value={plain_text(value, MAX_NAME)!r}")
    for flag in _FLAGS:
        if properties.get(flag) is True and not (flag == "focused" and role == "RootWebArea"):
            facts.append(flag)
    for key in _VALUES:
        found = properties.get(key)
        if found is None or (key == "selected" and not found):
            continue
        facts.append(f"{key}={plain_text(str(found).lower(), 40)}")
    if properties.get("invalid") not in (None, "false"):
        facts.append("invalid")
    if properties.get("readonly") is True and properties.get("editable"):
        facts.append("readonly")
    description = plain_text(_field(node, "description"), MAX_NAME)
    if description and description != name:
        facts.append(f"description={description!r}")
    return facts


def _acts(properties: Mapping[str, Any]) -> bool:
    return bool(properties.get("focusable") or properties.get("editable") == "richtext")


def _properties(node: Node) -> dict[str, Any]:
    found = {}
    for item in node.get("properties") or ():
        value = item.get("value")
        found[str(item.get("name"))] = value.get("value") if isinstance(value, dict) else None
    return found


def _children(node: Node, nodes_by_id: Mapping[str, Node]) -> list[Node]:
    return [nodes_by_id[id] for id in node.get("childIds") or () if id in nodes_by_id]


def _role(node: Node) -> str:
    return plain_text(_field(node, "role"), 40) or "generic"


def _field(node: Node, name: str) -> str:
    value = node.get(name)
    inner = value.get("value") if isinstance(value, dict) else None
    return "" if inner is None else str(inner)


def _squeezed(text: str) -> str:
    return "".join(text.split())
