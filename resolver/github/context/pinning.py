"""Which commit of a pull request the requester saw. Later pushes are not used.

Source: https://docs.github.com/en/rest/repos/repos#list-repository-activities
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import github
from github.Repository import Repository
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from resolver.errors import Refused
from resolver.github.client.listing import links_of
from resolver.models.run import Trigger, TriggerKind

PAGE = 100
"""Pushes of one answer, the newest first."""

MOST_PAGES = 10
"""Answers that are asked for, back to the moment of the request."""

NOT_KNOWN = "whether it was pushed to since the request is not known"

_UNSEEN = frozenset({403, 404, 409, 451})
"""What is answered for a repository whose pushes this token can't see."""

_ON_CODE = frozenset({TriggerKind.REVIEW_COMMENT, TriggerKind.REVIEW_SUBMITTED})


@dataclass(frozen=True)
class PinnedHead:
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


@dataclass(frozen=True)
class _Pushes:
    """Newest first. reaches: whether none between the newest and the moment is missing."""

    known: tuple[_Push, ...] = ()
    reaches: bool = False


def pin_head(repository: Repository, pull: dict[str, Any], trigger: Trigger) -> PinnedHead:
    """The newest commit of the pull request at the trigger's moment.

    pull: as the REST API describes it now. An event that names the commit is believed; else the
    branch's pushes are asked for, back to that moment. A command line asks for what is there now.

    Raises Refused where that can't be known and others than writers of the repository can push
    there: they could exchange the code that somebody with the right has asked about.
    """
    head = str(pull["head"]["sha"])
    if trigger.head:
        return _pinned(trigger.head, head, on_code=trigger.kind in _ON_CODE)
    if trigger.kind is TriggerKind.COMMAND_LINE or _moment(pull.get("updated_at")) < trigger.at:
        return PinnedHead(head)
    source = pull["head"].get("repo")
    if source is None:
        return _unknown(pull, trigger)
    name, branch = str(source["full_name"]), str(pull["head"]["ref"])
    pushes = _pushes(repository, name, branch, trigger.at)
    late = [push for push in pushes.known if push.timestamp >= trigger.at]
    if not pushes.reaches or head not in {push.after for push in pushes.known}:
        return _unknown(pull, trigger)
    # The one before the first that came too late. Within the same second it counts as late.
    seen = late[-1].before if late else pushes.known[0].after
    return _pinned(seen, head) if seen.strip("0") else _unknown(pull, trigger)


def _unknown(pull: dict[str, Any], trigger: Trigger) -> PinnedHead:
    """What is there now, where nobody else than those who may start work, or the requester, can
    have put it there. Raises Refused."""
    source, base = pull["head"].get("repo") or {}, pull["base"]["repo"]
    owner = str((source.get("owner") or {}).get("login") or "")
    writers_alone = source.get("full_name") == base["full_name"]
    if writers_alone or (owner and owner.casefold() == trigger.actor.login.casefold()):
        return PinnedHead(str(pull["head"]["sha"]), NOT_KNOWN)
    raise Refused(
        f"it is not known which commit of #{pull['number']} you saw: its branch is in another "
        "repository, and whether it was pushed to after your request can't be seen",
        "look at its newest commit, then ask in a review of it: that names the commit",
    )


def _pinned(seen: str, now: str, *, on_code: bool = False) -> PinnedHead:
    if seen == now:
        return PinnedHead(now)
    told = (
        "has newer commits than the one asked about"
        if on_code
        else ("was pushed to after the request")
    )
    return PinnedHead(seen, f"it {told}; what came after {seen[:12]} is not used")


def _pushes(repository: Repository, source: str, branch: str, since: datetime) -> _Pushes:
    """The pushes to the branch that it comes from, back to the last one before `since`; none
    where that repository's can't be seen."""
    url = f"/repos/{source}/activity"
    asked = {"ref": f"refs/heads/{branch}", "per_page": PAGE, "direction": "desc"}
    query: dict[str, Any] | None = asked
    known: list[_Push] = []
    for _ in range(MOST_PAGES):
        try:
            headers, listed = repository.requester.requestJsonAndCheck("GET", url, query)
            known += _PUSHES.validate_python(listed)
        except ValidationError:
            return _Pushes()
        except github.GithubException as error:
            if error.status in _UNSEEN and not isinstance(error, github.RateLimitExceededException):
                return _Pushes()
            raise
        url, query = links_of(headers).get("next", ""), None
        if not url or any(push.timestamp < since for push in known):
            newest_first = sorted(known, key=lambda push: push.timestamp, reverse=True)
            return _Pushes(tuple(newest_first), reaches=True)
    return _Pushes(tuple(known))


def pushers(repository: Repository, source: str, branch: str) -> dict[str, str]:
    """Who has put the branch to which commit, among its newest pushes; empty where they can't be
    seen."""
    pushes = _pushes(repository, source, branch, datetime.max.replace(tzinfo=UTC))
    return {push.after: push.actor.login if push.actor else "" for push in pushes.known}


def _moment(text: Any) -> datetime:
    """A time of the API; where there is none, one far ahead: then nothing follows from it."""
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return datetime.max.replace(tzinfo=UTC)
