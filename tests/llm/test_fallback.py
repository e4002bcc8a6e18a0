"""Tests of fallback models."""

import pytest

from resolver.errors import ContextWindowExceeded, ModelAuthError, ModelError
from resolver.llm.base import ChatMessage, ModelConfig, ToolSpec
from resolver.llm.registry import service_models
from resolver.llm.router import SwitchingModel
from resolver.models.run import Completion, Tokens

Answer = Completion | ModelError
DOWN = ModelError("the endpoint is overloaded")
BAD_KEY = ModelAuthError("the key was not accepted")


def reply(name: str, finish_reason: str = "stop") -> Completion:
    return Completion(
        model=name, text="x", finish_reason=finish_reason, tokens=Tokens(input=100, output=10)
    )


class Answering:
    """A model whose answer is the one of its name."""

    supports_tools = supports_vision = True

    def __init__(self, name: str, line: "Line") -> None:
        self.name = name
        self._line = line

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        self._line.asked.append(self.name)
        answer = self._line.answers[self.name]
        if isinstance(answer, ModelError):
            raise answer
        return answer


class Line:
    """Three models, of which the later ones are asked if the earlier ones fail."""

    def __init__(self, **answers: Answer) -> None:
        self.answers: dict[str, Answer] = {n: reply(n) for n in ("first", "second", "third")}
        self.answers |= answers
        self.asked: list[str] = []
        self.switches: list[tuple[str, str, str]] = []
        self._model = SwitchingModel(
            {name: Answering(name, self) for name in self.answers},
            "first",
            ("second", "third"),
            on_switch=lambda *arguments: self.switches.append(arguments),
        )

    def ask(self) -> Completion:
        return self._model.complete([{"role": "user", "content": "hello"}])


def test_the_next_model_answers_for_one_that_is_down() -> None:
    line = Line(first=DOWN)
    assert line.ask().model == "second"
    assert line.switches == [("first", "second", DOWN.what)]


def test_a_failed_model_is_not_called_again() -> None:
    line = Line(first=DOWN)
    line.ask()
    line.answers["first"] = reply("first")
    assert line.ask().model == "second"
    assert line.asked == ["first", "second", "second"]


def test_if_all_have_failed_the_first_is_called_again() -> None:
    line = Line(first=DOWN, second=DOWN, third=DOWN)
    with pytest.raises(ModelError, match="overloaded"):
        line.ask()
    line.answers["first"] = reply("first")
    assert line.ask().model == "first"
    assert [now for _, now, _ in line.switches] == ["second", "third", "first"]


def test_a_withheld_reply_is_requested_from_the_next_model_and_charged() -> None:
    line = Line(first=reply("first", "content_filter"))
    completion = line.ask()
    assert (completion.model, completion.tokens.input) == ("second", 200)
    assert line.switches == [("first", "second", "first refused to answer")]


def test_if_all_withhold_the_last_reply_is_returned() -> None:
    no = reply("first", "content_filter")
    line = Line(first=no, second=no, third=no)
    completion = line.ask()
    assert (completion.finish_reason, completion.tokens.input) == ("content_filter", 300)


def test_a_key_rejected_by_the_first_model_is_reported() -> None:
    line = Line(first=BAD_KEY)
    with pytest.raises(ModelAuthError):
        line.ask()
    assert line.asked == ["first"]


def test_a_fallback_whose_key_is_rejected_is_skipped() -> None:
    line = Line(first=DOWN, second=BAD_KEY)
    assert line.ask().model == "third"


def test_a_conversation_that_is_too_long_does_not_count_as_a_failure() -> None:
    line = Line(first=ContextWindowExceeded("prompt is too long"))
    with pytest.raises(ContextWindowExceeded):
        line.ask()
    assert line.switches == []


def test_a_key_is_not_sent_to_another_provider() -> None:
    config = ModelConfig(model="openai/a", api_key="k", base_url="https://x", api_version="1")
    assert service_models(config, "openai/b", "X").api_key == config.api_key
    other = service_models(config, "anthropic/c", "X")
    assert (other.api_key, other.base_url, other.api_version) == (None, None, None)


def test_prices_apply_to_their_own_model_only() -> None:
    config = ModelConfig(model="a", input_cost_per_token=1.0, output_cost_per_token=1.0)
    assert service_models(config, "b", "X").input_cost_per_token is None
