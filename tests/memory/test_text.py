"""Tests of truncating text."""

import pytest

from resolver.events import observations as o
from resolver.events.base import ObservationBase
from resolver.memory.turns import observation_text
from resolver.models.truncate import truncate_middle


def test_the_note_counts_what_is_missing_and_hints() -> None:
    shown = truncate_middle("a" * 50 + "b" * 50, 20, "See x.")
    assert shown == "a" * 10 + "\n[... 80 characters left out. See x. ...]\n" + "b" * 10


@pytest.mark.parametrize(
    ("observation", "hint"),
    [
        (o.FileReadResult(path="a.py", content="x" * 500), "Read the rest with view_range."),
        (o.FileEditResult(path="a.py", diff="x" * 500), "View the file to see all of it."),
        (o.IPythonOutput(content="x" * 500), "Print less at a time."),
        (o.McpResult(content="x" * 500), "Ask for less at a time."),
        (o.CodeResult(content="x" * 500, commit="c"), "left out. ..."),
    ],
)
def test_a_truncated_observation_says_how_to_see_the_rest(
    observation: ObservationBase, hint: str
) -> None:
    assert hint in observation_text(observation, 200)
