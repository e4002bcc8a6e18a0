"""Tests of fallback models and model rules."""

from typing import Any

import pytest

from resolver.errors import ContextWindowExceeded, ModelAuthError, ModelError, UsageError
from resolver.llm.base import Model, ModelConfig
from resolver.llm.registry import OtherModels, make_models, service_models
from resolver.llm.router import parse_rule
from tests.parts.model_endpoint import Answer, ModelEndpoint, error, reply

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
LOOK: list[dict[str, Any]] = [{"role": "user", "content": [PICTURE]}]
DOWN = error(503, "overloaded")


class Line:
    """Three models at one endpoint, whose answers are by name; `share` of the budget is left."""

    def __init__(self, endpoint: ModelEndpoint, *rules: str, **answers: Answer) -> None:
        self.answers = {"first": reply("1"), "second": reply("2"), "third": reply("3")} | answers
        self.asked: list[str] = []
        self.switches: list[tuple[str, str, str]] = []
        self.share = 1.0
        endpoint.answer_with(self._answer)
        self.model: Model = make_models(
            ModelConfig(model="first", base_url=endpoint.url, retries=0),
            OtherModels(("second", "third"), tuple(parse_rule(rule) for rule in rules)),
            on_retry=lambda *_: None,
            on_switch=lambda *arguments: self.switches.append(arguments),
            sleep=lambda _: None,
            money_left=lambda: float("inf"),
            share_left=lambda: self.share,
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


def test_a_model_is_chosen_for_images_and_dropped_afterwards(model_endpoint: ModelEndpoint) -> None:
    line = Line(model_endpoint, "images=eyes", eyes=reply("a dot"))
    assert line.model.complete(LOOK).model == "eyes"
    assert line.model.complete(HELLO).model == "first"
    assert line.switches == [
        ("first", "eyes", "the conversation holds images"),
        ("eyes", "first", "no rule asks for another model any more"),
    ]


def test_a_model_is_chosen_by_the_length_of_the_conversation(model_endpoint: ModelEndpoint) -> None:
    line = Line(model_endpoint, "context>1000=long", long=reply("yes"))
    assert line.model.complete(HELLO).model == "first"
    assert line.model.complete([{"role": "user", "content": "x" * 4_100}]).model == "long"


def test_a_model_is_chosen_by_the_remaining_budget(model_endpoint: ModelEndpoint) -> None:
    line = Line(model_endpoint, "budget<0.2=cheap", cheap=reply("yes"))
    assert line.model.complete(HELLO).model == "first"
    line.share = 0.1
    assert line.model.complete(HELLO).model == "cheap"


def test_the_first_rule_that_applies_wins(model_endpoint: ModelEndpoint) -> None:
    line = Line(model_endpoint, "budget<0.5=cheap", "images=eyes", cheap=reply("c"))
    line.share = 0.1
    assert line.model.complete(LOOK).model == "cheap"


def test_fallbacks_replace_a_chosen_model_too(model_endpoint: ModelEndpoint) -> None:
    line = Line(model_endpoint, "images=eyes", eyes=DOWN)
    assert line.model.complete(LOOK).model == "second"


@pytest.mark.parametrize(
    "text", ["", "images", "images=", "context>x=m", "budget<2=m", "budget<0.5=a b", "cost<1=m"]
)
def test_an_invalid_rule_is_reported_with_the_valid_forms(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_rule(text)
    assert "context>TOKENS=MODEL" in raised.value.next_step


def test_a_key_is_not_sent_to_another_provider() -> None:
    config = ModelConfig(model="openai/a", api_key="k", base_url="https://x", api_version="1")
    assert service_models(config, "openai/b", "X").api_key == config.api_key
    other = service_models(config, "anthropic/c", "X")
    assert (other.api_key, other.base_url, other.api_version) == (None, None, None)


def test_prices_apply_to_their_own_model_only() -> None:
    config = ModelConfig(model="a", input_cost_per_token=1.0, output_cost_per_token=1.0)
    assert service_models(config, "b", "X").input_cost_per_token is None


@pytest.mark.parametrize(
    ("rule", "sees"), [("images=gpt-4o", True), ("budget<0.5=gpt-4o", False), ("images=x", False)]
)
def test_images_are_supported_if_a_rule_chooses_a_model_for_them(
    model_endpoint: ModelEndpoint, rule: str, sees: bool
) -> None:
    assert Line(model_endpoint, rule).model.supports_vision is sees
