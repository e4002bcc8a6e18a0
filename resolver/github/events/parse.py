"""Parses a GitHub event into a trigger, or into the reason why it starts no work.

No network is used. Authorization follows in `resolver.github.events.permission`.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from resolver.github.events.checks import CHECK_EVENTS, trigger_from_check
from resolver.github.events.comments import trigger_from_comment, trigger_from_review
from resolver.github.events.dispatches import (
    DISPATCH_EVENTS,
    DispatchSource,
    trigger_from_dispatch,
)
from resolver.github.events.issues import trigger_from_issue
from resolver.github.events.permission import IgnoredEvent, MalformedEvent
from resolver.github.events.starting_events import ListeningPolicy, find_starting_event
from resolver.models.base import describe_first_error
from resolver.models.run import Trigger


def parse_github_event(
    name: str,
    payload: Mapping[str, Any],
    policy: ListeningPolicy,
    arrival: DispatchSource | None = None,
) -> Trigger | IgnoredEvent:
    """Return the trigger for an event, or the reason why there is none.

    The trigger's key is made from the event itself, not from the delivery: a redelivery, a copy
    under another delivery id and a re-run of the same workflow all give the same key.

    Args:
        name: Name of the event, as in the header X-GitHub-Event or the variable GITHUB_EVENT_NAME.
        payload: The event's payload.
        policy: Whose events start work.
        arrival: Id and time of a dispatch, which its payload does not contain.
    """
    try:
        match name:
            case "issue_comment":
                return trigger_from_comment(payload, policy)
            case "issues" | "pull_request":
                return trigger_from_issue(name, payload, policy)
            case "pull_request_review" | "pull_request_review_comment":
                return trigger_from_review(payload, policy)
            case _ if name in CHECK_EVENTS:
                return trigger_from_check(name, payload, policy)
            case _ if name in DISPATCH_EVENTS:
                return trigger_from_dispatch(name, payload, policy, arrival)
    except ValidationError as error:
        reason = f"the {name} payload is invalid: {describe_first_error(error)}"
        return MalformedEvent(reason) if name in DISPATCH_EVENTS else IgnoredEvent(reason)
    return IgnoredEvent(f"{name} events start no work")


def needs_own_login(name: str, payload: Mapping[str, Any]) -> bool:
    """Return True if the event can't be parsed without the login of Resolver's own account."""
    event = find_starting_event(name, payload.get("action"))
    return event is not None and event.needs_own_login
