"""Tests of condensers that depend only on counts."""

from resolver.memory.condensers.rules import AmortizedForgetting, RecentEvents
from tests.memory.condensers.scenarios import condense, filled, sent_text


def test_recent_events_keep_the_beginning_and_the_end() -> None:
    log = filled(30)
    assert condense(log, RecentEvents(keep_first=2, keep_last=10)) is not None
    shown = sent_text(log)
    assert "say 0'" in shown and "say 1'" in shown and "say 2'" not in shown
    assert "say 19'" not in shown and "say 20'" in shown and "say 29'" in shown
    assert "18 steps left out" in shown and "fix it" in shown


def test_amortized_forgetting_halves_what_is_too_much() -> None:
    log = filled(41)
    condense(log, AmortizedForgetting(max_turns=40, keep_first=3))
    shown = sent_text(log)
    left = [number for number in range(41) if f"say {number}'" in shown]
    assert left == [0, 1, 2, *range(24, 41)]
