"""Tests of failures between client and model, over a real socket."""

import pytest

from resolver.errors import ContextWindowExceeded, ModelAuthError, ModelError
from tests.llm.conftest import HELLO, KEY, TOOLS, Build
from tests.parts.model_endpoint import (
    ModelEndpoint,
    cut_connection,
    drip,
    error,
    garbage,
    html,
    raw,
    redirect,
    reply,
)

# One for each way that litellm takes to an endpoint.
EACH_PATH = pytest.mark.parametrize(
    "name", ["gpt-4o", "my-own-model", "anthropic/claude-sonnet-4-5", "azure/gpt-4o"]
)
# What is no error of HTTP, and what litellm makes of it; statuses are in test_failure_texts.py.
TRANSIENT = {
    "server error": error(500),
    "a web page as an error": html(502),
    "connection cut before the answer": cut_connection(),
    "connection cut in the answer": cut_connection(5),
    "garbage": garbage(),
    "a web page": html(),
    "an empty body": raw(b""),
    "null": raw(b"null"),
    "no choices": raw(b'{"id": "x"}'),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("gpt-4o", kind) for kind in TRANSIENT),
        *(("anthropic/claude-sonnet-4-5", kind) for kind in ("garbage", "null", "no choices")),
    ],
)
def test_a_transient_failure_is_retried(
    model_endpoint: ModelEndpoint, asked: Build, name: str, kind: str
) -> None:
    model_endpoint.script(TRANSIENT[kind], reply("at last"))
    built = asked(name)
    assert built.model.complete(HELLO, TOOLS).text == "at last"
    assert built.waits == [1.0]
    assert [(attempt, wait) for attempt, wait, _ in built.retries] == [(1, 1.0)]
    assert model_endpoint.requests[0].body == model_endpoint.requests[1].body


def test_retry_after_is_bounded(model_endpoint: ModelEndpoint, asked: Build) -> None:
    model_endpoint.script(error(429, retry_after=86_400), reply("at last"))
    built = asked()
    built.model.complete(HELLO)
    assert built.waits == [120.0]


def test_waits_grow_up_to_a_maximum(model_endpoint: ModelEndpoint, asked: Build) -> None:
    model_endpoint.script(*[error(500)] * 8, reply("at last"))
    built = asked(num_retries=8)
    built.model.complete(HELLO)
    assert built.waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


def test_the_number_of_attempts_is_limited(model_endpoint: ModelEndpoint, asked: Build) -> None:
    model_endpoint.answer_with(lambda _: error(500, "still broken"))
    built = asked(num_retries=3)
    with pytest.raises(
        ModelError, match=r"no usable answer: still broken \(status 500\)"
    ) as caught:
        built.model.complete(HELLO)
    assert len(model_endpoint.requests) == 4
    assert len(built.retries) == 3
    assert "LLM_BASE_URL" in caught.value.next_step


def test_a_missing_key_is_said_to_be_missing(model_endpoint: ModelEndpoint, asked: Build) -> None:
    model_endpoint.script(error(401, "no key"))
    with pytest.raises(ModelAuthError, match="none is set") as caught:
        asked(api_key=None).model.complete(HELLO)
    assert caught.value.next_step == "set LLM_API_KEY"


def test_a_name_without_provider_and_base_url_says_how_to_name_it(asked: Build) -> None:
    with pytest.raises(ModelError, match="names no known provider") as caught:
        asked("my-own-model", base_url=None).model.complete(HELLO)
    assert "openai/NAME" in caught.value.next_step


@EACH_PATH
def test_a_response_that_takes_too_long_is_abandoned(
    model_endpoint: ModelEndpoint, asked: Build, name: str
) -> None:
    model_endpoint.script(drip(0.02))
    built = asked(name, timeout=0.15, num_retries=0)
    with pytest.raises(ModelError, match=r"no complete answer within 0\.15 seconds"):
        built.model.complete(HELLO)


@EACH_PATH
def test_neither_key_nor_conversation_follow_a_redirect(
    model_endpoint: ModelEndpoint, asked: Build, name: str
) -> None:
    with ModelEndpoint() as other:
        other.answer_with(lambda _: reply("stolen"))
        model_endpoint.script(redirect(f"{other.url}/chat/completions", 307))
        with pytest.raises(ModelError, match="redirects") as caught:
            asked(name).model.complete(HELLO)
        assert other.requests == []
        assert other.url in caught.value.what


def test_a_password_in_the_base_url_is_not_shown(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    url = model_endpoint.url.replace("http://", "http://user:hunter2@")
    model_endpoint.script(error(404, "no such model"))
    with pytest.raises(ModelError) as caught:
        asked(base_url=url).model.complete(HELLO)
    assert "hunter2" not in caught.value.what


@EACH_PATH
def test_a_key_repeated_by_the_endpoint_is_not_shown(
    model_endpoint: ModelEndpoint, asked: Build, name: str
) -> None:
    model_endpoint.answer_with(lambda _: error(500, f"bad {KEY} in {KEY[:4]}{KEY[4:]}"))
    built = asked(name, num_retries=1)
    with pytest.raises(ModelError) as caught:
        built.model.complete(HELLO)
    assert KEY not in repr(caught.value) + caught.value.what + caught.value.next_step
    assert KEY not in repr(built.retries)


def test_the_error_carries_nothing_of_litellm_with_it(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    model_endpoint.script(error(401, f"bad {KEY}"))
    with pytest.raises(ModelAuthError) as caught:
        asked().model.complete(HELLO)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_prompt_larger_than_the_window_is_refused_before_the_call_with_both_numbers(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    long = [{"role": "user", "content": "x" * 6 * 200_000}]
    with pytest.raises(ContextWindowExceeded, match=r"at least 200,0.. tokens.*128,000") as caught:
        asked("gpt-4o").model.complete(long)
    assert caught.value.max_tokens == 128_000 and model_endpoint.requests == []


def picture(name: str) -> dict[str, object]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{name}"}}


def test_a_picture_that_the_endpoint_cannot_process_is_taken_out(
    model_endpoint: ModelEndpoint, asked: Build
) -> None:
    """The newest picture is the one that just came; an older one has been processed before."""
    first = {"role": "user", "content": [{"type": "text", "text": "one"}, picture("AAAA")]}
    second = {"role": "user", "content": [{"type": "text", "text": "two"}, picture("BBBB")]}
    model_endpoint.script(error(400, "Could not process image"), reply("a cat"), reply("again"))
    built = asked("gpt-4o")
    assert built.model.complete([first, second]).text == "a cat"
    built.model.complete([first, second])
    refused, *later = [str(request.body["messages"]) for request in model_endpoint.requests]
    assert "AAAA" in refused and "BBBB" in refused
    for sent in later:  # the next call does not try it again
        assert "AAAA" in sent and "BBBB" not in sent and "could not process it" in sent
    assert len(built.retries) == 1
