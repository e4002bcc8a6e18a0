"""Tests of the arguments and tags of LocAgent's tools."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.agents.tags import parse_tags, write_tags
from resolver.agents.tools.calls import parse_action
from resolver.events import actions as a
from resolver.models.run import CodePlace

WORDS = st.text(max_size=30).filter(lambda text: text.strip() == text)
PLACES = st.builds(
    lambda path, start, more, symbol, why: CodePlace(
        path=path, start=start, end=None if start is None else start + more, symbol=symbol, why=why
    ),
    WORDS.filter(lambda path: path and not path.startswith("./")),
    st.none() | st.integers(1, 9999),
    st.integers(0, 50),
    WORDS,
    st.text(max_size=30),
)
TERMS = st.lists(st.text(min_size=1, max_size=30).filter(str.strip), min_size=1, max_size=8)


@given(TERMS, WORDS.filter(lambda path: not path.startswith("./")))
def test_any_search_survives_the_tags(terms: list[str], path: str) -> None:
    action = a.CodeSearch(terms=tuple(terms), path=path)
    assert parse_tags(write_tags(action)) == (action,)


@given(
    TERMS.map(lambda starts: tuple(starts[:5])),
    st.sampled_from(["upstream", "downstream", "both"]),
    st.integers(1, 5),
    st.lists(st.sampled_from(["contains", "calls", "inherits"]), max_size=3),
)
def test_any_walk_survives_the_tags(
    start: tuple[str, ...], direction: str, depth: int, edges: list[str]
) -> None:
    action = a.CodeExplore(start=start, direction=direction, depth=depth, edges=tuple(edges))
    assert parse_tags(write_tags(action)) == (action,)


@given(st.text(max_size=60), st.lists(PLACES, min_size=1, max_size=5), st.booleans())
def test_any_report_survives_the_tags(message: str, places: list[CodePlace], done: bool) -> None:
    action = a.Finish(message=message, places=tuple(places), task_completed=done)
    assert parse_tags(write_tags(action)) == (action,)


def test_a_place_is_parsed_from_json_text() -> None:
    text = '[{"path": "./src/a.py", "start": 3, "symbol": "parse", "why": "w", "known": false}]'
    action = parse_action("report_places", {"message": "m", "places": text})
    assert isinstance(action, a.Finish)
    assert action.places == (CodePlace(path="src/a.py", start=3, end=3, symbol="parse", why="w"),)


@pytest.mark.parametrize(
    "arguments",
    [
        {"terms": ["f", "g"]},
        {"terms": "f\ng"},
        {"terms": '["f", "g"]'},
        {"terms": ["f", "", "g"], "path": None},
    ],
)
def test_search_terms_are_accepted_in_the_forms_that_models_write(
    arguments: dict[str, object],
) -> None:
    assert parse_action("search_code", arguments) == a.CodeSearch(terms=("f", "g"))


def test_edges_are_accepted_as_text() -> None:
    action = parse_action("explore_code", {"start": "f", "edges": "Calls, inherits"})
    assert isinstance(action, a.CodeExplore)
    assert action.edges == ("calls", "inherits")


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("search_code", {"terms": []}, "terms"),
        ("search_code", {"terms": [""] * 3}, "terms"),
        ("search_code", {"terms": ["x"] * 9}, "at most 8"),
        ("explore_code", {"start": ["a"], "depth": 9}, "depth"),
        ("explore_code", {"start": ["a"], "direction": "sideways"}, "direction"),
        ("explore_code", {"start": ["a"], "edges": ["loves"]}, "edges"),
        ("report_places", {"message": "m", "places": []}, "places is empty"),
        ("report_places", {"message": "m", "places": [{"path": "a", "start": 9, "end": 3}]},
         "line 3 is before line 9"),
        ("report_places", {"message": "m", "places": [{"why": "x"}]}, "places"),
        ("report_places", {"message": "m", "places": "src/a.py:3"}, "a JSON list"),
        ("report_places", {"message": "m", "places": 7}, "places"),
    ],
)  # fmt: skip
def test_wrong_code_arguments_are_explained(
    tool: str, arguments: dict[str, object], says: str
) -> None:
    problems = parse_action(tool, arguments)
    assert isinstance(problems, tuple)
    assert any(says in problem for problem in problems)


@given(
    st.sampled_from(["search_code", "explore_code", "report_places"]),
    st.dictionaries(
        st.sampled_from(["terms", "path", "start", "direction", "depth", "edges", "places"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=12),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["path", "start", "end", "why"]), inner, max_size=3
                )
            ),
            max_leaves=6,
        ),
    ),
)
def test_any_code_arguments_give_an_action_or_an_explanation(
    tool: str, arguments: dict[str, object]
) -> None:
    outcome = parse_action(tool, {"message": "m", **arguments} if "places" in tool else arguments)
    assert outcome
    if not isinstance(outcome, tuple):
        assert json.loads(outcome.model_dump_json())
