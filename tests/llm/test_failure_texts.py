"""Property tests of reading errors: any text and header give a short line without the key."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from resolver.errors import ContextWindowExceeded, ModelAuthError
from resolver.llm.base import ModelConfig
from resolver.llm.failures import model_failure_of, retry_after

KEY = "sk-canary-3f9a1b27c4d85e60"
CONFIG = ModelConfig(
    model="m", timeout=1.0, api_key=SecretStr(KEY), base_url="http://127.0.0.1:1/v1"
)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "3"}, 3.0),
        ({"retry-after": " 0.25 "}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e9"}, None),
        (
            {
                "Retry-After": "Sat, 21 Nov 2026 09:00:30 GMT",
                "Date": "Sat, 21 Nov 2026 09:00:00 GMT",
            },
            30.0,
        ),
        ({"Retry-After": "Sat, 21 Nov 2026 09:00:30 GMT"}, None),
    ],
)
def test_the_requested_wait_is_parsed(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "date"]), st.text()))
def test_any_header_gives_a_wait_or_none(headers: dict[str, str]) -> None:
    seconds = retry_after(headers)
    assert seconds is None or 0 <= seconds < float("inf")


words = st.text(max_size=200)


@given(
    st.integers(200, 599),
    st.one_of(
        words,
        st.builds(lambda a, b: f"{a}{KEY}{b}", words, words),
        st.builds(lambda a: json.dumps({"error": {"message": a}}), words),
        st.builds(
            lambda a: f"litellm.APIError: {a}\nTraceback (most recent call last):\n x", words
        ),
        st.builds(lambda a: f"<html><script>{a}</script>{a}{KEY}</html>", words),
    ),
)
def test_any_text_gives_a_short_line_without_the_key(status: int, text: str) -> None:
    failure = model_failure_of(CONFIG, status, text, {})
    shown = failure.error.what + failure.reason + failure.error.next_step
    assert KEY not in shown
    assert len(failure.error.what) < 600
    assert failure.error.what.isprintable()
    assert failure.error.next_step


def test_a_key_written_with_escapes_is_found() -> None:
    escaped = "".join(f"\\u{ord(c):04x}" for c in KEY)
    failure = model_failure_of(CONFIG, 400, f'{{"error": {{"message": "bad {escaped}"}}}}', {})
    assert failure.error.what.endswith("bad [key] (status 400)")


def test_deep_nesting_does_not_crash() -> None:
    failure = model_failure_of(CONFIG, 400, '{"error": ' * 100_000, {})
    assert "status 400" in failure.error.what


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "too hot"}},
        {"error": "too hot"},
        {"message": "too hot"},
        {"detail": "too hot"},
        "<html><script>x</script><body>too hot</body></html>",
    ],
)
def test_the_message_is_found_in_any_form_of_error_body(body: object) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    failure = model_failure_of(CONFIG, 422, f"litellm.BadRequestError: {text}", {})
    assert failure.reason.endswith("too hot (status 422)") and "<" not in failure.reason


def body(said: str, **more: str) -> str:
    """An error of the endpoint as litellm words it."""
    text = json.dumps({"error": {"message": said, **more}})
    return f"litellm.BadRequestError: OpenAIException - {text}"


WRAPPED = {"error": {"message": "Provider returned error", "code": 400, "metadata": {
    "raw": json.dumps({"error": {
        "message": "This endpoint's maximum context length is 32,768 tokens"}})}}}  # fmt: skip
PER_MINUTE = "tokens per min (TPM): Limit 30000, Requested 41307. The input must be reduced."


@pytest.mark.parametrize(
    ("status", "text", "tokens", "max_tokens"),
    [
        (413, body("Request body too large for gpt-4o model. Max size: 8000 tokens."), None, 8_000),
        (429, body(f"Request too large for gpt-4o on {PER_MINUTE}"), 41_307, 30_000),
        (400, json.dumps(WRAPPED), None, 32_768),
        (400, body("prompt is too long: 210000 tokens > 200000 maximum"), 210_000, 200_000),
        (413, body("Payload Too Large"), None, None),
        (400, body("no", code="context_length_exceeded"), None, None),
        (400, body("the request exceeds the available context size"), None, None),
        (400, body("Input is too long for requested model."), None, None),
    ],
)
def test_a_request_that_is_too_large_names_the_size_that_is_accepted(
    status: int, text: str, tokens: int | None, max_tokens: int | None
) -> None:
    failure = model_failure_of(CONFIG, status, text, {})
    assert isinstance(failure.error, ContextWindowExceeded) and not failure.is_transient
    assert (failure.error.tokens, failure.error.max_tokens) == (tokens, max_tokens)


def test_a_limit_per_minute_that_passes_is_waited_for() -> None:
    said = "Rate limit reached on tokens per min: Limit 30000, Used 29000, Requested 4000."
    assert model_failure_of(CONFIG, 429, body(said), {}).is_transient


@pytest.mark.parametrize(
    ("status", "said", "advice"),
    [
        (400, "Your credit balance is too low to access the Anthropic API.", "add credit"),
        (429, "You exceeded your current quota (insufficient_quota)", "add credit"),
        (402, "pay first", "add credit"),
        (400, "my-own-model does not support tools", "dialect: tags"),
        (403, "Country, region, or territory not supported", "a region that serves it"),
        (400, "The model `gpt-9` does not exist", "check the model's name"),
        (404, "model not found", "check the model's name"),
        (401, "invalid x-api-key", "to a key that may use"),
        (400, "temperature must be 1", "check what the endpoint says"),
    ],
)
def test_the_advice_fits_the_cause(status: int, said: str, advice: str) -> None:
    failure = model_failure_of(CONFIG, status, body(said), {}, has_tools=True)
    assert advice in failure.error.next_step
    assert not failure.is_transient
    assert (failure.error.cause == "no_credit") == (advice == "add credit")


@pytest.mark.parametrize(
    "found", ["Missing credentials. Please pass one", "Missing Gemini API key. Set the variable"]
)
def test_a_key_that_litellm_misses_is_an_error_only_where_none_is_set(found: str) -> None:
    missing = model_failure_of(CONFIG.model_copy(update={"api_key": None}), 500, found, {})
    assert isinstance(missing.error, ModelAuthError) and "none is set" in missing.error.what
    assert model_failure_of(CONFIG, 500, found, {}).is_transient


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_a_provider_that_may_be_back_later_is_down(status: int) -> None:
    """The entry points repeat a run for this cause, and no other of a model."""
    failure = model_failure_of(CONFIG, status, "Request timed out.", {})
    assert failure.is_transient and failure.error.cause == "provider_down"


def test_a_request_that_would_be_refused_again_is_no_outage() -> None:
    for status in (400, 401, 402, 404):
        failure = model_failure_of(CONFIG, status, "no", {})
        assert not failure.is_transient and failure.error.cause != "provider_down"
