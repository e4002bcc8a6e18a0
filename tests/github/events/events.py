"""Parses GitHub's payloads with the settings of these tests."""

from typing import Any

from resolver.github.events.parse import parse_github_event
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.starting_events import ListeningPolicy
from resolver.models.run import Trigger
from tests.parts.events import Payload, example

__all__ = ["BOT", "Payload", "example", "parsed", "reason", "started"]

BOT = "resolver-bot"


def parsed(name: str, payload: Payload, **changes: Any) -> Trigger | IgnoredEvent:
    values: dict[str, Any] = {"mention": "@agent", "label": "agent", "bot_login": BOT}
    arrival = changes.pop("arrival", None)
    return parse_github_event(name, payload, ListeningPolicy(**{**values, **changes}), arrival)


def started(name: str, payload: Payload, **changes: Any) -> Trigger:
    found = parsed(name, payload, **changes)
    assert isinstance(found, Trigger), found
    return found


def reason(name: str, payload: Payload, **changes: Any) -> str:
    found = parsed(name, payload, **changes)
    assert isinstance(found, IgnoredEvent), found
    return found.reason
