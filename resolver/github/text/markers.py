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


_MARKER = re.compile(
    r"<!-- resolver:(?P<kind>[a-z]+)(?P<fields>(?: [a-z]+=[0-9A-Za-z_.-]{1,60}){1,9}) -->\n?"
)

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
    RUN_ID.ATTEMPT, such as "123.1". It is None outside of Actions.
    """

    run: str
    since: datetime
    until: datetime
    job: str | None = None


def _digest(text: str) -> str:
    # JSON can carry lone surrogates, which strict UTF-8 cannot encode.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _write(kind: str, **fields: str | None) -> str:
    """Return a marker. No field can close the HTML comment."""
    words = (f" {name}={value}" for name, value in fields.items() if value)
    return f"<!-- resolver:{kind}{''.join(words)} -->"


def _read(kind: str, body: str) -> dict[str, str]:
    """Return the fields of the marker that `body` starts with; none if it is of another kind."""
    match = _MARKER.match(body)
    if match is None or match["kind"] != kind:
        return {}
    return dict(word.split("=", 1) for word in match["fields"].split())


def may_close(job: str | None, other_job: str | None) -> bool:
    """Return True if `job` may close the comment that the job `other_job` left in progress.

    It may for the jobs of its own workflow run, for which it has waited. Both have the form of
    `ActiveRunMarker.job`.
    """
    if job is None or other_job is None:
        return False
    return job.partition(".")[0] == other_job.partition(".")[0]


def run_marker(key: str, ending: Ending, issue: int | None = None, run: str | None = None) -> str:
    """Return the marker of a run.

    `issue` and `run` are given in a pull request's body and link it to the work it came from.
    """
    origin = {"issue": str(issue), "run": run} if issue and run else {}
    return _write("run", key=_digest(key), ending=ending.value, **origin)


def active_run_marker(key: str, active_run: ActiveRunMarker) -> str:
    """Return the marker of an active run."""
    since, until = (
        f"{moment.astimezone(UTC):{_TIME_FORMAT}}"
        for moment in (active_run.since, active_run.until)
    )
    return _write(
        "run", key=_digest(key), ending=IN_PROGRESS, by=active_run.run, since=since, until=until,
        job=active_run.job,
    )  # fmt: skip


def find_active_run(body: str) -> ActiveRunMarker | None:
    """Return what `body` says about an active run, or None if it is not the comment of one."""
    fields = _read("run", body)
    if fields.get("ending") != IN_PROGRESS:
        return None
    try:
        since, until = (
            datetime.strptime(fields[name], _TIME_FORMAT).replace(tzinfo=UTC)
            for name in ("since", "until")
        )
        return ActiveRunMarker(fields["by"], since, until, fields.get("job"))
    except (KeyError, ValueError):  # such as February 31
        return None


def killed_run_marker(body: str) -> str:
    """Return the marker of a killed run, to replace the one in `body`."""
    return _write("run", key=_read("run", body).get("key"), ending=DIED)


def is_of_run(body: str, key: str) -> bool:
    """Return True if `body` is the comment of the run with this key, in any state."""
    return _read("run", body).get("key") == _digest(key)


def ending_of(body: str, key: str) -> Ending | None:
    """Return the ending if `body` starts with the marker of the run with this key, else None."""
    ending = _read("run", body).get("ending")
    return Ending(ending) if is_of_run(body, key) and ending in set(Ending) else None


def parse_pull_request_marker(body: str) -> tuple[int, str] | None:
    """Return the issue and the run that the marker of a pull request's body names, or None."""
    fields = _read("run", body)
    issue = fields.get("issue", "")
    return (int(issue), fields["run"]) if issue.isdecimal() and "run" in fields else None


def run_message_in(body: str) -> str | None:
    """Return the question or answer of a run in `body`, without its folded details.

    Returns None for any other text. Call it only for texts by Resolver's own account.
    """
    if _read("run", body).get("ending") not in _CONVERSATIONAL_ENDINGS:
        return None
    return _MARKER.sub("", body, count=1).partition("\n<details")[0].strip() or None


def refusal_marker(login: str) -> str:
    """Return the marker of a refusal: one per person and issue."""
    return _write("refused", actor=_digest(login.casefold()))


def is_refusal_of(body: str, login: str) -> bool:
    """Return True if `body` is a refusal of a request by `login`."""
    return _read("refused", body).get("actor") == _digest(login.casefold())


def answer_marker(key: str) -> str:
    """Return the marker of an answer that does not belong to a run: one per request."""
    return _write("answer", key=_digest(key))


def review_marker(key: str) -> str:
    """Return the marker of a review: one per request."""
    return _write("review", key=_digest(key))


def thread_marker(key: str, thread: str, *, is_only_response: bool = False) -> str:
    """Return the marker of a reply in a review thread: one per request and thread.

    `is_only_response` marks a reply that is the only response to the request.
    """
    whole = "1" if is_only_response else None
    return _write("thread", key=_digest(key), thread=_digest(thread), whole=whole)


def is_thread_reply(body: str, key: str, *, is_only_response: bool = False) -> bool:
    """Return True if `body` is a reply to the request with this key, in any review thread.

    With `is_only_response` it must be the only response to the request.
    """
    fields = _read("thread", body)
    return fields.get("key") == _digest(key) and ("whole" in fields or not is_only_response)


def check_marker(check: str) -> str:
    """Return the marker of an issue about a failing check of the default branch: one per check."""
    return _write("check", name=_digest(check))


def is_of_check(body: str, check: str | None = None) -> bool:
    """Return True if `body` is that of an issue about this check, or about any if it is None."""
    name = _read("check", body).get("name")
    return name is not None if check is None else name == _digest(check)


def without_markers(text: str, author: str, own_login: str) -> str:
    """Return `text` without markers if Resolver's own account wrote it, else unchanged.

    `author` and `own_login` are logins. Nobody needs to be warned about Resolver's markers as about
    other hidden text.
    """
    return _MARKER.sub("", text) if author.casefold() == own_login.casefold() else text
