"""Which commit of a pull request the requester saw. Later pushes are not used.

Source: https://docs.github.com/en/rest/repos/repos#list-repository-activities
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import github
from github.Repository import Repository
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from resolver.model import Trigger, TriggerKind

MOST = 100
"""Pushes that are looked at, the newest first."""

NOT_KNOWN = "whether it was pushed to since the request is not known"


@dataclass(frozen=True)
class Pinned:
    """moved: what is known of pushes since the request, in words for a person; "" for none."""

    head: str
    moved: str = ""


class _Account(BaseModel):
    model_config = ConfigDict(extra="ignore")

    login: str = ""


class _Push(BaseModel):
    model_config = ConfigDict(extra="ignore")

    before: str
    after: str
    timestamp: datetime
    actor: _Account | None = None


_PUSHES = TypeAdapter(list[_Push])


def pin_head(repository: Repository, pull: dict[str, Any], trigger: Trigger) -> Pinned:
    """The newest commit of the pull request at the trigger's moment.

    pull: as the REST API describes it now. An event that names the commit is believed; else the
    branch's pushes are asked for, and where those can't be seen, whether anything has happened to
    the pull request since. A command line asks for what is there now.
    """
    head = str(pull["head"]["sha"])
    if trigger.head:
        return _pinned(trigger.head, head)
    source = pull["head"].get("repo")
    if trigger.kind is TriggerKind.COMMAND_LINE or source is None:
        return Pinned(head)
    if _moment(pull.get("updated_at")) < trigger.at:
        return Pinned(head)
    pushes = _pushes(repository, str(source["full_name"]), str(pull["head"]["ref"]))
    if not pushes or pushes[0].after != head:
        return Pinned(head, NOT_KNOWN)
    later = [push for push in pushes if push.timestamp >= trigger.at]
    if len(later) == MOST:
        return Pinned(head, NOT_KNOWN)
    if not later:
        return Pinned(head)
    # The one before the first that came too late. Within the same second it counts as late.
    seen = later[-1].before
    return _pinned(seen, head) if seen.strip("0") else Pinned(head, NOT_KNOWN)


def _pinned(seen: str, now: str) -> Pinned:
    if seen == now:
        return Pinned(now)
    return Pinned(
        seen, f"it was pushed to after the request; what came after {seen[:12]} is not used"
    )


def _pushes(repository: Repository, source: str, branch: str) -> list[_Push]:
    """The newest pushes to the branch that it comes from, newest first; none where that
    repository's can't be seen."""
    requester = repository.requester
    try:
        _, listed = requester.requestJsonAndCheck(
            "GET",
            f"/repos/{source}/activity",
            {"ref": f"refs/heads/{branch}", "per_page": MOST, "direction": "desc"},
        )
        pushes = _PUSHES.validate_python(listed)
    except (github.GithubException, ValidationError):
        return []
    return sorted(pushes, key=lambda push: push.timestamp, reverse=True)


def pushers(repository: Repository, source: str, branch: str) -> dict[str, str]:
    """Who has put the branch to which commit, among its newest pushes; empty where they can't be
    seen."""
    pushes = _pushes(repository, source, branch)
    return {push.after: push.actor.login if push.actor else "" for push in pushes}


def _moment(text: Any) -> datetime:
    """A time of the API; where there is none, one far ahead: then nothing follows from it."""
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return datetime.max.replace(tzinfo=UTC)
