"""Hidden markers by which a run finds the comments and pull requests of earlier runs.

A marker is an HTML comment at the very start of a text. It is trusted only there, and only in a
text by Resolver's own account: anybody can write one elsewhere.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum


class Ending(StrEnum):
    """The outcomes of a run that its comment distinguishes.

    The value is the name of the comment's template.
    """

    PULL_REQUEST = "pull_request"
    NO_CHANGE = "no_change"
    ANSWER = "answer"
    REVIEW = "review"
    REJECTED = "rejected"
    LIMIT = "limit"
    STUCK = "stuck"
    STOPPED = "stopped"
    WAITING = "waiting"
    CONFIRMATION = "confirmation"
    POLICY = "policy"
    REFUSED = "refused"
    CEILING = "ceiling"
    ERROR = "error"

    @property
    def is_final(self) -> bool:
        """True if a run with the same key must not start again.

        A run with any other ending may be started again on purpose, and its comment is then
        rewritten in place.
        """
        return self in {
            Ending.PULL_REQUEST,
            Ending.NO_CHANGE,
            Ending.ANSWER,
            Ending.REVIEW,
            Ending.REJECTED,
        }


_RUN_MARKER = re.compile(
    r"<!-- resolver:run key=([0-9a-f]{40}) ending=([a-z_]+)"
    r"(?: issue=([1-9][0-9]{0,11}) run=([0-9A-Za-z-]{1,60}))?"
    r"(?: by=([0-9A-Za-z-]{1,60}) since=([0-9]{8}T[0-9]{6}Z) until=([0-9]{8}T[0-9]{6}Z)"
    r"(?: job=([1-9][0-9]{0,19}\.[1-9][0-9]{0,4}(?:\.[0-9a-f]{8}\.[0-9a-f]{8})?))?)? -->"
)
_THREAD_MARKER = re.compile(
    r"<!-- resolver:thread key=([0-9a-f]{40}) thread=[0-9a-f]{40}( whole)? -->"
)
_REFUSAL_MARKER = re.compile(r"<!-- resolver:refused actor=([0-9a-f]{40}) -->")
_ANY_MARKER = re.compile(r"<!-- resolver:[a-z]+(?: [^<>\n]{1,500})? -->\n?")

IN_PROGRESS, DIED = "progress", "died"
"""Values of `ending` in the comment of a run without one.

The run is active, or it was killed and another run noticed that.
"""


_CONVERSATIONAL_ENDINGS = frozenset({Ending.WAITING, Ending.NO_CHANGE, Ending.ANSWER})
"""Endings whose text people reply to."""

_TIME_FORMAT = "%Y%m%dT%H%M%SZ"


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


def may_close(job: str, other_job: str) -> bool:
    """Return True if `job` may close the comment that the job `other_job` left in progress.

    It may for its own run, and for a job with another name in the same workflow run, which it
    waited for. It may not for another job of the same matrix, which may still be working. Both have
    the form of `ActiveRunMarker.job`.
    """
    own_parts, other_parts = job.split("."), other_job.split(".")
    if not job or own_parts[0] != other_parts[0]:
        return False
    return (
        len(own_parts) < 4
        or len(other_parts) < 4
        or own_parts[2] != other_parts[2]
        or own_parts[3] == other_parts[3]
    )


def run_marker(key: str, ending: Ending, issue: int | None = None, run: str = "") -> str:
    """Return the marker of a run. The key is hashed, so that no key can close the HTML comment.

    `issue` and `run` are given in a pull request's body and link it to the work it came from.
    """
    origin = f" issue={issue} run={run}" if issue and run else ""
    return f"<!-- resolver:run key={_digest(key)} ending={ending.value}{origin} -->"


def active_run_marker(key: str, active_run: ActiveRunMarker) -> str:
    """Return the marker of an active run."""
    since, until = (
        f"{moment.astimezone(UTC):{_TIME_FORMAT}}"
        for moment in (active_run.since, active_run.until)
    )
    job = f" job={active_run.job}" if active_run.job else ""
    details = f"by={active_run.run} since={since} until={until}{job}"
    return f"<!-- resolver:run key={_digest(key)} ending={IN_PROGRESS} {details} -->"


def find_active_run(body: str) -> ActiveRunMarker | None:
    """Return what `body` says about an active run, or None if it is not the comment of one."""
    match = _RUN_MARKER.match(body)
    if match is None or match[2] != IN_PROGRESS or not match[5]:
        return None
    try:
        since, until = (
            datetime.strptime(moment, _TIME_FORMAT).replace(tzinfo=UTC)
            for moment in (match[6], match[7])
        )
    except ValueError:  # such as February 31
        return None
    return ActiveRunMarker(run=match[5], since=since, until=until, job=match[8] or "")


def killed_run_marker(body: str) -> str:
    """Return the marker of a killed run, to replace the one in `body`."""
    match = _RUN_MARKER.match(body)
    return f"<!-- resolver:run key={match[1]} ending={DIED} -->" if match else ""


def is_of_run(body: str, key: str) -> bool:
    """Return True if `body` is the comment of the run with this key, in any state."""
    match = _RUN_MARKER.match(body)
    return match is not None and match[1] == _digest(key)


def parse_pull_request_marker(body: str) -> tuple[int, str] | None:
    """Return the issue and the run that the marker of a pull request's body names, or None."""
    match = _RUN_MARKER.match(body)
    return (int(match[3]), match[4]) if match and match[3] else None


def refusal_marker(login: str) -> str:
    """Return the marker of a refusal: one per person and issue."""
    return f"<!-- resolver:refused actor={_digest(login.casefold())} -->"


def answer_marker(key: str) -> str:
    """Return the marker of an answer that does not belong to a run: one per request."""
    return f"<!-- resolver:answer key={_digest(key)} -->"


def review_marker(key: str) -> str:
    """Return the marker of a review: one per request."""
    return f"<!-- resolver:review key={_digest(key)} -->"


def thread_marker(key: str, thread: str, *, is_only_response: bool = False) -> str:
    """Return the marker of a reply in a review thread: one per request and thread.

    `is_only_response` marks a reply that is the only response to the request.
    """
    whole = " whole" if is_only_response else ""
    return f"<!-- resolver:thread key={_digest(key)} thread={_digest(thread)}{whole} -->"


def is_thread_reply(body: str, key: str, *, is_only_response: bool = False) -> bool:
    """Return True if `body` is a reply to the request with this key, in any review thread.

    With `is_only_response` it must be the only response to the request.
    """
    match = _THREAD_MARKER.match(body)
    return (
        match is not None and match[1] == _digest(key) and (bool(match[2]) or not is_only_response)
    )


def ending_of(body: str, key: str) -> Ending | None:
    """Return the ending if `body` starts with the marker of the run with this key, else None."""
    match = _RUN_MARKER.match(body)
    if match is None or match[1] != _digest(key) or match[2] not in set(Ending):
        return None
    return Ending(match[2])


def run_message_in(body: str) -> str:
    """Return the question or answer of a run in `body`, without its folded details.

    Returns "" for any other text. Call it only for texts by Resolver's own account.
    """
    match = _RUN_MARKER.match(body)
    if match is None or match[2] not in _CONVERSATIONAL_ENDINGS:
        return ""
    return body[match.end() :].partition("\n<details")[0].strip()


def without_markers(text: str, author: str, own_login: str) -> str:
    """Return `text` without markers if Resolver's own account wrote it, else unchanged.

    `author` and `own_login` are logins. Nobody needs to be warned about Resolver's markers as about
    other hidden text.
    """
    return _ANY_MARKER.sub("", text) if author.casefold() == own_login.casefold() else text


def check_marker(check: str) -> str:
    """Return the marker of an issue about a failing check of the default branch: one per check."""
    return f"<!-- resolver:check name={_digest(check)} -->"


def is_of_check(body: str, check: str = "") -> bool:
    """Return True if `body` is that of an issue about this check, or any check if it is ""."""
    return body.startswith(check_marker(check) if check else "<!-- resolver:check name=")


def is_refusal_of(body: str, login: str) -> bool:
    """Return True if `body` is a refusal of a request by `login`."""
    match = _REFUSAL_MARKER.match(body)
    return match is not None and match[1] == _digest(login.casefold())
