"""Tests of the parameters of a call, and of changes to messages for single providers."""

from typing import Any

import pytest

from resolver.llm.base import THINKING, ModelConfig
from resolver.llm.request import is_anthropic, request_for, with_cache_marks, without_empty_texts
from resolver.models.run import REASONING_TEXT
from tests.llm.conftest import HELLO

CLAUDE = "anthropic/claude-sonnet-4-5"
OTHERS = ("openai/gpt-4o", "openai/responses/gpt-5", "gemini/gemini-2.5-pro", "ollama_chat/llama3")
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


def made(
    name: str,
    entry: dict[str, Any] | None = None,
    said: dict[str, Any] | None = None,
    **config: Any,
) -> dict[str, Any]:
    """The parameters of a call after a reply `said`; the model is named as litellm does."""
    messages = [*HELLO, {"role": "assistant", "content": "Yes.", **(said or {})}]
    return request_for(ModelConfig(model=name, **config), name, entry or {}, messages, None)


@pytest.mark.parametrize(
    ("name", "entry", "more"),
    [
        ("anthropic/claude-of-2031", {}, {"max_tokens": 32_000}),
        (CLAUDE, {"max_output_tokens": 64_000}, {"max_tokens": 64_000}),
        ("ollama/llama3", {}, {"num_ctx": 32_768}),
        ("openai/responses/gpt-4o", {}, {"store": False}),
        ("azure/responses/gpt-5", {"supports_reasoning": True},
         {"store": False, "include": ["reasoning.encrypted_content"]}),
        ("openai/gpt-4o", {"max_output_tokens": 16_000}, {}),
    ],
)  # fmt: skip
def test_a_request_has_what_its_provider_needs(
    name: str, entry: dict[str, Any], more: dict[str, Any]
) -> None:
    names = ("max_tokens", "num_ctx", "store", "include")
    request = made(name, entry)
    assert {key: request[key] for key in names if key in request} == more


@pytest.mark.parametrize(
    ("name", "effort", "is_sent"),
    [(CLAUDE, "low", False), ("vertex_ai/claude-x", "low", False), (CLAUDE, None, True),
     ("openai/gpt-4o", "low", True)],
)  # fmt: skip
def test_claude_gets_no_temperature_while_it_thinks(
    name: str, effort: str | None, is_sent: bool
) -> None:
    assert ("temperature" in made(name, reasoning_effort=effort, temperature=0.2)) is is_sent


def test_claude_does_not_think_after_calls_of_another_model() -> None:
    calls = {"tool_calls": [{"id": "c1", "function": {"name": "bash", "arguments": "{}"}}]}
    own = {**calls, THINKING: [{"type": "thinking", "thinking": "so", "signature": "s"}]}
    assert "reasoning_effort" not in made(CLAUDE, said=calls, reasoning_effort="high")
    assert "reasoning_effort" in made(CLAUDE, said=own, reasoning_effort="high")


def test_thoughts_are_not_sent_to_another_provider_or_model() -> None:
    signed = {"type": "thinking", "thinking": "secret plan", "signature": "sig"}
    plain = {"type": REASONING_TEXT, "text": "secret plan", "model": "m"}
    for name in OTHERS:
        assert "secret plan" not in str(made(name, said={THINKING: [signed, plain]})["messages"])
    assert "secret plan" not in str(made(CLAUDE, said={THINKING: [plain]})["messages"])
    assert "secret plan" in str(made(CLAUDE, said={THINKING: [signed]})["messages"])
    assert "secret plan" in str(made("m", said={THINKING: [plain]})["messages"])
