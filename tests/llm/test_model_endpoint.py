"""Tests of the scripted endpoint itself, for features that other tests of llm don't use."""

import json

import httpx

from tests.parts.model_endpoint import ModelEndpoint, Usage, reply, tool_call

ASK = {"model": "m", "messages": [], "stream": True}


def chunks(endpoint: ModelEndpoint) -> list[dict[str, object]]:
    answer = httpx.post(f"{endpoint.url}/chat/completions", json=ASK)
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def test_a_response_is_streamed_if_requested(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.script(reply("one\ntwo", usage=Usage(7, 3, 2)))
    text = ""
    for chunk in chunks(model_endpoint):
        for choice in chunk["choices"]:  # type: ignore[attr-defined]
            text += choice["delta"].get("content", "")
    assert text == "one\ntwo"


def test_a_streamed_tool_call_has_its_index(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.script(tool_call("execute_bash", {"command": "ls"}))
    first = chunks(model_endpoint)[0]
    call = first["choices"][0]["delta"]["tool_calls"][0]  # type: ignore[index]
    assert (call["index"], call["function"]["name"]) == (0, "execute_bash")


def test_a_request_beyond_the_script_is_refused(model_endpoint: ModelEndpoint) -> None:
    answer = httpx.post(model_endpoint.url, json={})
    assert answer.status_code == 400
    assert "no further answer" in answer.text


def test_a_reply_can_be_computed_from_the_request(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.answer_with(lambda body: reply(body["model"].upper()))
    answer = httpx.post(model_endpoint.url, json={"model": "abc"})
    assert answer.json()["choices"][0]["message"]["content"] == "ABC"
