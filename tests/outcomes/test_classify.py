"""Tests of how the outcome of a pull request is classified."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.models.outcome import PullRequestActivity, PullRequestFacts, Replacement
from resolver.outcomes.classify import (
    IGNORED_AFTER,
    OBSERVATION_WINDOW,
    LineEvidence,
    choose_replacement,
    classify_outcome,
    count_review_rounds,
    is_final,
)

NOW = datetime(2026, 11, 23, tzinfo=UTC)
HOUR = timedelta(hours=1)


def facts(state: str = "merged", ago: timedelta = 20 * 24 * HOUR, **more: Any) -> PullRequestFacts:
    ended = None if state == "open" else NOW - ago + HOUR
    given: dict[str, Any] = {
        "number": 7, "title": "t", "url": "u", "issue": 3, "state": state,
        "created_at": NOW - ago, "ended_at": ended, "head": "h", "own_head": "h", **more,
    }  # fmt: skip
    return PullRequestFacts(**given)


def test_a_merge_of_resolvers_last_commit_is_unchanged_without_asking_git() -> None:
    outcome = classify_outcome(facts(ago=HOUR * 2), NOW)
    assert (outcome.outcome, outcome.survived, outcome.durability) == ("merged", 1.0, "pending")
    assert outcome.seconds_to_merge == 3600 and not is_final(outcome, "merged", NOW)


def test_a_merge_of_somebody_elses_commit_has_edits_unless_git_shows_none() -> None:
    moved = facts(head="x")
    assert classify_outcome(moved, NOW, LineEvidence(survived=0.4)).outcome == "merged_with_edits"
    same = classify_outcome(moved, NOW, LineEvidence(is_unchanged=True, survived=1.0))
    assert (same.outcome, same.survived) == ("merged", 1.0)
    assert classify_outcome(moved, NOW).survived is None


@pytest.mark.parametrize("durability", ["held", "changed", "reverted", "unknown"])
def test_durability_is_known_after_the_window(durability: Any) -> None:
    lines = LineEvidence(durability=durability)
    assert classify_outcome(facts(), NOW, lines).durability == durability
    early = classify_outcome(facts(ago=OBSERVATION_WINDOW - HOUR), NOW, lines).durability
    assert early == ("reverted" if durability == "reverted" else "pending")


def test_a_closed_one_is_superseded_if_another_was_merged() -> None:
    assert classify_outcome(facts("closed"), NOW).outcome == "closed"
    outcome = classify_outcome(facts("closed"), NOW, None, Replacement(9, False, NOW))
    assert (outcome.outcome, outcome.superseded_by) == ("superseded", 9)
    assert is_final(outcome, "closed", NOW) and not outcome.superseded_by_own


def test_an_outcome_is_final_when_nothing_can_change_it() -> None:
    closed = classify_outcome(facts("closed"), NOW)
    assert is_final(closed, "closed", NOW)
    assert not is_final(closed, "open", NOW), "it was opened again"
    assert not is_final(closed, "merged", NOW), "it was opened again and merged"
    fresh = classify_outcome(facts("closed", 24 * HOUR), NOW)
    assert not is_final(fresh, "closed", NOW), "what replaces it may be merged later"
    held = classify_outcome(facts(), NOW, LineEvidence(durability="held"))
    assert is_final(held, "merged", NOW)
    assert not is_final(classify_outcome(facts("open"), NOW), "open", NOW)


def test_a_replacement_was_merged_later_and_is_best_resolvers_own() -> None:
    pull = facts("closed")
    earlier = Replacement(1, False, pull.created_at - HOUR)
    own, foreign = Replacement(8, True, NOW - HOUR), Replacement(9, False, NOW)
    itself = Replacement(pull.number, True, NOW)
    assert choose_replacement(pull, [earlier, itself]) is None
    assert choose_replacement(pull, [earlier, foreign]) == foreign
    assert choose_replacement(pull, [foreign, own, earlier]) == own


def said(ago: timedelta, by_person: bool) -> PullRequestActivity:
    return PullRequestActivity(NOW - ago, "comment", by_person)


def test_an_open_one_is_ignored_if_no_person_has_reacted() -> None:
    assert classify_outcome(facts("open", IGNORED_AFTER - HOUR), NOW).outcome == "open"
    assert classify_outcome(facts("open", IGNORED_AFTER), NOW).outcome == "ignored"
    bot = facts("open", activities=(said(HOUR, by_person=False),))
    assert classify_outcome(bot, NOW).outcome == "ignored"
    person = facts("open", activities=(said(HOUR, by_person=True),))
    assert classify_outcome(person, NOW).outcome == "open"


def activities(text: str) -> list[PullRequestActivity]:
    """One letter each: r review, m comment, c commit; capitals are people."""
    kinds: dict[str, Any] = {"r": "review", "m": "comment", "c": "commit"}
    return [
        PullRequestActivity(NOW + n * HOUR, kinds[letter.lower()], letter.isupper())
        for n, letter in enumerate(text)
    ]


@pytest.mark.parametrize(
    ("text", "rounds"),
    [("", 0), ("c", 0), ("cR", 1), ("cRRM", 1), ("cRcRcR", 3), ("cM", 0), ("cMc", 1), ("crc", 0)],
)
def test_rounds_of_review(text: str, rounds: int) -> None:
    assert count_review_rounds(activities(text)) == rounds


@given(st.permutations(activities("cRMcRcMMcrR")))
def test_the_order_of_activities_does_not_matter(shuffled: list[PullRequestActivity]) -> None:
    assert count_review_rounds(shuffled) == 4
