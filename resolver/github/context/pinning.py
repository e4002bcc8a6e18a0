"""Determines which commit of a pull request the requester saw. Later pushes are not used.

Otherwise the author of a pull request could replace its code between the request of a maintainer
and the start of the run.

Source: https://docs.github.com/en/rest/repos/repos#list-repository-activities
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import github
from github.Repository import Repository
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from resolver.errors import Refused
from resolver.github.client.resources import links_of
from resolver.models.run import Trigger, TriggerKind

PAGE = 100
"""Number of pushes on a page of the API, newest first."""

MOST_PAGES = 10
"""Maximum number of pages that are read to reach the time of the request."""

NOT_KNOWN = "whether it was pushed to since the request is not known"
"""Text for a person if it is unknown whether there were later pushes."""

_UNSEEN = frozenset({403, 404, 409, 451})
"""Statuses with which the API answers if the token can't see the pushes of the repository."""

_ON_CODE = frozenset({TriggerKind.REVIEW_COMMENT, TriggerKind.REVIEW_SUBMITTED})


@dataclass(frozen=True)
class PinnedHead:
    """The commit of the pull request that is used.

    moved: text for a person about pushes since the request, "" for none.
    """

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
    """The pushes to a branch, newest first.

    reaches: True if all pushes back to the wanted time are known.
    """

    known: tuple[_Push, ...] = ()
    reaches: bool = False


def pin_head(repository: Repository, pull: dict[str, Any], trigger: Trigger) -> PinnedHead:
    """Return the newest commit of the pull request at the time of the trigger.

    pull: the pull request as the REST API returns it now. If the event names the commit, that is
    used. Otherwise the pushes to the branch are read, back to the time of the trigger. A command
    line gets the current commit.

    Raises Refused if the commit can't be determined, and somebody without write access to the
    repository can push to the branch. They could replace the code that an authorized person asked
    about.
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
    # The commit before the first late push. A push within the second of the request is late.
    seen = late[-1].before if late else pushes.known[0].after
    return _pinned(seen, head) if seen.strip("0") else _unknown(pull, trigger)


def _unknown(pull: dict[str, Any], trigger: Trigger) -> PinnedHead:
    """Return the current commit if only writers of this repository or the requester can push to it.

    Raises Refused otherwise.
    """
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
    """Return the pushes to the branch, back to the last one before `since`.

    The result is empty if the token can't see the pushes of that repository.
    """
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
    """Return who pushed which commit to the branch, among its newest pushes, by commit.

    Empty if the token can't see the pushes.
    """
    pushes = _pushes(repository, source, branch, datetime.max.replace(tzinfo=UTC))
    return {push.after: push.actor.login if push.actor else "" for push in pushes.known}


def _moment(text: Any) -> datetime:
    """Return a time of the API. If there is none, return one in the far future.

    Such a pull request counts as updated since the request, so its pushes are checked.
    """
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return datetime.max.replace(tzinfo=UTC)
