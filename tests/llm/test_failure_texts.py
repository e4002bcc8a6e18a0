"""Property tests of reading errors: any text and header give a short line without the key."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

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


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_a_provider_that_may_be_back_later_is_down(status: int) -> None:
    """The entry points repeat a run for this cause, and no other of a model."""
    failure = model_failure_of(CONFIG, status, "Request timed out.", {})
    assert failure.is_transient and failure.error.cause == "provider_down"


def test_a_request_that_would_be_refused_again_is_no_outage() -> None:
    for status in (400, 401, 402, 404):
        failure = model_failure_of(CONFIG, status, "no", {})
        assert not failure.is_transient and failure.error.cause != "provider_down"
