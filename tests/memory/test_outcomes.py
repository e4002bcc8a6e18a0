"""Tests of recognizing the lines of an output that say how a command ended."""

from hypothesis import given
from hypothesis import strategies as st

from resolver.memory.facts import command_outcome


def test_the_outcome_has_the_failures_and_the_last_line() -> None:
    output = (
        ".F.\nE   assert 1 == 2\nnoise\nFAILED t.py::x - assert\n\n1 failed, 2 passed in 0.1s\n"
    )
    assert command_outcome(output).split("\n") == [
        "E   assert 1 == 2", "FAILED t.py::x - assert", "1 failed, 2 passed in 0.1s",
    ]  # fmt: skip


def test_many_failures_are_counted() -> None:
    output = "\n".join(f"FAILED t.py::x{n}" for n in range(40)) + "\n40 failed"
    text = command_outcome(output)
    assert "t.py::x5" in text and "t.py::x6\n" not in text
    assert "(and 34 more such lines)" in text and text.endswith("40 failed")


@given(st.text(max_size=300))
def test_any_output_is_parsed(text: str) -> None:
    assert len(command_outcome(text)) <= 600
