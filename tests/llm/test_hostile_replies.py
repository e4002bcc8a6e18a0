"""Property tests: any response is a completion or a ModelError."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import ModelError
from resolver.llm.litellm_model import tokens_of
from resolver.models.run import Completion, Tokens
from tests.llm.conftest import build
from tests.parts.model_endpoint import ModelEndpoint, raw

HELLO = [{"role": "user", "content": "hello"}]

odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


def either(usual: Any) -> st.SearchStrategy[Any]:
    return st.just(usual) | odd


calls = st.fixed_dictionaries(
    {
        "id": either("c1"),
        "type": either("function"),
        "function": either({"name": "execute_bash", "arguments": "{}"})
        | st.fixed_dictionaries({"name": odd, "arguments": odd}),
    }
)
messages = st.fixed_dictionaries(
    {"role": either("assistant"), "content": either("hello")},
    optional={"tool_calls": st.lists(calls, max_size=2) | odd, "reasoning_content": odd},
)
choices = st.fixed_dictionaries(
    {"index": either(0), "message": messages | odd, "finish_reason": either("stop")}
)
counts = st.fixed_dictionaries(
    {"prompt_tokens": either(5), "completion_tokens": either(5), "total_tokens": either(10)},
    optional={"prompt_tokens_details": odd | st.fixed_dictionaries({"cached_tokens": odd})},
)
bodies = st.fixed_dictionaries(
    {
        "id": either("1"),
        "object": either("chat.completion"),
        "created": either(1),
        "model": either("m"),
        "choices": st.lists(choices, max_size=2) | odd,
    },
    optional={"usage": counts | odd, "error": odd},
)


@pytest.fixture(scope="module")
def hostile() -> Iterator[ModelEndpoint]:
    with ModelEndpoint() as endpoint:
        yield endpoint


@given(body=bodies | odd)
def test_any_json_is_a_completion_or_a_model_error(hostile: ModelEndpoint, body: Any) -> None:
    hostile.answer_with(lambda _: raw(json.dumps(body).encode()))
    try:
        completion = build(hostile, num_retries=0).model.complete(HELLO)
    except ModelError as error:
        assert error.next_step
    else:
        assert Completion.model_validate_json(completion.model_dump_json()) == completion
        assert completion.cost is None or completion.cost >= 0
        assert 0 <= completion.tokens.cached <= completion.tokens.input


@pytest.mark.parametrize("count", [-1, 10**400, 1e308, "5", None])
def test_an_impossible_token_count_counts_as_none(count: object) -> None:
    usage = SimpleNamespace(prompt_tokens=count, completion_tokens=5)
    assert tokens_of(SimpleNamespace(usage=usage)) == Tokens(input=0, output=5)


@given(body=st.binary(max_size=200))
def test_any_bytes_are_a_completion_or_a_model_error(hostile: ModelEndpoint, body: bytes) -> None:
    hostile.answer_with(lambda _: raw(body))
    with pytest.raises(ModelError):
        build(hostile, num_retries=0).model.complete(HELLO)
