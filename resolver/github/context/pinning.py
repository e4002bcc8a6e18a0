"""Determines which commit of a pull request the requester saw. Later pushes are not used.

Otherwise the author of a pull request could replace its code between the request of a maintainer
and the start of the run.

Source: https://docs.github.com/en/rest/repos/repos#list-repository-activities
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import github
from github.Repository import Repository
from pydantic import AliasPath, Field, TypeAdapter, ValidationError

from resolver.errors import Refused
from resolver.github.client.answers import ApiAnswer
from resolver.github.client.resources import PAGE_SIZE
from resolver.models.run import Trigger, TriggerKind

NOT_KNOWN = "it is not known whether it was pushed to since the request"
"""Text for a person if it is unknown whether there were later pushes."""

_INVISIBLE_STATUSES = frozenset({403, 404, 409, 451})
"""Statuses with which the API answers if the token can't see the pushes of the repository."""


@dataclass(frozen=True)
class PinnedHead:
    """The commit of the pull request that is used.

    moved: text for a person about pushes since the request, None for none.
    """

    head: str
    moved: str | None = None


class _Push(ApiAnswer):
    before: str
    after: str
    timestamp: datetime
    pusher: str | None = Field(default=None, validation_alias=AliasPath("actor", "login"))


_PUSHES = TypeAdapter(list[_Push])


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
        return _describe_pinned_head(trigger.head, head)
    if (
        trigger.kind is TriggerKind.COMMAND_LINE
        or datetime.fromisoformat(pull["updated_at"]) < trigger.at
    ):
        return PinnedHead(head)
    source = pull["head"].get("repo")
    if source is None:
        return _current_head_or_refuse(pull, trigger)
    name, branch = str(source["full_name"]), str(pull["head"]["ref"])
    pushes = _newest_pushes(repository, name, branch)
    late_pushes = [push for push in pushes if push.timestamp >= trigger.at]
    reaches_request = len(late_pushes) < len(pushes) or len(pushes) < PAGE_SIZE
    if not reaches_request or head not in {push.after for push in pushes}:
        return _current_head_or_refuse(pull, trigger)
    # The commit before the first late push. A push within the second of the request is late.
    seen_commit = late_pushes[-1].before if late_pushes else pushes[0].after
    return (
        _describe_pinned_head(seen_commit, head)
        if seen_commit.strip("0")
        else _current_head_or_refuse(pull, trigger)
    )


def _current_head_or_refuse(pull: dict[str, Any], trigger: Trigger) -> PinnedHead:
    """Return the current commit if only writers of this repository or the requester can push to it.

    Raises Refused otherwise.
    """
    source, base = pull["head"].get("repo") or {}, pull["base"]["repo"]
    owner = str((source.get("owner") or {}).get("login") or "")
    is_own_branch = source.get("full_name") == base["full_name"]
    if is_own_branch or (owner and owner.casefold() == trigger.actor.login.casefold()):
        return PinnedHead(str(pull["head"]["sha"]), NOT_KNOWN)
    raise Refused(
        f"it is not known which commit of #{pull['number']} you saw: its branch is in another "
        "repository, where pushes after your request can't be seen",
        "look at its newest commit, then ask in a review of it, which names the commit",
    )


def _describe_pinned_head(seen_commit: str, current_commit: str) -> PinnedHead:
    if seen_commit == current_commit:
        return PinnedHead(current_commit)
    return PinnedHead(
        seen_commit,
        "it has newer commits than the one asked about; commits after "
        f"{seen_commit[:12]} are not used",
    )


def _newest_pushes(repository: Repository, source: str, branch: str) -> list[_Push]:
    """Return the newest pushes to the branch, at most `PAGE_SIZE`, newest first.

    The result is empty if the token can't see the pushes of that repository.
    """
    query = {"ref": f"refs/heads/{branch}", "per_page": PAGE_SIZE, "direction": "desc"}
    try:
        _, rows = repository.requester.requestJsonAndCheck(
            "GET", f"/repos/{source}/activity", query
        )
        pushes = _PUSHES.validate_python(rows)
    except ValidationError:
        return []
    except github.GithubException as error:
        is_limit = isinstance(error, github.RateLimitExceededException)
        if error.status not in _INVISIBLE_STATUSES or is_limit:
            raise
        return []
    return sorted(pushes, key=lambda push: push.timestamp, reverse=True)


def pushers(repository: Repository, source: str, branch: str) -> dict[str, str]:
    """Return who pushed which commit to the branch, among its newest pushes, by commit.

    Empty if the token can't see the pushes.
    """
    pushes = _newest_pushes(repository, source, branch)
    return {push.after: push.pusher or "" for push in pushes}
