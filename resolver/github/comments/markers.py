"""Hidden markers: how a later run finds the comments and pull requests of an earlier one.

A marker is the first thing in a text of ours. It means something only in a text that our own
account wrote, and only at its very start: anybody can write one elsewhere.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from resolver.github.comments.report import Ending

_RUN = re.compile(
    r"<!-- resolver:run key=([0-9a-f]{40}) ending=([a-z_]+)"
    r"(?: issue=([1-9][0-9]{0,11}) run=([0-9A-Za-z-]{1,60}))?"
    r"(?: by=([0-9A-Za-z-]{1,60}) since=([0-9]{8}T[0-9]{6}Z) until=([0-9]{8}T[0-9]{6}Z)"
    r"(?: job=([1-9][0-9]{0,19}\.[1-9][0-9]{0,4}(?:\.[0-9a-f]{8}\.[0-9a-f]{8})?))?)? -->"
)
_REVIEW = re.compile(r"<!-- resolver:review key=[0-9a-f]{40} -->")
_THREAD = re.compile(r"<!-- resolver:thread key=([0-9a-f]{40}) thread=[0-9a-f]{40}( whole)? -->")
_REFUSAL = re.compile(r"<!-- resolver:refused actor=([0-9a-f]{40}) -->")
_ANY = re.compile(r"<!-- resolver:[a-z]+(?: [^<>\n]{1,500})? -->\n?")

AT_WORK, DIED = "progress", "died"
"""What stands for the ending in the comment of a run that has none: it is at work, or it was
killed and somebody else has found that out."""

DASHBOARD = "<!-- resolver:dashboard -->"
"""How the text of the dashboard's issue begins."""

_SPOKEN = frozenset({Ending.WAITING, Ending.NO_CHANGE, Ending.ANSWER})
"""Endings whose words people answer to."""

_MOMENT = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class ActiveRunMarker:
    """What the comment of a run at work says of it to other runs.

    until: when it has ended for sure, whatever comments grant it. job: the run of GitHub Actions
    that it is part of, and which attempt of it, like "123.1"; "" elsewhere. What follows says of
    which job, and on which runner, each as a digest: a matrix has several of one name.
    """

    run: str
    since: datetime
    until: datetime
    job: str = ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def may_close(job: str, of: str) -> bool:
    """Whether `job` may speak for what the job `of` has left; both as in AtWork. It may for its
    own, and for a job of another name in the same run: the one that it waited for."""
    own, left = job.split("."), of.split(".")
    if not job or own[0] != left[0]:
        return False
    return len(own) < 4 or len(left) < 4 or own[2] != left[2] or own[3] == left[3]


def run_marker(key: str, ending: Ending, issue: int | None = None, run: str = "") -> str:
    """The marker of a run. The key is hashed, so that no key can end the HTML comment.

    issue, run: given in a pull request, so that it leads to the work it came from.
    """
    work = f" issue={issue} run={run}" if issue and run else ""
    return f"<!-- resolver:run key={_digest(key)} ending={ending.value}{work} -->"


def at_work_marker(key: str, work: ActiveRunMarker) -> str:
    """The marker of a run that is at work."""
    since, until = (f"{at.astimezone(UTC):{_MOMENT}}" for at in (work.since, work.until))
    job = f" job={work.job}" if work.job else ""
    told = f"by={work.run} since={since} until={until}{job}"
    return f"<!-- resolver:run key={_digest(key)} ending={AT_WORK} {told} -->"


def at_work_in(body: str) -> ActiveRunMarker | None:
    """What `body` says of a run at work; None when it is no such comment."""
    found = _RUN.match(body)
    if found is None or found[2] != AT_WORK or not found[5]:
        return None
    try:
        since, until = (
            datetime.strptime(at, _MOMENT).replace(tzinfo=UTC) for at in (found[6], found[7])
        )
    except ValueError:  # like the 31st of February
        return None
    return ActiveRunMarker(run=found[5], since=since, until=until, job=found[8] or "")


def died_marker(body: str) -> str:
    """The marker for the place of the one in `body`, whose run was killed."""
    found = _RUN.match(body)
    return f"<!-- resolver:run key={found[1]} ending={DIED} -->" if found else ""


def is_of_run(body: str, key: str) -> bool:
    """True when `body` tells of the run of `key`, whether it is at work, has ended or died."""
    found = _RUN.match(body)
    return found is not None and found[1] == _digest(key)


def run_of_marker(body: str) -> tuple[int, str] | None:
    """Issue number and run that a pull request's `body` names in its marker."""
    found = _RUN.match(body)
    return (int(found[3]), found[4]) if found and found[3] else None


def refusal_marker(login: str) -> str:
    """The marker of a refusal: one per person and thread."""
    return f"<!-- resolver:refused actor={_digest(login.casefold())} -->"


def answer_marker(key: str) -> str:
    """The marker of a word that is no run's: one per request."""
    return f"<!-- resolver:answer key={_digest(key)} -->"


def review_marker(key: str) -> str:
    """The marker of a review: one per request."""
    return f"<!-- resolver:review key={_digest(key)} -->"


def thread_marker(key: str, thread: str, *, whole: bool = False) -> str:
    """The marker of a reply in a conversation on lines: one per request and conversation.

    whole: it is all that is told of the request.
    """
    return f"<!-- resolver:thread key={_digest(key)} thread={_digest(thread)}{' whole' * whole} -->"


def is_thread_reply(body: str, key: str, *, whole: bool = False) -> bool:
    """True when `body` is such a reply to the request of `key`, in whatever conversation. whole:
    and all that is told of it."""
    found = _THREAD.match(body)
    return found is not None and found[1] == _digest(key) and (bool(found[2]) or not whole)


def is_review(body: str) -> bool:
    """True when `body` is that of a review of ours, whatever its request."""
    return _REVIEW.match(body) is not None


def ending_of(body: str, key: str) -> Ending | None:
    """The ending that `body` tells of, when it starts with the marker of `key`."""
    found = _RUN.match(body)
    if found is None or found[1] != _digest(key) or found[2] not in set(Ending):
        return None
    return Ending(found[2])


def spoken_in(body: str) -> str:
    """What a run of ours asks or answers in `body`, without what is folded below it; "" for any
    other text. Of use only for what our own account wrote."""
    found = _RUN.match(body)
    if found is None or found[2] not in _SPOKEN:
        return ""
    return body[found.end() :].partition("\n<details")[0].strip()


def without_markers(text: str, author: str, own: str) -> str:
    """Return a text of our own account without its markers, which are no hidden text of anybody;
    a text of another author as it is. author, own: logins."""
    return _ANY.sub("", text) if author.casefold() == own.casefold() else text


def check_marker(check: str) -> str:
    """The marker of an issue about a failing check of the default branch: one per check."""
    return f"<!-- resolver:check name={_digest(check)} -->"


def is_of_check(body: str, check: str = "") -> bool:
    """True when `body` is that of an issue about this check, or about any."""
    return body.startswith(check_marker(check) if check else "<!-- resolver:check name=")


def is_refusal_of(body: str, login: str) -> bool:
    """True when `body` is our refusal of this person."""
    found = _REFUSAL.match(body)
    return found is not None and found[1] == _digest(login.casefold())
