"""Tests of the arguments and tags of LocAgent's tools."""

import pytest

from resolver.agents.tools.calls import parse_action
from resolver.events import actions as a
from resolver.models.run import CodePlace


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
