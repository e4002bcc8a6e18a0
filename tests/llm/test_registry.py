"""Tests of building models from a configuration."""

import pytest

from resolver.errors import UsageError
from resolver.llm.base import ModelConfig
from resolver.llm.registry import make_model


def make(**config: str) -> object:
    return make_model(ModelConfig(**config), on_retry=lambda *_: None, sleep=lambda _: None)


@pytest.mark.parametrize("name", ["", "  "])
def test_no_model_is_an_error_that_says_how_to_set_one(name: str) -> None:
    with pytest.raises(UsageError, match="no model is set") as caught:
        make(model=name)
    assert "LLM_MODEL" in caught.value.next_step


@pytest.mark.parametrize("url", ["localhost:8000/v1", "file:///etc/passwd", "http://", "x"])
def test_an_invalid_base_url_is_an_error(url: str) -> None:
    with pytest.raises(UsageError, match="base URL"):
        make(model="m", base_url=url)
