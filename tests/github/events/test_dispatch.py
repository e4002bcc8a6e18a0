"""Tests of dispatches and their inputs."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st

from resolver.github.events.dispatches import DispatchSource, asks_for_sweep
from resolver.github.events.permission import MalformedEvent
from resolver.models.run import Command, Trigger, TriggerKind
from tests.github.events.events import Payload, example, parsed, reason, started

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
ARRIVAL = DispatchSource("123", AT)


def by_hand(**inputs: Any) -> Payload:
    return example("workflow_dispatch") | {"inputs": inputs}


def by_program(**given: Any) -> Payload:
    payload = example("repository_dispatch", "on-demand-test")
    return payload | {"action": "agent", "client_payload": given}


BOTH = [("workflow_dispatch", by_hand), ("repository_dispatch", by_program)]


@pytest.mark.parametrize(("name", "made"), BOTH)
def test_a_dispatch_acts_like_a_comment(name: str, made: Any) -> None:
    payload = made(issue="12", instruction="fix the sign, please")
    found = started(name, payload, arrival=ARRIVAL)
    assert (found.kind, found.command) == (TriggerKind.DISPATCHED, Command.FIX)
    assert (found.number, found.instruction) == (12, "fix the sign, please")
    assert found.actor.login == payload["sender"]["login"]
    assert (found.key, found.at) == (f"{name}:123", AT)
    assert found.snapshot is None


@pytest.mark.parametrize(
    ("words", "command", "left"),
    [
        ("review for leaks", Command.REVIEW, "for leaks"),
        ("ask why is this so?", Command.QUESTION, "why is this so?"),
        ("continue", Command.CONTINUE, ""),
        ("update", Command.UPDATE, ""),
        ("publish", Command.PUBLISH, ""),
        ("@agent please fix", Command.FIX, "please fix"),
        ("", Command.FIX, ""),
    ],
)
def test_the_instruction_of_a_dispatch_is_parsed_like_a_mention(
    words: str, command: Command, left: str
) -> None:
    payload = by_hand(issue="12", instruction=words)
    found = started("workflow_dispatch", payload, arrival=ARRIVAL)
    assert found.command is command
    assert left in found.instruction


def test_a_dispatch_can_name_an_agent() -> None:
    payload = by_hand(issue="3", agent="release-notes", instruction="since=v1.2")
    found = started("workflow_dispatch", payload, arrival=ARRIVAL)
    assert (found.named, found.instruction) == ("release-notes", "since=v1.2")
    found = started("workflow_dispatch", by_hand(issue="3", agent="/review"), arrival=ARRIVAL)
    assert found.command is Command.REVIEW


@pytest.mark.parametrize("number", [12, "12", " #12 "])
def test_the_issue_number_is_accepted_in_any_form(number: Any) -> None:
    payload = by_program(issue=number, instruction=None, agent=None)
    assert started("repository_dispatch", payload, arrival=ARRIVAL).number == 12


@pytest.mark.parametrize(
    "given",
    [
        {"issue": "x"},
        {"issue": "0"},
        {"issue": "-1"},
        {"issue": "1" * 21},
        {"issue": True},
        {"issue": 1.5},
        {"issue": [3]},
        {"issue": {"number": 3}},
        {"instruction": "fix"},
        {"issue": "3", "agent": "../x"},
        {"issue": "3", "agent": "a b"},
        {"issue": "3", "instruction": "stop"},
        {"issue": "3", "instruction": "approve"},
        {"issue": "3", "instruction": "help"},
    ],
)
@pytest.mark.parametrize(("name", "made"), BOTH)
def test_faults_of_a_dispatch_are_named(name: str, made: Any, given: dict[str, Any]) -> None:
    refusal = reason(name, made(**given), arrival=ARRIVAL)
    assert any(word in refusal for word in ("issue", "agent", "in a comment"))


def test_a_dispatch_of_another_type_is_ignored() -> None:
    payload = by_program(issue=3) | {"action": "deploy"}
    assert "another type" in reason("repository_dispatch", payload, arrival=ARRIVAL)
    assert not asks_for_sweep("repository_dispatch", payload | {"client_payload": {}})


def test_a_server_leaves_workflows_to_their_jobs() -> None:
    assert "job that it starts" in reason("workflow_dispatch", by_hand(issue="3"))


def test_bots_dispatch_nothing_unless_they_are_on_the_list() -> None:
    payload = by_program(issue=3)
    payload["sender"] |= {"login": "deploy[bot]", "type": "Bot"}
    assert "isn't a person" in reason("repository_dispatch", payload, arrival=ARRIVAL)
    started("repository_dispatch", payload, arrival=ARRIVAL, allowed_users=["deploy[bot]"])


@pytest.mark.parametrize(
    ("name", "payload", "sweeps"),
    [
        ("schedule", {"schedule": "17 3 * * *"}, True),
        ("workflow_dispatch", {"inputs": None}, True),
        ("workflow_dispatch", {"inputs": {"issue": "", "instruction": " ", "agent": ""}}, True),
        ("workflow_dispatch", {"inputs": {"dry": "yes"}}, False),
        ("workflow_dispatch", {"inputs": {"issue": "3"}}, False),
        ("workflow_dispatch", {"inputs": {"instruction": "fix"}}, False),
        ("workflow_dispatch", {"inputs": {"issue": "1" * 99}}, False),
        ("repository_dispatch", {"action": "agent"}, True),
        ("repository_dispatch", {"action": "agent", "client_payload": {"issue": 3}}, False),
        ("repository_dispatch", {"action": "agent", "client_payload": {}}, True),
        ("repository_dispatch", {"action": "agent", "client_payload": []}, False),
        ("workflow_dispatch", {"inputs": 3}, False),
        ("issues", {"inputs": None}, False),
    ],
)
def test_a_schedule_or_a_dispatch_without_input_is_a_sweep(
    name: str, payload: Payload, sweeps: bool
) -> None:
    assert asks_for_sweep(name, payload) is sweeps


def test_inputs_without_an_issue_are_named() -> None:
    refusal = reason("repository_dispatch", by_program(isue="1", number=3), arrival=ARRIVAL)
    assert refusal == (
        "the input `issue` is not an issue number: None; the dispatch sets 'isue', 'number'"
    )


HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(["issue", "isue", "instruction", "agent", "number"]) | st.text(max_size=9)


@given_any(HOSTILE | st.dictionaries(NAMES, HOSTILE, max_size=5))
def test_only_a_dispatch_without_values_is_a_sweep(input_value: Any) -> None:
    payload = by_program() | {"client_payload": input_value}
    found = parsed("repository_dispatch", payload, arrival=ARRIVAL)
    if asks_for_sweep("repository_dispatch", payload):
        assert input_value is None or all(
            isinstance(value, str) and not value.strip() for value in input_value.values()
        )
    elif isinstance(found, Trigger):
        assert isinstance(input_value["issue"], str | int) and found.number
    else:
        assert isinstance(found, MalformedEvent)
        assert len(found.reason) < 1000 and found.reason.isprintable()
