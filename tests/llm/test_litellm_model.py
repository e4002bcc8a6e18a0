"""Tests of requests and replies through litellm, over a real socket."""

import copy
import json
from typing import Any

import pytest

from resolver.models.run import RequestedToolCall, Tokens
from tests.llm.conftest import HELLO, KEY, TOOLS, Build
from tests.parts.model_endpoint import (
    ModelEndpoint,
    Usage,
    empty,
    raw,
    reply,
    tool_call,
)


def chat(content: dict[str, Any], **more: Any) -> bytes:
    message = {"role": "assistant", **content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    return json.dumps({**body, "choices": [choice], **more}).encode()


def test_messages_and_tools_are_sent_as_given(model_endpoint: ModelEndpoint, asked: Build) -> None:
    messages = [
        *HELLO,
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {
                    "id": "call_a",
                    "type": "function",
                    "function": {"name": "execute_bash", "arguments": '{"command": "ls"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_a", "content": "a.py\n\tb.py  "},
    ]
    before = copy.deepcopy(messages)
    model_endpoint.script(reply("seen"))
    asked().model.complete(messages, TOOLS)
    sent = model_endpoint.requests[0].body
    assert sent["messages"] == before
    assert sent["tools"] == TOOLS
    assert messages == before


@pytest.mark.parametrize("arguments", ['{"command": "ls"}', '{"command": ', "", "no json ☃"])
def test_arguments_of_a_tool_call_are_unchanged(
    model_endpoint: ModelEndpoint, asked: Build, arguments: str
) -> None:
    model_endpoint.script(tool_call("execute_bash", arguments, text="I look."))
    completion = asked().model.complete(HELLO, TOOLS)
    assert completion.text == "I look."
    assert completion.tool_calls == (
        RequestedToolCall(id="call_1", name="execute_bash", arguments=arguments),
    )


def test_tokens_and_cost_count_the_cached_ones(model_endpoint: ModelEndpoint, asked: Build) -> None:
    model_endpoint.script(reply("x", usage=Usage(prompt=1000, completion=50, cached=800)))
    completion = asked().model.complete(HELLO)
    assert completion.tokens == Tokens(input=1000, output=50, cached=800)
    # gpt-4o: 2.50, 1.25 (cached) and 10.00 dollars a million.
    assert completion.cost == pytest.approx(200 * 2.5e-6 + 800 * 1.25e-6 + 50 * 1e-5)


def test_the_cost_of_an_unknown_model_is_unknown(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    model_endpoint.script(reply("x"), reply("x"), raw(chat({"content": "x"})))
    for name in ("my-own-model", "anthropic/claude-of-2031", "my-own-model"):
        completion = asked(name).model.complete(HELLO)
        assert (completion.cost, completion.is_cost_estimated) == (None, False)


def test_an_unknown_model_costs_what_is_configured(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    model_endpoint.script(reply("x", usage=Usage(prompt=1000, completion=100)))
    model = asked("my-own-model", input_cost_per_token=1e-6, output_cost_per_token=1e-5).model
    assert model.complete(HELLO).cost == pytest.approx(0.002)
    assert model.price_of(Tokens(input=10, output=1)) == pytest.approx(2e-5)


def test_an_endpoint_can_not_lower_its_price_with_another_models_name(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0, "total_tokens": 1_000_000}
    model_endpoint.script(raw(chat({"content": "x"}, model="gpt-4o-mini", usage=usage)))
    assert asked().model.complete(HELLO).cost == pytest.approx(2.5, rel=1e-4)


def test_a_name_without_provider_at_a_base_url_uses_openais_api(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    model_endpoint.script(reply("x"), reply("x"))
    asked("qwen3-coder").model.complete(HELLO)
    asked("Qwen/Qwen3-Coder", base_url=model_endpoint.url).model.complete(HELLO)
    assert [r.path for r in model_endpoint.requests] == ["/v1/chat/completions"] * 2
    assert [r.body["model"] for r in model_endpoint.requests] == ["qwen3-coder", "Qwen/Qwen3-Coder"]


def test_the_key_is_sent_to_the_configured_endpoint(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    model_endpoint.script(reply("x"), reply("x"))
    asked().model.complete(HELLO)
    asked("anthropic/claude-sonnet-4-5").model.complete(HELLO)
    assert model_endpoint.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert model_endpoint.requests[1].headers["x-api-key"] == KEY


def test_an_unsupported_temperature_is_left_out(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    model_endpoint.script(reply("x"))
    asked("o3", temperature=0.3).model.complete(HELLO)
    assert "temperature" not in model_endpoint.requests[0].body


@pytest.mark.parametrize(
    ("name", "takes_tools"),
    [
        ("gpt-4o", True),
        ("anthropic/claude-sonnet-4-5", True),
        ("gpt-3.5-turbo-16k", False),  # litellm knows it, without tools
        ("my-own-model", True),
        ("ollama_chat/my-own-model", False),
    ],
)
def test_whether_a_model_takes_tools(asked: Build, name: str, takes_tools: bool) -> None:
    assert asked(name).model.supports_tools is takes_tools


def test_an_empty_reply_is_requested_once_more_with_a_hint(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    model_endpoint.script(empty(), tool_call("execute_bash", {"command": "ls"}))
    built = asked()
    completion = built.model.complete(HELLO, TOOLS)
    assert completion.tool_calls[0].name == "execute_bash"
    *before, sent = model_endpoint.requests[1].body["messages"]
    assert before == HELLO[:-1] and sent["role"] == "user", "roles alternate"
    assert sent["content"].startswith(HELLO[-1]["content"]) and "empty" in sent["content"]
    assert built.retries == [(1, 0.0, "the reply was empty")]


def test_leftovers_of_the_harmony_format_are_no_part_of_a_tools_name(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    model_endpoint.script(tool_call("execute_bash<|channel|>commentary", {"command": "ls"}))
    completion = asked().model.complete(HELLO, TOOLS)
    assert [call.name for call in completion.tool_calls] == ["execute_bash"]


def test_both_replies_are_paid_for(model_endpoint: ModelEndpoint, asked: Build) -> None:
    usage = Usage(prompt=100, completion=10, cached=20)
    model_endpoint.usage = usage
    model_endpoint.script(empty(), reply("x"), reply("y"))
    model = asked().model
    twice, once = model.complete(HELLO), model.complete(HELLO)
    assert twice.tokens == Tokens(input=200, output=20, cached=40)
    assert once.cost is not None
    assert twice.cost == pytest.approx(2 * once.cost)


def test_a_reply_that_stays_cut_off_is_returned_as_such(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    cut = reply("half", finish_reason="length")
    model_endpoint.script(cut, cut)
    assert asked().model.complete(HELLO).finish_reason == "length"
