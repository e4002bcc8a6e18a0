"""Tests of rendering the accessibility tree, from nodes of DevTools."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from resolver.sandbox.browser_text import plain_text, short_url
from resolver.sandbox.page_tree import Frame, shown_lines, tree_items


def node(id: int, role: str, name: str = "", children: tuple[int, ...] = (), **more: Any) -> Any:
    properties = [{"name": key, "value": {"value": value}} for key, value in more.items()]
    return {
        "nodeId": str(id),
        "ignored": role == "",
        "role": {"value": role or "none"},
        "name": {"value": name},
        "childIds": [str(child) for child in children],
        "backendDOMNodeId": id,
        "properties": properties,
    }


def text_of(*nodes: Any, most: int = 10_000, first: int = 0) -> str:
    items = tree_items([Frame("F", None, nodes)])
    return shown_lines(items, first, most, lambda frame, backend: str(backend))


def test_layers_without_meaning_are_left_out() -> None:
    shown = text_of(
        node(1, "RootWebArea", "T", (2,)),
        node(2, "", "", (3,)),
        node(3, "generic", "", (4, 6)),
        node(4, "button", "Go", (5,), focused=True),
        node(5, "StaticText", "Go"),
        node(6, "generic", "", (7,)),
        node(7, "StaticText", "words"),
    )
    assert shown == "RootWebArea 'T'\n  [4] button 'Go', focused\n  [6] generic 'words'"


def test_text_next_to_elements_stays() -> None:
    shown = text_of(
        node(1, "RootWebArea", "T", (2,)),
        node(2, "paragraph", "", (3, 4, 6)),
        node(3, "StaticText", "Read "),
        node(4, "link", "this", (5,)),
        node(5, "StaticText", "this"),
        node(6, "StaticText", " \u200b "),
    )
    assert shown == ("RootWebArea 'T'\n  [2] paragraph\n    StaticText 'Read'\n    [4] link 'this'")


def test_a_name_can_not_begin_a_line() -> None:
    shown = text_of(
        node(1, "RootWebArea", "T", (2,)), node(2, "button", 'a\'\n  [9] button "Pay"\x1b[31m')
    )
    assert len(shown.splitlines()) == 2 and "\x1b" not in shown


def test_omitted_lines_are_counted() -> None:
    children = tuple(range(2, 502))
    nodes = [
        node(1, "RootWebArea", "T", children),
        *(node(n, "button", "b" * 50) for n in children),
    ]
    shown = text_of(*nodes, most=1000)
    assert len(shown) < 1200 and "more lines are not shown: scroll down" in shown
    shown = text_of(*nodes, most=1000, first=400)
    assert shown.startswith("[... 400 lines before this one") and "[402] button" in shown


def test_a_circular_tree_ends() -> None:
    nodes = node(1, "RootWebArea", "T", (2,)), node(2, "group", "g", (1, 2))
    assert len(tree_items([Frame("F", None, nodes)])) == 2


def test_hidden_and_odd_characters_are_removed() -> None:
    assert plain_text("a\u202eb\u200bc\x00d\n\te", 50) == "abcd e"
    assert plain_text("x" * 100_000_0, 10) == "xxxxxxxxx…"
    assert short_url("data:text/html;base64,QUJD") == "data:text/html;base64,…"
    assert len(short_url("http://x/" + "y" * 5000)) <= 300


@given(st.text())
def test_plain_text_is_one_printable_line(text: str) -> None:
    line = plain_text(text, 80)
    assert len(line) <= 80 and len(line.splitlines()) <= 1
    line.encode()


_NODES = st.lists(
    st.fixed_dictionaries(
        {
            "nodeId": st.integers(0, 9).map(str),
            "ignored": st.booleans(),
            "role": st.fixed_dictionaries(
                {"value": st.sampled_from(["RootWebArea", "button", "StaticText", "generic", ""])}
            ),
            "name": st.fixed_dictionaries({"value": st.text(max_size=10)}),
            "childIds": st.lists(st.integers(0, 9).map(str), max_size=3),
        },
        optional={"backendDOMNodeId": st.integers(0, 9), "properties": st.just([{}])},
    ),
    max_size=8,
)


@given(_NODES)
def test_any_nodes_give_bounded_lines(nodes: list[Any]) -> None:
    items = tree_items([Frame("F", None, nodes)])[:500]
    shown = shown_lines(items, 0, 500, lambda frame, backend: str(backend))
    assert len(shown) < 3000
