"""Tests of changes to messages for Anthropic's models."""

from typing import Any

import pytest

from resolver.llm.request import is_anthropic, with_cache_marks, without_empty_texts

MARK = {"type": "ephemeral"}


def conversation(steps: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You fix issues."},
        {"role": "user", "content": "Fix it."},
    ]
    for step in range(steps):
        messages.append({"role": "assistant", "content": f"step {step}"})
        messages.append({"role": "tool", "tool_call_id": f"c{step}", "content": f"out {step}"})
    return messages


def marked(messages: list[dict[str, Any]]) -> list[int]:
    return [
        i for i, message in enumerate(with_cache_marks(messages)) if "ephemeral" in str(message)
    ]


@pytest.mark.parametrize(
    ("model", "wants"),
    [
        ("anthropic/claude-sonnet-4-5", True),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("bedrock/meta.llama3-70b-instruct-v1:0", False),
        ("openai/gpt-4o", False),
        ("openai/anthropic-like", False),
        ("gemini/gemini-2.5-pro", False),
        ("gpt-4o", False),
    ],
)
def test_only_anthropics_models_get_cache_marks(model: str, wants: bool) -> None:
    assert is_anthropic(model) is wants


def test_the_system_message_and_the_last_two_inputs_are_marked() -> None:
    assert marked(conversation(3)) == [0, 5, 7]
    assert marked(conversation(0)) == [0, 1]


def test_only_the_last_block_of_a_message_is_marked() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    (message,) = with_cache_marks([{"role": "user", "content": blocks}])
    assert message["content"] == [blocks[0], {**blocks[1], "cache_control": MARK}]


def test_a_reply_of_tool_calls_alone_has_no_text() -> None:
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1"}]}
    words = {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "c2"}]}
    assert without_empty_texts([call, words]) == [{**call, "content": None}, words]
    assert call["content"] == ""
