"""Tests of the model with scripted replies."""

import json
from pathlib import Path

import pytest

from resolver.errors import ReplayExhausted, UsageError
from resolver.llm.replay import scripted_models

SCRIPT = """
- text: I look.
  calls:
    - execute_bash: {command: ls}
    - think: {thought: "so"}
- Done.
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "script.yml"
    path.write_text(text)
    return path


def test_replies_come_in_order_with_calls_and_ids(tmp_path: Path) -> None:
    model = scripted_models(written(tmp_path, SCRIPT), "scripted:script.yml", "agent")["agent"]
    first, second = model.complete([]), model.complete([])
    assert first.text == "I look."
    assert [(c.id, c.name) for c in first.tool_calls] == [
        ("call_0_0", "execute_bash"),
        ("call_0_1", "think"),
    ]
    assert json.loads(first.tool_calls[0].arguments) == {"command": "ls"}
    assert (second.text, second.cost) == ("Done.", 0.0)
    with pytest.raises(ReplayExhausted):
        model.complete([])


def test_a_script_without_calls_is_in_tags(tmp_path: Path) -> None:
    path = written(tmp_path, "- <execute_bash>ls</execute_bash>\n")
    assert not scripted_models(path, "x", "agent")["agent"].supports_tools
    assert scripted_models(written(tmp_path, SCRIPT), "x", "agent")["agent"].supports_tools


@pytest.mark.parametrize(
    "text", ["", "a: 1", "- [1]", "- {txt: a}", "- {calls: [ls]}", "- 'x", "3"]
)
def test_an_invalid_script_is_reported_with_the_correct_form(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as raised:
        scripted_models(written(tmp_path, text), "x", "agent")["agent"]
    assert "script.yml" in raised.value.what
    assert "YAML list" in raised.value.next_step


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        scripted_models(tmp_path / "none.yml", "x", "agent")["agent"]
