"""What the rules say of an action: findings, and the level that they come to."""

from collections.abc import Iterable
from dataclasses import dataclass

from resolver.models.approval import RiskLevel

MOST_REASONS = 5
"""Reasons that are told of one action; the gravest come first."""

ORDER = (RiskLevel.LOW, RiskLevel.MEDIUM, RiskLevel.HIGH)


@dataclass(frozen=True)
class RiskFinding:
    """One rule that applies. rule: its name, for people and for settings. what: what was seen."""

    rule: str
    level: RiskLevel
    what: str

    @property
    def reason(self) -> str:
        """The rule's name and what was seen, on one line."""
        return f"{self.rule}: {self.what}"


@dataclass(frozen=True)
class Risk:
    """The level of an action, and why."""

    level: RiskLevel = RiskLevel.LOW
    reasons: tuple[str, ...] = ()


def high(rule: str, what: str) -> RiskFinding:
    """A finding that alone makes an action a high risk."""
    return RiskFinding(rule, RiskLevel.HIGH, shown(what))


def medium(rule: str, what: str) -> RiskFinding:
    """A finding that is worth a word in the log."""
    return RiskFinding(rule, RiskLevel.MEDIUM, shown(what))


def shown(text: str) -> str:
    """At most 120 characters of it, on one line."""
    line = " ".join(text[:400].split())
    return line if len(line) <= 120 else f"{line[:119]}…"


def risk_of(findings: Iterable[RiskFinding]) -> Risk:
    """The gravest level, with each reason once."""
    ranked = sorted(findings, key=lambda f: -ORDER.index(f.level))
    reasons = tuple(dict.fromkeys(f.reason for f in ranked))
    return Risk(ranked[0].level if ranked else RiskLevel.LOW, reasons[:MOST_REASONS])


def gravest(one: RiskLevel, other: RiskLevel) -> RiskLevel:
    """The higher of the two."""
    return max(one, other, key=ORDER.index)
