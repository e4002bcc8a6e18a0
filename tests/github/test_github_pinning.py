"""Tests of pinning the commit of a pull request that the requester saw."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import github
import pytest

from resolver.errors import Refused
from resolver.github.context.pinning import NOT_KNOWN, pin_head
from tests.github import reports

SEEN, HEAD, NEW = "a" * 40, "b" * 40, "0" * 40
Pushes = list[dict[str, Any]] | int


class PushedRepository:
    """A repository whose newest pushes GitHub lists, or refuses to list with a status."""

    def __init__(self, pushes: Pushes) -> None:
        self.requester = self
        self._pushes = pushes

    def requestJsonAndCheck(self, *_: object) -> tuple[dict[str, str], Pushes]:
        if isinstance(self._pushes, int):
            raise github.GithubException(self._pushes, {"message": "no"}, {})
        return {}, self._pushes


def push(before: str, after: str, seconds: int) -> dict[str, Any]:
    at = reports.WHEN + timedelta(seconds=seconds)
    return {"before": before, "after": after, "timestamp": at.isoformat()}


def late_pushes(count: int, before: str = SEEN) -> list[dict[str, Any]]:
    """So many pushes after the request, the last to the present head, and one long before it."""
    ids = [before, *(f"{number:040x}" for number in range(1, count)), HEAD]
    late = [push(*pair, n) for n, pair in enumerate(pairwise(ids))]
    return [*reversed(late), push(NEW, before, -60)][:100]


def pinned(pushes: Pushes, owner: str = "zoe", **changes: Any) -> tuple[str, str | None]:
    """Return what is used of a pull request from a repository of `owner`, whose base is octo's."""
    head_repository = {"full_name": f"{owner}/demo", "owner": {"login": owner}}
    pull = {
        "number": 7,
        "updated_at": reports.WHEN.isoformat(),  # a push of this second counts as late
        "head": {"sha": HEAD, "ref": "work", "repo": head_repository},
        "base": {"repo": {"full_name": "octo/demo"}},
    }
    repository: Any = PushedRepository(pushes)
    found = pin_head(repository, pull, reports.trigger(**changes))
    return found.head, found.moved


@pytest.mark.attack
@pytest.mark.parametrize("count", [1, 99])
def test_later_pushes_are_never_used(count: int) -> None:
    """Code is pushed to a pull request after the request: the requested commit is used."""
    head, moved = pinned(late_pushes(count))
    assert head == SEEN and f"commits after {SEEN[:12]} are not used" in (moved or "")


def test_the_head_is_used_if_nothing_was_pushed_since_or_the_event_names_it() -> None:
    assert pinned([push(SEEN, HEAD, -60)]) == pinned(404, head=HEAD) == (HEAD, None)
    head, moved = pinned(404, head=SEEN)
    assert head == SEEN and "newer commits than the one asked about" in (moved or "")


@pytest.mark.attack
@pytest.mark.parametrize(
    "pushes",
    [404, 403, late_pushes(100), late_pushes(1, before=NEW), [push(NEW, SEEN, -60)], []],
    ids=["hidden", "forbidden", "too many", "branch made later", "head unknown", "none"],
)
def test_a_fork_whose_commit_at_the_request_is_unknown_is_refused(pushes: Pushes) -> None:
    """A fork does not show what was pushed to it, or so much that the time of the request is not
    reached: the request is refused. A branch that only writers or the requester can push to is
    used as it is."""
    with pytest.raises(Refused, match="not known which commit") as refused:
        pinned(pushes)
    assert "review" in refused.value.next_step
    for owner in ("octo", "alice"):
        assert pinned(pushes, owner) == (HEAD, NOT_KNOWN)


def test_an_outage_is_not_taken_for_a_repository_without_pushes() -> None:
    with pytest.raises(github.GithubException):
        pinned(502)
