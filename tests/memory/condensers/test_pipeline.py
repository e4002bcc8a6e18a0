"""Tests of condensers in sequence, and of condensers by name."""

import pytest

from resolver.config.agent_settings import CONDENSERS
from resolver.events import actions as a
from resolver.memory.condensers.registry import make_condenser
from resolver.memory.condensers.rules import (
    ConversationWindow,
    ObservationMasking,
    Pipeline,
)
from tests.memory.condensers.scenarios import Noting, asker, condense, filled, sent_text


def test_the_first_condenser_that_has_enough_to_leave_out_decides() -> None:
    condensation = condense(
        filled(30), Pipeline(ObservationMasking(keep_last=2), ConversationWindow()), 7_500
    )
    assert condensation is not None and condensation.forgotten == ()


@pytest.mark.parametrize("name", CONDENSERS)
def test_each_name_makes_a_condenser(name: str) -> None:
    log = filled(60)
    made = make_condenser((name,), lambda: asker(log, Noting("notes")))
    before = len(sent_text(log))
    log.add(a.CondensationRequest())
    condensation = condense(log, made)
    assert (condensation is None) == (name == "none")
    assert name == "none" or len(sent_text(log)) < 0.8 * before
