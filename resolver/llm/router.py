"""Routing rules that choose the model of a call.

Rules about the service or the agent are resolved once, before the first call; the others are
evaluated before each call.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from resolver.errors import UsageError
from resolver.llm.base import ChatMessage
from resolver.llm.budget import CHARACTERS_A_TOKEN, characters_of

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
            long = characters_of(messages, None) / CHARACTERS_A_TOKEN > self.tokens
            return f"the conversation is longer than {self.tokens:,} tokens" if long else ""
        low = self.share is not None and share_left < self.share
        return f"less than {self.share:.0%} of the budget is left" if low else ""


def parse_rule(text: str) -> RoutingRule:
    """Return the rule that `text` describes. Raises UsageError that shows the valid forms."""
    found = _RULE.fullmatch(text.strip())
    if not found:
        raise UsageError(
            f"the rule {text!r} for choosing a model can't be read",
            "write service:NAME=MODEL, agent:NAME=MODEL, images=MODEL, context>TOKENS=MODEL or "
            "budget<SHARE=MODEL (SHARE from 0 to 1)",
        )
    tokens, share = found["tokens"], found["share"]
    return RoutingRule(
        found["model"],
        images=found["images"] is not None,
        tokens=int(tokens) if tokens else None,
        share=float(share) if share else None,
        service=found["service"] or "",
        agent=found["agent"] or "",
    )


def settle_rules(
    rules: Sequence[RoutingRule], service: str, agent: str
) -> tuple[str | None, tuple[RoutingRule, ...]]:
    """Return the model of the first applicable rule about the service or agent, and earlier rules.

    The model is None if no such rule applies. The rules before it have to be evaluated before each
    call.

    agent: name of the agent; "" for other services.
    """
    before: list[RoutingRule] = []
    for rule in rules:
        if not rule.service and not rule.agent:
            before.append(rule)
        elif rule.service == service or (agent and rule.agent == agent):
            return rule.model, tuple(before)
    return None, tuple(before)


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
