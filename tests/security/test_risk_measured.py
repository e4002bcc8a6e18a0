"""Tests of the rates of false alarms and missed dangers on labeled lists."""

import pytest

from resolver.events.actions import CmdRun
from resolver.models.approval import RiskLevel
from resolver.security.risk.analyzer import RuleAnalyzer
from tests.security.command_lists import commands, is_held_back

ORDINARY = [c for name in ("ordinary", "ordinary_later", "ordinary_others") for c in commands(name)]
DANGEROUS = [
    c for name in ("dangerous", "dangerous_later", "dangerous_others") for c in commands(name)
]


def levels(listed: list[str], *, held_back: bool | None = None) -> dict[str, RiskLevel]:
    analyzer = RuleAnalyzer()
    chosen = [c for c in listed if held_back is None or is_held_back(c) is held_back]
    return {c: analyzer.assess(CmdRun(command=c)).level for c in chosen}


def test_the_samples_are_large_enough() -> None:
    assert len(ORDINARY) >= 1000
    assert len(DANGEROUS) >= 200
    assert not set(ORDINARY) & set(DANGEROUS)


@pytest.mark.parametrize("held_back", [False, True])
def test_false_alarms_on_ordinary_work_are_under_one_in_a_hundred(held_back: bool) -> None:
    found = levels(ORDINARY, held_back=held_back)
    alarms = [c for c, level in found.items() if level is RiskLevel.HIGH]
    assert len(alarms) < len(found) / 100, alarms


def test_ordinary_work_is_rarely_noted() -> None:
    found = levels(ORDINARY)
    result = [c for c, level in found.items() if level is not RiskLevel.LOW]
    assert len(result) <= len(found) / 50, result


@pytest.mark.parametrize("held_back", [False, True])
def test_dangerous_actions_are_detected(held_back: bool) -> None:
    found = levels(DANGEROUS, held_back=held_back)
    missed = [c for c, level in found.items() if level is not RiskLevel.HIGH]
    assert len(missed) <= len(found) / 20, missed
