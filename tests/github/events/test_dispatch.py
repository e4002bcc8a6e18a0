"""Tests of dispatches and their inputs."""

from datetime import UTC, datetime
from typing import Any

import pytest

from resolver.github.events.dispatches import DispatchSource, asks_for_sweep
from resolver.models.run import Command, TriggerKind
from tests.github.events.events import Payload, example, reason, started

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
    payload = made(issue="12", instruction="@agent fix the sign, please", agent="/release-notes")
    found = started(name, payload, arrival=ARRIVAL)
    assert (found.kind, found.key, found.at) == (TriggerKind.DISPATCHED, f"{name}:123", AT)
    assert (found.number, found.named) == (12, "release-notes")
    assert (found.command, found.instruction) == (Command.FIX, "fix the sign, please")
    assert found.actor.login == payload["sender"]["login"]
    assert (
        started(name, made(issue=" #7 ", agent="review"), arrival=ARRIVAL).is_pull_request is False
    )


@pytest.mark.parametrize(
    ("inputs", "command"),
    [
        ({"issue": 12, "instruction": None, "agent": None}, Command.FIX),
        ({"issue": "#12", "agent": "/review"}, Command.REVIEW),
        ({"issue": "12", "instruction": "continue"}, Command.CONTINUE),
    ],
)
def test_its_instruction_may_be_a_command(inputs: dict[str, Any], command: Command) -> None:
    found = started("repository_dispatch", by_program(**inputs), arrival=ARRIVAL)
    assert (found.number, found.command) == (12, command)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        *(
            ({"issue": issue}, "`issue` is missing or not valid")
            for issue in ("x", "0", "-1", "1" * 21, True, 1.5, [3], {"number": 3})
        ),
        ({"isue": "1", "instruction": "fix"}, "`issue` is missing or not valid"),
        ({"issue": "3", "agent": "../x"}, "`agent`"),
        ({"issue": "3", "instruction": "stop"}, "in a comment"),
    ],
)
@pytest.mark.parametrize(("name", "made"), BOTH)
def test_faults_of_a_dispatch_are_named(
    name: str, made: Any, given: dict[str, Any], why: str
) -> None:
    assert why in reason(name, made(**given), arrival=ARRIVAL)


def test_a_dispatch_for_something_else_or_by_a_bot_is_ignored() -> None:
    payload = by_program(issue=3)
    other = payload | {"action": "deploy"}
    assert "another type" in reason("repository_dispatch", other, arrival=ARRIVAL)
    assert "job that it starts" in reason("workflow_dispatch", by_hand(issue="3"))
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
        ("repository_dispatch", {"action": "agent"}, True),
        ("repository_dispatch", {"action": "agent", "client_payload": {"issue": 3}}, False),
        ("repository_dispatch", {"action": "deploy", "client_payload": {}}, False),
        ("issues", {"inputs": None}, False),
    ],
)
def test_a_schedule_or_a_dispatch_without_input_is_a_sweep(
    name: str, payload: Payload, sweeps: bool
) -> None:
    assert asks_for_sweep(name, payload) is sweeps
