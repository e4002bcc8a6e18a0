"""Findings of the risk rules, and the risk level that results from them."""

from collections.abc import Iterable
from dataclasses import dataclass

from resolver.models.approval import RiskLevel

MOST_REASONS = 5
"""Maximum reasons given for one action; those of the highest level come first."""

ORDER = (RiskLevel.LOW, RiskLevel.MEDIUM, RiskLevel.HIGH)


@dataclass(frozen=True)
class RiskFinding:
    """Represents one rule that applies to an action.

    rule: name of the rule, for people and for settings.
    what: what the rule saw.
    """

    rule: str
    level: RiskLevel
    what: str

    @property
    def reason(self) -> str:
        """The rule's name and what it saw, on one line."""
        return f"{self.rule}: {self.what}"


@dataclass(frozen=True)
class Risk:
    """Represents the risk level of an action with its reasons."""

    level: RiskLevel = RiskLevel.LOW
    reasons: tuple[str, ...] = ()


def high(rule: str, what: str) -> RiskFinding:
    """Return a finding that makes an action a high risk, even if it is the only one."""
    return RiskFinding(rule, RiskLevel.HIGH, shown(what))


def medium(rule: str, what: str) -> RiskFinding:
    """Return a finding of medium level, which is worth a note in the log."""
    return RiskFinding(rule, RiskLevel.MEDIUM, shown(what))


def shown(text: str) -> str:
    """Return the text on one line, truncated to 120 characters."""
    line = " ".join(text[:400].split())
    return line if len(line) <= 120 else f"{line[:119]}…"


def risk_of(findings: Iterable[RiskFinding]) -> Risk:
    """Return the highest level of the findings, with each reason once."""
    ranked = sorted(findings, key=lambda f: -ORDER.index(f.level))
    reasons = tuple(dict.fromkeys(f.reason for f in ranked))
    return Risk(ranked[0].level if ranked else RiskLevel.LOW, reasons[:MOST_REASONS])


def gravest(one: RiskLevel, other: RiskLevel) -> RiskLevel:
    """Return the higher of two levels."""
    return max(one, other, key=ORDER.index)
