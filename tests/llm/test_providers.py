"""Tests of each provider's protocol over a real connection, plain and streamed."""

import dataclasses
import json
from typing import Any

import pytest

from resolver.errors import ContextWindowExceeded, ModelAuthError
from resolver.llm.base import THINKING
from resolver.models.run import Completion, Tokens
from tests.llm.conftest import HELLO, KEY, TOOLS, Build
from tests.parts.model_endpoint import (
    Answer,
    ModelEndpoint,
    Usage,
    error,
    reply,
    tool_calls,
)

CHAT = "openai/gpt-4o"
RESPONSES = "openai/responses/gpt-5"
CLAUDE = "anthropic/claude-sonnet-4-5"
GEMINI = "gemini/gemini-2.5-pro"
OLLAMA = "ollama_chat/llama3.1"
BEDROCK = "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
AZURE = "azure/gpt-4o"
VERTEX = "vertex_ai/gemini-2.5-pro"
VERTEX_CLAUDE = "vertex_ai/claude-sonnet-4-5"
AZURE_RESPONSES = "azure/responses/gpt-5"
ALL = (CHAT, RESPONSES, CLAUDE, GEMINI, OLLAMA, AZURE, BEDROCK, VERTEX)

every_way = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
every_provider = pytest.mark.parametrize("name", ALL)
every_provider_and_way = pytest.mark.parametrize(
    ("name", "stream"),
    [*((name, False) for name in ALL), (CHAT, True), (CLAUDE, True)],
)
"""Streamed replies of the others are litellm's to read: it joins the pieces for all alike."""


def history(completion: Completion, *results: str) -> list[dict[str, Any]]:
    """Return the conversation after a reply."""
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
        for c in completion.tool_calls
    ]
    said = {"role": "assistant", "content": completion.text, "tool_calls": calls}
    actual = [
        {"role": "tool", "tool_call_id": call["id"], "content": result}
        for call, result in zip(calls, results, strict=True)
    ]
    reasoning = completion.own_reasoning
    thinking = {THINKING: list(reasoning)} if reasoning else {}
    return [*HELLO, {**said, **thinking}, *actual]


def two_calls(**more: Any) -> Answer:
    calls = tool_calls(
        [("execute_bash", {"command": "ls"}), ("execute_bash", {"command": "pwd"})], text="I look."
    )
    return dataclasses.replace(calls, **more)


@every_provider_and_way
def test_text_and_tokens_arrive_completely(
    model_endpoint: ModelEndpoint, asked: Build, name: str, stream: bool
) -> None:
    text = "Bonjour, ça va? 🙂\nBien."
    model_endpoint.script(reply(text, usage=Usage(prompt=1000, completion=50, cached=800)))
    completion = asked(name, stream=stream).model.complete(HELLO)
    assert (completion.text, completion.finish_reason, completion.model) == (text, "stop", name)
    assert len(model_endpoint.requests) == 1
    cached = 0 if name == OLLAMA else 800
    assert completion.tokens == Tokens(input=1000, output=50, cached=cached)
    assert (completion.cost is not None) or name == OLLAMA


@every_provider_and_way
def test_tool_calls_arrive_in_order_and_their_results_are_in_the_next_request(
    model_endpoint: ModelEndpoint, asked: Build, name: str, stream: bool
) -> None:
    model_endpoint.script(two_calls(), reply("done"))
    model = asked(name, stream=stream).model
    first = model.complete(HELLO, TOOLS)
    assert first.text == "I look."
    given = [(call.name, json.loads(call.arguments)) for call in first.tool_calls]
    assert given == [("execute_bash", {"command": "ls"}), ("execute_bash", {"command": "pwd"})]
    assert len({call.id for call in first.tool_calls} - {""}) == 2
    assert model.complete(history(first, "a.py", "/work"), TOOLS).text == "done"
    sent = json.dumps(model_endpoint.requests[1].body)
    assert -1 < sent.index("I look.") < sent.index("a.py") < sent.index("/work")


@pytest.mark.parametrize(("name", "stream"), [(CHAT, False), (CLAUDE, True)])
def test_a_reply_that_was_cut_off_is_requested_again(
    model_endpoint: ModelEndpoint, asked: Build, name: str, stream: bool
) -> None:
    model_endpoint.script(reply("half a fi", finish_reason="length"), reply("shorter"))
    built = asked(name, stream=stream)
    assert built.model.complete(HELLO).text == "shorter"
    assert [reason for _, _, reason in built.retries] == [
        "the reply was cut off at the model's output limit"
    ]


@every_provider_and_way
def test_a_rate_limit_is_waited_for_as_requested_and_a_rejected_key_ends_the_call(
    model_endpoint: ModelEndpoint, asked: Build, name: str, stream: bool
) -> None:
    """Statuses and headers of errors arrive through litellm's code for each provider."""
    model_endpoint.script(error(429, "slow down", retry_after=7), error(401, "bad key"))
    built = asked(name, stream=stream)
    with pytest.raises(ModelAuthError) as raised:
        built.model.complete(HELLO)
    assert "LLM_API_KEY" in raised.value.next_step
    assert built.waits == [7.0]


@every_provider
def test_a_conversation_that_is_too_long_is_a_separate_error(
    model_endpoint: ModelEndpoint, asked: Build, name: str
) -> None:
    model_endpoint.script(error(400, "prompt is too long: 250000 tokens > 200000 maximum"))
    with pytest.raises(ContextWindowExceeded):
        asked(name).model.complete(HELLO)


@pytest.mark.parametrize("name", [CHAT, CLAUDE])
def test_an_interrupted_stream_is_requested_again(
    model_endpoint: ModelEndpoint, asked: Build, name: str
) -> None:
    broken = dataclasses.replace(reply("never seen whole"), cut_after=60)
    model_endpoint.script(broken, reply("whole"))
    built = asked(name, stream=True)
    assert built.model.complete(HELLO).text == "whole"
    assert len(built.retries) == 1


@pytest.mark.attack
@every_way
def test_without_usable_counts_the_cost_is_estimated(
    model_endpoint: ModelEndpoint, asked: Build, stream: bool
) -> None:
    """The model endpoint reports no or negative numbers of tokens: the cost is estimated from the
    texts."""
    question = [{"role": "user", "content": "x" * 30_000}]
    usages = (Usage(prompt=0, completion=0), Usage(prompt=-5, completion=-5), Usage(10_000, 1_000))
    model_endpoint.script(*(reply("y" * 3_000, usage=usage) for usage in usages))
    model = asked("gpt-4o", stream=stream).model
    absent, negative, reported = (model.complete(question) for _ in usages)
    assert absent.tokens == negative.tokens == Tokens()
    assert absent.is_cost_estimated and negative.is_cost_estimated
    assert not reported.is_cost_estimated
    assert absent.cost == negative.cost == reported.cost


THOUGHTS = {"thinking": "The parser\nfirst.", "signature": "EqQBCgIYAhIM+/=="}
CLAUDES = {"type": "thinking", **THOUGHTS}
BEDROCKS = {"text": THOUGHTS["thinking"], "signature": THOUGHTS["signature"]}


def contains(sent: Any, part: object) -> bool:
    """Return True if the request has this value anywhere."""
    inner = sent.values() if isinstance(sent, dict) else sent if isinstance(sent, list) else ()
    return bool(sent == part) or any(contains(value, part) for value in inner)


@pytest.mark.parametrize(
    ("name", "stream", "sent_back"),
    [
        (CLAUDE, False, CLAUDES),
        (CLAUDE, True, CLAUDES),
        (VERTEX_CLAUDE, False, CLAUDES),
        (VERTEX_CLAUDE, True, CLAUDES),
        (BEDROCK, False, {"reasoningText": BEDROCKS}),
        (RESPONSES, False, THOUGHTS["signature"]),
        (GEMINI, False, THOUGHTS["signature"]),
    ],
)
def test_signed_thoughts_are_sent_back_unchanged_with_their_calls(
    model_endpoint: ModelEndpoint, asked: Build, name: str, stream: bool, sent_back: object
) -> None:
    answer = two_calls(reasoning=THOUGHTS["thinking"], signature=THOUGHTS["signature"])
    model_endpoint.script(answer, reply("done"))
    model = asked(name, stream=stream, reasoning_effort="high").model
    first = model.complete(HELLO, TOOLS)
    assert [call.name for call in first.tool_calls] == ["execute_bash", "execute_bash"]
    assert model.complete(history(first, "a", "b"), TOOLS).text == "done"
    opening, second = (request.body for request in model_endpoint.requests)
    assert contains(second, sent_back) and not contains(opening, sent_back)
    if name == CLAUDE:
        assert first.reasoning == THOUGHTS["thinking"]
        assert opening["thinking"]["type"] == "enabled"


@pytest.mark.parametrize("name", [RESPONSES, AZURE_RESPONSES])
def test_the_responses_api_stores_nothing_and_seals_its_reasoning(
    model_endpoint: ModelEndpoint, asked: Build, name: str
) -> None:
    model_endpoint.script(reply("x"))
    model = asked(name, reasoning_effort="low", api_version="2025-04-01-preview").model
    model.complete(HELLO, TOOLS)
    (request,) = model_endpoint.requests
    assert request.body["store"] is False and request.body["reasoning"]["effort"] == "low"
    assert request.body["include"] == ["reasoning.encrypted_content"]
    if name == AZURE_RESPONSES:
        assert request.path == "/openai/responses?api-version=2025-04-01-preview"
        assert request.headers["api-key"] == KEY


def test_plain_reasoning_is_sent_back_to_the_model_that_wrote_it(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    """Some thinking models refuse calls of tools that come back without their reasoning."""
    model_endpoint.script(two_calls(reasoning="Look first."), reply("done"))
    built = asked("my-own-model")
    first = built.model.complete(HELLO, TOOLS)
    assert first.reasoning == "Look first."
    conversation = history(first, "a.py", "/workspace")
    built.model.complete(conversation, TOOLS)
    said = model_endpoint.requests[1].body["messages"][len(HELLO)]
    assert (said["role"], said["reasoning_content"]) == ("assistant", "Look first.")


def test_an_effort_reaches_a_model_that_litellm_does_not_know(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    model_endpoint.script(reply("x"))
    asked("gpt-oss-of-ours", reasoning_effort="high").model.complete(HELLO)
    assert model_endpoint.requests[0].body["reasoning_effort"] == "high"


def test_ollama_gets_a_context_that_fits_the_conversation(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    model_endpoint.script(reply("x"))
    asked(OLLAMA, seed=3, stop=["END"]).model.complete(HELLO)
    options = model_endpoint.requests[0].body["options"]
    assert (options["num_ctx"], options["seed"], options["stop"]) == (32_768, 3, ["END"])


@pytest.mark.parametrize("name", [CHAT, CLAUDE])
def test_a_picture_is_passed_on(model_endpoint: ModelEndpoint, asked: Build, name: str) -> None:
    picture = (
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwC"
        "AAAAC0lEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    )
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
    ]
    model_endpoint.script(reply("a dot"))
    asked(name).model.complete([{"role": "user", "content": content}])
    assert picture in json.dumps(model_endpoint.requests[0].body)


def test_bedrock_accepts_its_own_key(model_endpoint: ModelEndpoint, asked: Build) -> None:
    model_endpoint.script(reply("x"))
    asked(BEDROCK).model.complete(HELLO)
    (request,) = model_endpoint.requests
    assert request.path.startswith("/model/us.anthropic.claude-sonnet-4-5")
    assert request.path.endswith("/converse")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert {"cachePoint": {"type": "default"}} in request.body["system"]


def test_vertex_is_called_in_its_region_with_one_token(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    model_endpoint.script(reply("x"), reply("x"))
    model = asked(VERTEX).model
    model.complete(HELLO)
    model.complete(HELLO)
    first, second = model_endpoint.requests
    place = "/projects/calc/locations/europe-west1/publishers/google/models/gemini-2.5-pro"
    assert first.path.partition(":")[0].endswith(place)
    assert first.headers["authorization"] == second.headers["authorization"]
    assert first.headers["authorization"].startswith("Bearer ya29.")
    assert model_endpoint.tokens <= 1, "none where an earlier test's still holds"


def test_claude_at_vertex_is_called_in_its_region_with_cache_marks(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    model_endpoint.script(reply("x"))
    asked(VERTEX_CLAUDE).model.complete(HELLO)
    (request,) = model_endpoint.requests
    place = "/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5"
    assert place in request.path and "cache_control" in json.dumps(request.body)
