"""Tests of the model that repeats a recording."""

import pytest

from resolver.errors import ReplayExhausted
from resolver.llm.base import RecordedModel
from resolver.llm.replay import ReplayModel
from resolver.models.run import Completion, Tokens

RECORDED = [
    Completion(model="gpt-4o", text=text, tokens=Tokens(input=10, output=2), cost=0.5, latency=3.0)
    for text in ("one", "two")
]


@pytest.mark.parametrize(("count", "words"), [(0, "0 model replies"), (1, "1 model reply ")])
def test_an_exhausted_recording_is_reported(count: int, words: str) -> None:
    model = ReplayModel(RECORDED[:count])
    for _ in range(count):
        model.complete([])
    with pytest.raises(ReplayExhausted, match=words) as caught:
        model.complete([])
    assert "event log" in caught.value.next_step


def test_a_recorded_models_replies_are_reported_before_they_are_used() -> None:
    reported: list[Completion] = []
    model = RecordedModel(ReplayModel(RECORDED, supports_tools=False), reported.append)
    assert model.complete([]) is reported[0]
    assert (model.name, model.supports_tools) == ("replay", False)
