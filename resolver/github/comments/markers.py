"""Hidden markers by which a run finds the comments and pull requests of earlier runs.

A marker is an HTML comment at the very start of a text. It is trusted only there, and only in a
text by Resolver's own account: anybody can write one elsewhere.
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
"""Values of `ending` in the comment of a run without one.

The run is active, or it was killed and another run noticed that.
"""

DASHBOARD = "<!-- resolver:dashboard -->"
"""The start of the dashboard issue's body."""

_SPOKEN = frozenset({Ending.WAITING, Ending.NO_CHANGE, Ending.ANSWER})
"""Endings whose text people reply to."""

_MOMENT = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class ActiveRunMarker:
    """The data about an active run in its comment's marker, which other runs read.

    `since` is when the run started. `until` is the time by which it has certainly ended, including
    all extensions that comments may grant. `job` identifies its job in GitHub Actions as
    RUN_ID.ATTEMPT, such as "123.1", followed by digests of the job's name and its runner, because
    the jobs of a matrix can share a name. It is "" outside of Actions.
    """

    run: str
    since: datetime
    until: datetime
    job: str = ""


def _digest(text: str) -> str:
    # JSON can carry lone surrogates, which strict UTF-8 cannot encode.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def may_close(job: str, of: str) -> bool:
    """Return True if `job` may close the comment that the job `of` left in progress.

    It may for its own run, and for a job with another name in the same workflow run, which it
    waited for. It may not for another job of the same matrix, which may still be working. Both have
    the form of `ActiveRunMarker.job`.
    """
    own, left = job.split("."), of.split(".")
    if not job or own[0] != left[0]:
        return False
    return len(own) < 4 or len(left) < 4 or own[2] != left[2] or own[3] == left[3]


def run_marker(key: str, ending: Ending, issue: int | None = None, run: str = "") -> str:
    """Return the marker of a run. The key is hashed, so that no key can close the HTML comment.

    `issue` and `run` are given in a pull request's body and link it to the work it came from.
    """
    work = f" issue={issue} run={run}" if issue and run else ""
    return f"<!-- resolver:run key={_digest(key)} ending={ending.value}{work} -->"


def at_work_marker(key: str, work: ActiveRunMarker) -> str:
    """Return the marker of an active run."""
    since, until = (f"{at.astimezone(UTC):{_MOMENT}}" for at in (work.since, work.until))
    job = f" job={work.job}" if work.job else ""
    told = f"by={work.run} since={since} until={until}{job}"
    return f"<!-- resolver:run key={_digest(key)} ending={AT_WORK} {told} -->"


def at_work_in(body: str) -> ActiveRunMarker | None:
    """Return what `body` says about an active run, or None if it is not the comment of one."""
    found = _RUN.match(body)
    if found is None or found[2] != AT_WORK or not found[5]:
        return None
    try:
        since, until = (
            datetime.strptime(at, _MOMENT).replace(tzinfo=UTC) for at in (found[6], found[7])
        )
    except ValueError:  # such as February 31
        return None
    return ActiveRunMarker(run=found[5], since=since, until=until, job=found[8] or "")


def died_marker(body: str) -> str:
    """Return the marker of a killed run, to replace the one in `body`."""
    found = _RUN.match(body)
    return f"<!-- resolver:run key={found[1]} ending={DIED} -->" if found else ""


def is_of_run(body: str, key: str) -> bool:
    """Return True if `body` is the comment of the run with this key, in any state."""
    found = _RUN.match(body)
    return found is not None and found[1] == _digest(key)


def run_of_marker(body: str) -> tuple[int, str] | None:
    """Return the issue and the run that the marker of a pull request's body names, or None."""
    found = _RUN.match(body)
    return (int(found[3]), found[4]) if found and found[3] else None


def refusal_marker(login: str) -> str:
    """Return the marker of a refusal: one per person and issue."""
    return f"<!-- resolver:refused actor={_digest(login.casefold())} -->"


def answer_marker(key: str) -> str:
    """Return the marker of an answer that does not belong to a run: one per request."""
    return f"<!-- resolver:answer key={_digest(key)} -->"


def review_marker(key: str) -> str:
    """Return the marker of a review: one per request."""
    return f"<!-- resolver:review key={_digest(key)} -->"


def thread_marker(key: str, thread: str, *, whole: bool = False) -> str:
    """Return the marker of a reply in a review thread: one per request and thread.

    `whole` marks a reply that is the only response to the request.
    """
    return f"<!-- resolver:thread key={_digest(key)} thread={_digest(thread)}{' whole' * whole} -->"


def is_thread_reply(body: str, key: str, *, whole: bool = False) -> bool:
    """Return True if `body` is a reply to the request with this key, in any review thread.

    With `whole` it must be the only response to the request.
    """
    found = _THREAD.match(body)
    return found is not None and found[1] == _digest(key) and (bool(found[2]) or not whole)


def is_review(body: str) -> bool:
    """Return True if `body` belongs to a review by Resolver, for any request."""
    return _REVIEW.match(body) is not None


def ending_of(body: str, key: str) -> Ending | None:
    """Return the ending if `body` starts with the marker of the run with this key, else None."""
    found = _RUN.match(body)
    if found is None or found[1] != _digest(key) or found[2] not in set(Ending):
        return None
    return Ending(found[2])


def spoken_in(body: str) -> str:
    """Return the question or answer of a run in `body`, without its folded details.

    Returns "" for any other text. Call it only for texts by Resolver's own account.
    """
    found = _RUN.match(body)
    if found is None or found[2] not in _SPOKEN:
        return ""
    return body[found.end() :].partition("\n<details")[0].strip()


def without_markers(text: str, author: str, own: str) -> str:
    """Return `text` without markers if Resolver's own account wrote it, else unchanged.

    `author` and `own` are logins. Resolver's markers are not hidden text that anybody needs to be
    warned about.
    """
    return _ANY.sub("", text) if author.casefold() == own.casefold() else text


def check_marker(check: str) -> str:
    """Return the marker of an issue about a failing check of the default branch: one per check."""
    return f"<!-- resolver:check name={_digest(check)} -->"


def is_of_check(body: str, check: str = "") -> bool:
    """Return True if `body` is that of an issue about this check, or any check if it is ""."""
    return body.startswith(check_marker(check) if check else "<!-- resolver:check name=")


def is_refusal_of(body: str, login: str) -> bool:
    """Return True if `body` is a refusal of a request by `login`."""
    found = _REFUSAL.match(body)
    return found is not None and found[1] == _digest(login.casefold())
