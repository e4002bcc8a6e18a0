"""Reads the checks that had failed on a commit when the request was made.

That includes what they say, the lines they annotate, and the lines of the job's log that show why
it failed. The content of a log comes from the project's tools and the code they ran. Like the text
of an issue, it is data and never an instruction.

Sources: https://docs.github.com/en/rest/checks/runs
https://docs.github.com/en/rest/commits/statuses
https://docs.github.com/en/rest/actions/workflow-jobs#download-job-logs-for-a-workflow-run
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from github.Repository import Repository
from pydantic import BaseModel, ConfigDict

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess, read_rows
from resolver.github.client.downloads import Download, DownloadRefusal, download
from resolver.github.context.visibility import utc
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.links import without_pictures
from resolver.github.text.markdown import shorten_text, visible
from resolver.models.issue_context import Annotation, FailedCheck
from resolver.models.run import Trigger, TriggerKind
from resolver.security.formats import find_credentials

MOST_LINE = 400
"""Maximum number of characters of a line."""

TAIL = 80
"""Number of lines before the last error that are kept."""

AROUND = 2
"""Number of lines that are kept before and after each earlier error."""

_STAMP = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}Z ?")
_ENDED = "##[error]"
_MARK = re.compile(
    r"##\[error\]|::error|\berror(?:\[\w+\])?:|\bfatal:|\bpanic(?:ked)?\b|\bTraceback\b"
    r"|\bFAIL(?:ED|URE)?\b|\bnot ok\b|\bnpm ERR!|\bnpm error\b|^E   |[\u2717\u2718\u274c]"
    r"|\b\w{1,60}(?:Error|Exception)\b",
    re.IGNORECASE,
)


def cut_log(text: str, room: int, hide: Callable[[str], str] = str) -> str:
    """Return the lines about the failure: up to the last error, and around earlier errors.

    The result has at most `room` characters, with a note for each part that is left out.
    Timestamps, colors, overwritten progress output and invisible characters are removed.

    hide: removes what must not be shown. It is applied to the whole text before anything is cut,
    because a part of a secret can't be recognized by its format.
    """
    lines = _lines(hide("\n".join(map(_shown, text.split("\n")))))
    marked = [n for n, line in enumerate(lines) if _MARK.search(line)]
    ended = [n for n in marked if _ENDED in lines[n]]
    # Only clean-up steps follow the error message of the runner itself.
    end = (ended[-1] if ended else len(lines) - 1) + 1
    for tail, errors in ((TAIL, 30), (TAIL // 2, 12), (TAIL // 4, 4), (5, 0)):
        kept = set(range(max(0, end - tail), end))
        for number in _first_and_last([n for n in marked if n < end], errors):
            kept.update(range(max(0, number - AROUND), min(end, number + AROUND + 1)))
        told = _told(lines, sorted(kept))
        if len(told) <= room:
            return told
    return told[-room:] if room > 0 else ""


def _shown(raw: str) -> str:
    bare = _STAMP.sub("", raw.rstrip("\r"))
    return visible(bare.rpartition("\r")[2]).rstrip()


def _lines(text: str) -> list[str]:
    """Return the lines, long ones truncated, repeated ones once with the number of times."""
    lines: list[str] = []
    times = 1
    for whole in text.split("\n"):
        line = whole if len(whole) <= MOST_LINE else f"{whole[:MOST_LINE]} [...]"
        if lines and line == lines[-1]:
            times += 1
            continue
        if times > 1 and lines[-1]:
            lines.append(f"[the same line {times} times]")
        times = 1
        lines.append(line)
    if times > 1 and lines[-1]:
        lines.append(f"[the same line {times} times]")
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _first_and_last(numbers: Sequence[int], most: int) -> Iterable[int]:
    """Return the first and last numbers: the first errors are causes, the last ones the summary."""
    if len(numbers) <= most:
        return numbers
    half = most // 2
    return [*numbers[:half], *numbers[len(numbers) - half :]]


def _told(lines: Sequence[str], kept: Sequence[int]) -> str:
    told: list[str] = []
    before = -1
    for number in kept:
        if number > before + 1:
            missing = number - before - 1
            told.append(f"[... {missing} line{'' if missing == 1 else 's'} left out ...]")
        told.append(lines[number])
        before = number
    return "\n".join(told)


MOST = 6
"""Maximum number of failed checks that are read. The number of others is reported."""

MOST_LOG = 8_000
"""Maximum number of characters of a job's log that are kept."""

MOST_SUMMARY = 2_000
"""Maximum number of characters of a check's summary."""
MOST_MESSAGE = 500
"""Maximum number of characters of an annotation."""
MOST_ANNOTATIONS = 15
"""Maximum number of annotations of a check."""

LOG_BYTES = 64 * 1024 * 1024
"""Maximum number of bytes of a log that are downloaded. The rest of a longer log is not read."""

LOG_KEPT = 2 * 1024 * 1024
"""Minimum number of bytes at the end of the downloaded log that are examined."""

_PAGES = 5
_FAILED = frozenset({"failure", "timed_out", "action_required", "startup_failure"})
_JOB = re.compile(r"/actions/runs/\d+/jobs?/(\d+)")


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Named(_Answer):
    slug: str | None = None


class _Suite(_Answer):
    id: int


class _Output(_Answer):
    title: str | None = None
    summary: str | None = None
    annotations_count: int = 0


class _Run(_Answer):
    id: int
    name: str
    conclusion: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    html_url: str | None = None
    details_url: str | None = None
    output: _Output = _Output()
    check_suite: _Suite | None = None
    app: _Named | None = None

    @property
    def kind(self) -> tuple[str, str, int]:
        """The key of the check, which is the same for all attempts."""
        app = (self.app.slug if self.app else None) or ""
        return app, self.name, self.check_suite.id if self.check_suite else 0


class _Status(_Answer):
    context: str
    state: str
    description: str | None = None
    target_url: str | None = None
    created_at: datetime


class _Annotation(_Answer):
    path: str
    start_line: int
    annotation_level: str | None = None
    message: str | None = None
    title: str | None = None


class _Step(_Answer):
    name: str
    conclusion: str | None = None


class _Job(_Answer):
    steps: list[_Step] = []


_Part = TypeVar("_Part")


@dataclass(frozen=True)
class Checks:
    """Reads the checks of one repository.

    What can't be read is added to `left_out`; it doesn't prevent the work.
    """

    access: GitHubAccess
    repository: Repository
    trigger: Trigger

    def failed(self, commit: str, left_out: list[str]) -> tuple[FailedCheck, ...]:
        """Return the checks that had failed at the time of the request, the requested one first."""
        short = commit[:12]
        done = self._part(f"the checks of {short}", lambda: self._runs(commit, left_out), left_out)
        told = self._part(
            f"the statuses of {short}", lambda: self._statuses(commit, left_out), left_out
        )
        runs = [run for run in done or () if run.conclusion in _FAILED]
        statuses = [status for status in told or () if status.state in {"failure", "error"}]
        asked = self.trigger.check
        runs.sort(key=lambda run: run.name != asked)
        statuses.sort(key=lambda status: status.context != asked)
        more = len(runs) + len(statuses) - MOST
        if more > 0:
            left_out.append(f"{more} more checks that failed")
        read = [self._check(run, left_out) for run in runs[:MOST]]
        read += [_status(status) for status in statuses[: MOST - len(read)]]
        return tuple(sorted(read, key=lambda check: check.name != asked))

    def _part(self, what: str, read: Callable[[], _Part], left_out: list[str]) -> _Part | None:
        """Return what `read` returns. On a ForgeError, report it in `left_out` and return None."""
        try:
            with self.access.asking(f"read {what}", "checks: read, actions: read"):
                return read()
        except ForgeError as error:
            left_out.append(error.what)
            return None

    def _runs(self, commit: str, left_out: list[str]) -> list[_Run]:
        """Return the newest attempt of each check that had ended at the time of the request."""
        newest: dict[tuple[str, str, int], _Run] = {}
        for page in self._pages(f"/commits/{commit}/check-runs", filter="all"):
            found, unread = read_rows(_Run, page["check_runs"])
            _tell_unread(unread, f"check{'' if unread == 1 else 's'} of {commit[:12]}", left_out)
            for run in found:
                if run.completed_at is None or self._is_late(run.completed_at):
                    continue
                known = newest.get(run.kind)
                if known is None or (known.completed_at or run.completed_at) <= run.completed_at:
                    newest[run.kind] = run
        return list(newest.values())

    def _statuses(self, commit: str, left_out: list[str]) -> list[_Status]:
        """Return the newest status of each context at the time of the request."""
        newest: dict[str, _Status] = {}
        for page in self._pages(f"/commits/{commit}/statuses"):
            found, unread = read_rows(_Status, page)
            _tell_unread(unread, f"status{'' if unread == 1 else 'es'} of {commit[:12]}", left_out)
            for status in found:
                # GitHub lists statuses newest first, so the first one of a context counts.
                if not self._is_late(status.created_at):
                    newest.setdefault(status.context, status)
        return list(newest.values())

    def _is_late(self, moment: datetime) -> bool:
        asked = self.trigger
        return asked.kind is not TriggerKind.COMMAND_LINE and utc(moment) > asked.at

    def _check(self, run: _Run, left_out: list[str]) -> FailedCheck:
        said = f"{run.output.title or ''}\n\n{run.output.summary or ''}"
        cleaned = strip_hidden(said)
        if cleaned.removed:
            left_out.append(f"hidden in what {_line(run.name)} says: {', '.join(cleaned.removed)}")
        is_job = run.app is not None and run.app.slug == "github-actions"
        step, log = self._job(run, left_out) if is_job else ("", "")
        return FailedCheck(
            name=_line(run.name),
            conclusion=run.conclusion or "",
            url=run.html_url or run.details_url or "",
            step=step,
            summary=_words(said, MOST_SUMMARY),
            annotations=self._annotations(run, left_out) if run.output.annotations_count else (),
            log=log,
        )

    def _annotations(self, run: _Run, left_out: list[str]) -> tuple[Annotation, ...]:
        """Return the annotations of a check, failures first."""
        path = f"{self.repository.url}/check-runs/{run.id}/annotations"
        what = f"the annotations of {_line(run.name)}"
        read = self._part(
            what, lambda: read_rows(_Annotation, self._get(path, {"per_page": 100})), left_out
        )
        found, unread = read or ([], 0)
        words = f"annotation{'' if unread == 1 else 's'} of {_line(run.name)}"
        _tell_unread(unread, words, left_out)
        order = {"failure": 0, "warning": 1}
        said = sorted(found, key=lambda each: order.get(each.annotation_level or "", 2))
        return tuple(
            Annotation(
                path=_line(each.path),
                line=each.start_line,
                level=_line(each.annotation_level or ""),
                message=_words(f"{each.title or ''}\n{each.message or ''}", MOST_MESSAGE),
            )
            for each in said[:MOST_ANNOTATIONS]
        )

    def _job(self, run: _Run, left_out: list[str]) -> tuple[str, str]:
        """Return the name of the failed step and the log of the job that the check belongs to.

        The id of a job is taken from the URL of the check, else it is the id of the check run.
        """
        found = _JOB.search(run.details_url or "")
        path = f"{self.repository.url}/actions/jobs/{found[1] if found else run.id}"
        what = f"the steps of {_line(run.name)}"
        job = self._part(what, lambda: _Job.model_validate(self._get(path)), left_out)
        failed = [step.name for step in job.steps if step.conclusion in _FAILED] if job else []
        return _line(failed[0]) if failed else "", self._log(run, path, left_out)

    def _log(self, run: _Run, path: str, left_out: list[str]) -> str:
        """Download the log. GitHub redirects to a URL on another host, valid for one minute."""
        want = Download(LOG_BYTES, self.access.timeout, end=LOG_KEPT)
        what = f"the log of {_line(run.name)}"

        def read() -> bytes:
            return download(
                f"{path}/logs",
                want,
                token_for=lambda url: self.access.token if url == f"{path}/logs" else "",
                # Every redirect is followed, because GitHub's own API names the host.
                allows=lambda _: True,
                retry=self.access.retry(),
            )

        try:
            data = self._part(what, read, left_out)
        except DownloadRefusal as refusal:
            left_out.append(f"{what}: {refusal}")
            return ""
        return cut_log((data or b"").decode("utf-8", "replace"), MOST_LOG, _without_credentials)

    def _get(self, path: str, query: dict[str, Any] | None = None) -> Any:
        _, found = self.repository.requester.requestJsonAndCheck("GET", path, query)
        return found

    def _pages(self, path: str, **query: Any) -> Iterator[Any]:
        for number in range(1, _PAGES + 1):
            asked = {**query, "per_page": 100, "page": number}
            found = self._get(f"{self.repository.url}{path}", asked)
            yield found
            rows = found["check_runs"] if isinstance(found, dict) else found
            if len(rows) < 100:
                return


def _tell_unread(many: int, what: str, left_out: list[str]) -> None:
    """Report the number of elements of a list whose format is unknown."""
    if many:
        left_out.append(f"{many} {what}, which GitHub describes in a form that is not known")


def _status(status: _Status) -> FailedCheck:
    return FailedCheck(
        name=_line(status.context),
        conclusion=status.state,
        url=status.target_url or "",
        summary=_words(status.description or "", MOST_SUMMARY),
    )


def _line(text: str) -> str:
    return shorten_text(" ".join(visible(text).split()), 200)


def _words(text: str, most: int) -> str:
    shown = without_pictures(strip_hidden(text).text.strip())
    return shorten_text(_without_credentials(shown), most)


def _without_credentials(text: str) -> str:
    """Return the text with everything redacted that has the format of a credential.

    Such a value may be a secret that the CI system did not know and so did not mask.
    """
    kept, copied = [], 0
    for found in sorted(find_credentials(text), key=lambda each: each.start):
        if found.start >= copied:
            kept += [text[copied : found.start], "[redacted]"]
        copied = max(copied, found.end)
    return "".join([*kept, text[copied:]])
