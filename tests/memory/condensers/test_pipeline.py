"""Tests of condensers in sequence, and of condensers by name."""

import pytest

from resolver.config.agent_settings import CONDENSERS, parse_condenser
from resolver.events import actions as a
from resolver.memory.condensers.registry import make_condenser
from tests.memory.condensers.scenarios import Noting, asker, condense, filled, sent_text


def test_a_stage_sees_the_result_of_the_previous_ones() -> None:
    log = filled(30)
    window = make_condenser(parse_condenser("masking(keep_last=2),window"), never)
    condensation = condense(log, window, 7_500)
    assert condensation is not None and condensation.forgotten == ()


def never() -> None:  # type: ignore[misc]
    raise AssertionError("no model is needed")


@pytest.mark.parametrize("name", CONDENSERS)
def test_each_name_makes_a_condenser(name: str) -> None:
    log = filled(60)
    made = make_condenser(parse_condenser(name), lambda: asker(log, Noting("notes")))
    before = len(sent_text(log))
    log.add(a.CondensationRequest())
    condensation = condense(log, made)
    assert (condensation is None) == (name == "none")
    assert name == "none" or len(sent_text(log)) < 0.8 * before


def test_parameters_are_given_in_parentheses() -> None:
    first, second = parse_condenser(" recent( keep_last=1 , keep_first=3 ) , window")
    assert (first.name, dict(first.parameters)) == ("recent", {"keep_last": 1, "keep_first": 3})
    assert (second.name, dict(second.parameters)) == ("window", {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no condenser; they are window, summarizing"),
        ("summarise", "there is no condenser 'summarise'; they are window, summarizing"),
        ("recent(last=3)", "recent takes no 'last=3'; it takes keep_first and keep_last"),
        ("recent(keep_last=-1)", "recent takes no 'keep_last=-1'"),
        ("recent(keep_last=99999)", "more than 10000"),
        ("none(most=1)", "it takes nothing"),
        ("recent masking", "can't be read from 'recent masking' on"),
        ("recent,,masking", "can't be read"),
        ("recent(keep_last=3", "can't be read"),
    ],
)
def test_an_invalid_setting_is_explained(text: str, words: str) -> None:
    with pytest.raises(ValueError) as failure:
        parse_condenser(text)
    assert words in str(failure.value)
