"""Tests of fallback models."""

from typing import Any

import pytest

from resolver.errors import ContextWindowExceeded, ModelAuthError, ModelError
from resolver.llm.base import Model, ModelConfig
from resolver.llm.registry import OtherModels, make_models, service_models
from tests.parts.model_endpoint import Answer, ModelEndpoint, error, reply

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]
DOWN = error(503, "overloaded")


class Line:
    """Three models at one endpoint, whose answers are by name."""

    def __init__(self, endpoint: ModelEndpoint, **answers: Answer) -> None:
        self.answers = {"first": reply("1"), "second": reply("2"), "third": reply("3")} | answers
        self.asked: list[str] = []
        self.switches: list[tuple[str, str, str]] = []
        endpoint.answer_with(self._answer)
        self.model: Model = make_models(
            ModelConfig(model="first", base_url=endpoint.url, num_retries=0),
            OtherModels(("second", "third")),
            on_retry=lambda *_: None,
            on_switch=lambda *arguments: self.switches.append(arguments),
            sleep=lambda _: None,
            money_left=lambda: float("inf"),
        )

    def _answer(self, body: dict[str, Any]) -> Answer:
        self.asked.append(body["model"])
        return self.answers[body["model"]]


def test_the_next_model_answers_for_one_that_is_down(model_endpoint: ModelEndpoint) -> None:
    line = Line(model_endpoint, first=DOWN)
    assert line.model.complete(HELLO).model == "second"
    ((before, now, reason),) = line.switches
    assert (before, now) == ("first", "second")
    assert "overloaded" in reason


def test_a_failed_model_is_not_called_again(model_endpoint: ModelEndpoint) -> None:
    line = Line(model_endpoint, first=DOWN)
    line.model.complete(HELLO)
    line.answers["first"] = reply("back")
    assert line.model.complete(HELLO).model == "second"
    assert line.asked == ["first", "second", "second"]


def test_if_all_have_failed_the_first_is_called_again(model_endpoint: ModelEndpoint) -> None:
    line = Line(model_endpoint, first=DOWN, second=DOWN, third=DOWN)
    with pytest.raises(ModelError, match="overloaded"):
        line.model.complete(HELLO)
    line.answers["first"] = reply("back")
    assert line.model.complete(HELLO).model == "first"
    assert [now for _, now, _ in line.switches] == ["second", "third", "first"]


def test_a_model_that_rejects_the_request_is_skipped(model_endpoint: ModelEndpoint) -> None:
    line = Line(model_endpoint, first=error(400, "not for you"))
    assert line.model.complete(HELLO).model == "second"


def test_a_withheld_reply_is_requested_from_the_next_model_and_charged(
    model_endpoint: ModelEndpoint,
) -> None:
    line = Line(model_endpoint, first=reply("I can't", finish_reason="content_filter"))
    completion = line.model.complete(HELLO)
    assert (completion.model, completion.tokens.input) == ("second", 200)
    assert line.switches == [("first", "second", "first refused to answer")]


def test_if_all_withhold_the_last_reply_is_returned(model_endpoint: ModelEndpoint) -> None:
    no = reply("I can't", finish_reason="content_filter")
    line = Line(model_endpoint, first=no, second=no, third=no)
    completion = line.model.complete(HELLO)
    assert (completion.finish_reason, completion.tokens.input) == ("content_filter", 300)


def test_a_key_rejected_by_the_first_model_is_reported(model_endpoint: ModelEndpoint) -> None:
    line = Line(model_endpoint, first=error(401, "bad key"))
    with pytest.raises(ModelAuthError):
        line.model.complete(HELLO)
    assert line.asked == ["first"]


def test_a_fallback_whose_key_is_rejected_is_skipped(model_endpoint: ModelEndpoint) -> None:
    line = Line(model_endpoint, first=DOWN, second=error(401, "bad key"))
    assert line.model.complete(HELLO).model == "third"


def test_a_conversation_that_is_too_long_does_not_count_as_a_failure(
    model_endpoint: ModelEndpoint,
) -> None:
    line = Line(model_endpoint, first=error(400, "prompt is too long"))
    with pytest.raises(ContextWindowExceeded):
        line.model.complete(HELLO)
    assert line.switches == []


def test_a_key_is_not_sent_to_another_provider() -> None:
    config = ModelConfig(model="openai/a", api_key="k", base_url="https://x", api_version="1")
    assert service_models(config, "openai/b", "X").api_key == config.api_key
    other = service_models(config, "anthropic/c", "X")
    assert (other.api_key, other.base_url, other.api_version) == (None, None, None)


def test_prices_apply_to_their_own_model_only() -> None:
    config = ModelConfig(model="a", input_cost_per_token=1.0, output_cost_per_token=1.0)
    assert service_models(config, "b", "X").input_cost_per_token is None
