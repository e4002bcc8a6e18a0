"""Routing rules that choose the model of a call, and a model that switches between several models.

Rules about the service or the agent are resolved once, before the first call; the others are
evaluated before each call. Another model is also used after failures.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from resolver.errors import ContextWindowExceeded, ModelAuthError, ModelError, UsageError
from resolver.llm.base import ChatMessage, Model, ToolSpec
from resolver.llm.litellm_model import add_usage
from resolver.llm.request import CHARACTERS_PER_TOKEN, characters_of
from resolver.models.run import Completion

_RULE = re.compile(
    r"(?:(?P<images>images)|context>(?P<tokens>\d{1,9})|budget<(?P<share>0?\.\d{1,4}|1)"
    r"|service:(?P<service>[\w-]+)|agent:(?P<agent>[\w-]+))=(?P<model>\S+)"
)


@dataclass(frozen=True)
class RoutingRule:
    """A rule that chooses a model.

    Its forms are `service:NAME=MODEL`, `agent:NAME=MODEL`, `images=MODEL`, `context>TOKENS=MODEL`
    and `budget<SHARE=MODEL`.
    """

    model: str
    images: bool = False
    tokens: int | None = None
    share: float | None = None
    service: str = ""
    agent: str = ""

    def reason(self, messages: list[ChatMessage], share_left: float) -> str:
        """Return a short reason if the rule applies to the next call, "" if it does not."""
        if self.images:
            return "the conversation holds images" if _has_images(messages) else ""
        if self.tokens is not None:
            is_too_long = characters_of(messages, None) / CHARACTERS_PER_TOKEN > self.tokens
            return f"the conversation is longer than {self.tokens:,} tokens" if is_too_long else ""
        is_budget_low = self.share is not None and share_left < self.share
        return f"less than {self.share:.0%} of the budget is left" if is_budget_low else ""


def parse_rule(text: str) -> RoutingRule:
    """Return the rule that `text` describes. Raises UsageError that shows the valid forms."""
    match = _RULE.fullmatch(text.strip())
    if not match:
        raise UsageError(
            f"the rule {text!r} for choosing a model can't be read",
            "write service:NAME=MODEL, agent:NAME=MODEL, images=MODEL, context>TOKENS=MODEL or "
            "budget<SHARE=MODEL (SHARE from 0 to 1)",
        )
    tokens, share = match["tokens"], match["share"]
    return RoutingRule(
        match["model"],
        images=match["images"] is not None,
        tokens=int(tokens) if tokens else None,
        share=float(share) if share else None,
        service=match["service"] or "",
        agent=match["agent"] or "",
    )


def resolve_static_rules(
    rules: Sequence[RoutingRule], service: str, agent: str
) -> tuple[str | None, tuple[RoutingRule, ...]]:
    """Return the model of the first applicable rule about the service or agent, and earlier rules.

    The model is None if no such rule applies. The rules before it have to be evaluated before each
    call.

    agent: name of the agent; "" for other services.
    """
    dynamic_rules: list[RoutingRule] = []
    for rule in rules:
        if not rule.service and not rule.agent:
            dynamic_rules.append(rule)
        elif rule.service == service or (agent and rule.agent == agent):
            return rule.model, tuple(dynamic_rules)
    return None, tuple(dynamic_rules)


def choose(
    rules: Sequence[RoutingRule], messages: list[ChatMessage], share_left: float
) -> tuple[str, str] | None:
    """Return the model of the first rule that applies and the reason, None if none applies.

    share_left: share of the run's budget that is left, from 0 to 1.
    """
    for rule in rules:
        reason = rule.reason(messages, share_left)
        if reason:
            return rule.model, reason
    return None


def _has_images(messages: list[ChatMessage]) -> bool:
    return any(
        block.get("type") == "image_url"
        for message in messages
        if isinstance(message.get("content"), list)
        for block in message["content"]
    )


REFUSED = "content_filter"
"""`Completion.finish_reason` of a reply that the provider withheld."""

OnSwitch = Callable[[str, str, str], None]
"""Called before another model than the last one is asked, with the names of both and the reason."""


class SwitchingModel:
    """Queries the model that the rules choose, and the fallbacks in order if it fails or refuses.

    A model that failed is not queried again in this run unless all have failed, because each switch
    loses the prompt cache. A conversation that is too long is not a failure. A key that the first
    model does not accept is a configuration error and is raised, not hidden by spending money
    elsewhere; a fallback whose key is not accepted is skipped.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        first: str,
        fallbacks: Sequence[str],
        rules: Sequence[RoutingRule],
        *,
        on_switch: OnSwitch,
        share_left: Callable[[], float],
    ) -> None:
        """Create a model from several others.

        models: all models by name, including those that `first`, `fallbacks` and `rules` name.
        on_switch: called before another model than the last one is asked.
        share_left: returns the share of the run's budget that is left, from 0 to 1.
        """
        self._models = models
        self._first = first
        self._fallbacks = fallbacks
        self._rules = rules
        self._on_switch = on_switch
        self._share_left = share_left
        self._current = first
        self._failed: dict[str, str] = {}

    @property
    def name(self) -> str:
        return self._first

    @property
    def supports_tools(self) -> bool:
        """True if all models support tools, because a run's conversation has only one format."""
        return all(model.supports_tools for model in self._models.values())

    @property
    def supports_vision(self) -> bool:
        """True if all models that rules choose for images support them.

        Without such a rule all models have to, because any of them may get the conversation.
        """
        image_models = [self._models[rule.model] for rule in self._rules if rule.images]
        return all(model.supports_vision for model in image_models or self._models.values())

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        """Return the reply of the first model that gives one. Raises the first error if none does.

        If no model replies but one refused, that refusal is returned.
        """
        choice = choose(self._rules, messages, self._share_left())
        preferred, reason = choice or (self._first, "no rule asks for another model any more")
        candidates = list(dict.fromkeys([preferred, *self._fallbacks]))
        names = [name for name in candidates if name not in self._failed] or candidates
        reason = self._failed.get(preferred, reason)
        first_error: ModelError | None = None
        refusal: Completion | None = None
        for name in names:
            self._switch(name, reason)
            try:
                reply = self._models[name].complete(messages, tools)
            except ContextWindowExceeded:
                raise
            except ModelError as error:
                if isinstance(error, ModelAuthError) and name == self._first:
                    raise
                first_error = first_error or error
                reason = error.what
            else:
                refusal = reply if refusal is None else add_usage(refusal, reply)
                if reply.finish_reason != REFUSED:
                    self._failed.pop(name, None)
                    return refusal
                reason = f"{name} refused to answer"
            self._failed[name] = reason
        if refusal is not None:
            return refusal
        assert first_error is not None
        raise first_error

    def _switch(self, name: str, reason: str) -> None:
        if name != self._current:
            self._on_switch(self._current, name, reason)
            self._current = name
