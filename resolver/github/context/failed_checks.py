"""Reads the checks that had failed on a commit when the request was made.

That includes what they say, the lines they annotate, and the lines of the job's log that show why
it failed. The content of a log comes from the project's tools and the code they ran. Like the text
of an issue, it is data and never an instruction.

Sources: https://docs.github.com/en/rest/checks/runs
https://docs.github.com/en/rest/commits/statuses
https://docs.github.com/en/rest/actions/workflow-jobs#download-job-logs-for-a-workflow-run
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from github.Repository import Repository
from pydantic import AliasPath, Field

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess, read_rows
from resolver.github.client.answers import ApiAnswer
from resolver.github.client.downloads import DownloadRefusal, download
from resolver.github.client.resources import read_pages
from resolver.github.context.visibility import SeenTexts, utc
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.links import without_pictures
from resolver.github.text.markdown import shorten_text, visible
from resolver.models.issue_context import Annotation, FailedCheck
from resolver.security.formats import find_credentials

MAX_LINE_CHARACTERS = 400
"""Maximum number of characters of a line."""

_TIMESTAMP = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}Z ?")
_RUNNER_ERROR = "##[error]"
_LEFT_OUT = "[... earlier lines left out ...]\n"


def cut_log(text: str, max_characters: int, redact: Callable[[str], str] = str) -> str:
    """Return the end of the log, up to the last error that the runner reports.

    The result has at most `max_characters` characters, with a note about what is left out.
    Timestamps, colors, overwritten progress output and invisible characters are removed.

    redact: removes what must not be shown. It is applied to the whole text before anything is cut,
    because a part of a secret can't be recognized by its format.
    """
    lines = _lines(redact("\n".join(map(_clean_line, text.split("\n")))))
    runner_errors = [index for index, line in enumerate(lines) if _RUNNER_ERROR in line]
    # Only clean-up steps follow the error message of the runner itself.
    end = (runner_errors[-1] if runner_errors else len(lines) - 1) + 1
    tail = "\n".join(lines[:end])
    if len(tail) <= max_characters:
        return tail
    shown = tail[-max(0, max_characters - len(_LEFT_OUT)) :].partition("\n")[2]
    return f"{_LEFT_OUT}{shown}"[:max_characters]


def _clean_line(raw: str) -> str:
    without_timestamp = _TIMESTAMP.sub("", raw.rstrip("\r"))
    return visible(without_timestamp.rpartition("\r")[2]).rstrip()


def _lines(text: str) -> list[str]:
    """Return the lines, long ones truncated."""
    return [
        line if len(line) <= MAX_LINE_CHARACTERS else f"{line[:MAX_LINE_CHARACTERS]} [...]"
        for line in text.rstrip("\n").split("\n")
    ]


MAX_CHECKS = 6
"""Maximum number of failed checks that are read. The number of others is reported."""

MAX_LOG_CHARACTERS = 8_000
"""Maximum number of characters of a job's log that are kept."""

MAX_SUMMARY_CHARACTERS = 2_000
"""Maximum number of characters of a check's summary."""
MAX_MESSAGE_CHARACTERS = 500
"""Maximum number of characters of an annotation."""
MAX_ANNOTATIONS = 15
"""Maximum number of annotations of a check."""

MAX_LOG_BYTES = 64 * 1024 * 1024
"""Maximum number of bytes of a log that are downloaded. The rest of a longer log is not read."""

LOG_TAIL_BYTES = 2 * 1024 * 1024
"""Minimum number of bytes at the end of the downloaded log that are examined."""

_MAX_PAGES = 5
_FAILED_CONCLUSIONS = frozenset({"failure", "timed_out", "action_required", "startup_failure"})


class _Run(ApiAnswer):
    id: int
    name: str
    conclusion: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    html_url: str | None = None
    details_url: str | None = None
    title: str | None = Field(default=None, validation_alias=AliasPath("output", "title"))
    summary: str | None = Field(default=None, validation_alias=AliasPath("output", "summary"))
    annotations_count: int = Field(
        default=0, validation_alias=AliasPath("output", "annotations_count")
    )
    suite: int | None = Field(default=None, validation_alias=AliasPath("check_suite", "id"))
    app: str | None = Field(default=None, validation_alias=AliasPath("app", "slug"))

    @property
    def kind(self) -> tuple[str | None, str, int | None]:
        """The key of the check, which is the same for all attempts."""
        return self.app, self.name, self.suite


class _Status(ApiAnswer):
    context: str
    state: str
    description: str | None = None
    target_url: str | None = None
    created_at: datetime


class _Annotation(ApiAnswer):
    path: str
    start_line: int
    annotation_level: str | None = None
    message: str | None = None
    title: str | None = None


class _Step(ApiAnswer):
    name: str
    conclusion: str | None = None


class _Job(ApiAnswer):
    steps: list[_Step] = Field(default=[])


_Answered = TypeVar("_Answered")


@dataclass(frozen=True)
class FailedCheckReader:
    """Reads the checks of one repository.

    What can't be read is added to `texts.left_out`; it doesn't prevent the work.
    """

    access: GitHubAccess
    repository: Repository
    texts: SeenTexts

    def failed(self, commit: str) -> tuple[FailedCheck, ...]:
        """Return the checks that had failed at the time of the request, the requested one first."""
        short_commit = commit[:12]
        runs = self._read_or_report(f"the checks of {short_commit}", lambda: self._runs(commit))
        statuses = self._read_or_report(
            f"the statuses of {short_commit}", lambda: self._statuses(commit)
        )
        failed = [run for run in runs or () if run.conclusion in _FAILED_CONCLUSIONS]
        readers = [(run.name, partial(self._check, run)) for run in failed]
        readers += [
            (status.context, partial(_check_of_status, status))
            for status in statuses or ()
            if status.state in {"failure", "error"}
        ]
        readers.sort(key=lambda reader: reader[0] != self.texts.trigger.check)
        if len(readers) > MAX_CHECKS:
            self.texts.left_out.append(f"{len(readers) - MAX_CHECKS} more checks that failed")
        return tuple(read() for _, read in readers[:MAX_CHECKS])

    def _read_or_report(self, resource: str, read: Callable[[], _Answered]) -> _Answered | None:
        """Return what `read` returns. If it can't be read, report that and return None."""
        try:
            with self.access.wrap_errors(f"read {resource}", "checks: read, actions: read"):
                return read()
        except ForgeError as error:
            self.texts.left_out.append(error.what)
        except DownloadRefusal as refusal:
            self.texts.left_out.append(f"{resource}: {refusal}")
        return None

    def _runs(self, commit: str) -> Collection[_Run]:
        """Return the newest attempt of each check that had ended at the time of the request."""
        pages = self._pages(f"/commits/{commit}/check-runs", filter="all")
        runs = [run for page in pages for run in read_rows(_Run, page["check_runs"])[0]]
        ended = [(run.completed_at, run) for run in runs if run.completed_at]
        ended.sort(key=lambda item: item[0])
        return {run.kind: run for moment, run in ended if not self._is_late(moment)}.values()

    def _statuses(self, commit: str) -> Collection[_Status]:
        """Return the newest status of each context at the time of the request."""
        pages = self._pages(f"/commits/{commit}/statuses")
        statuses = [status for page in pages for status in read_rows(_Status, page)[0]]
        # GitHub lists statuses newest first, so the first one of a context counts.
        seen = [status for status in statuses if not self._is_late(status.created_at)]
        return {status.context: status for status in reversed(seen)}.values()

    def _is_late(self, moment: datetime) -> bool:
        # A check that ended in the second of the request counts.
        return not self.texts.is_now and utc(moment) > self.texts.trigger.at

    def _check(self, run: _Run) -> FailedCheck:
        name = _one_line(run.name)
        text = f"{run.title or ''}\n\n{run.summary or ''}"
        summary = self.texts.clean(text, f"the output of {name}")
        step, log = ("", "")
        if run.app == "github-actions":
            step, log = self._job(run, name)
        return FailedCheck(
            name=name,
            conclusion=run.conclusion or "",
            url=run.html_url or run.details_url or "",
            step=step,
            summary=_without_secrets(summary, MAX_SUMMARY_CHARACTERS),
            annotations=self._annotations(run, name) if run.annotations_count else (),
            log=log,
        )

    def _annotations(self, run: _Run, name: str) -> tuple[Annotation, ...]:
        """Return the annotations of a check, failures first."""
        path = f"{self.repository.url}/check-runs/{run.id}/annotations"
        answer = self._read_or_report(
            f"the annotations of {name}",
            lambda: read_rows(_Annotation, self._get(path, {"per_page": 100})),
        )
        annotations = answer[0] if answer else []
        order = {"failure": 0, "warning": 1}
        annotations.sort(key=lambda annotation: order.get(annotation.annotation_level or "", 2))
        return tuple(
            Annotation(
                path=_one_line(annotation.path),
                line=annotation.start_line,
                level=_one_line(annotation.annotation_level or ""),
                message=_clean_text(
                    f"{annotation.title or ''}\n{annotation.message or ''}", MAX_MESSAGE_CHARACTERS
                ),
            )
            for annotation in annotations[:MAX_ANNOTATIONS]
        )

    def _job(self, run: _Run, name: str) -> tuple[str, str]:
        """Return the name of the failed step and the log of the job, which has the check's id."""
        path = f"{self.repository.url}/actions/jobs/{run.id}"
        job = self._read_or_report(
            f"the steps of {name}", lambda: _Job.model_validate(self._get(path))
        )
        log = self._read_or_report(f"the log of {name}", lambda: self._download(f"{path}/logs"))
        steps = job.steps if job else []
        failed = [step.name for step in steps if step.conclusion in _FAILED_CONCLUSIONS]
        text = (log or b"").decode("utf-8", "replace")
        return _one_line(failed[0]) if failed else "", cut_log(
            text, MAX_LOG_CHARACTERS, _without_credentials
        )

    def _download(self, path: str) -> bytes:
        """Download a log. GitHub redirects to a URL on another host, valid for one minute."""
        return download(
            path,
            MAX_LOG_BYTES,
            self.access.timeout,
            token_for=lambda url: self.access.token if url == path else None,
            # Every redirect is followed, because GitHub's own API names the host.
            is_allowed=lambda _: True,
            attempts=self.access.attempts,
            tail_bytes=LOG_TAIL_BYTES,
        )

    def _get(self, path: str, query: dict[str, Any] | None = None) -> Any:
        _, answer = self.repository.requester.requestJsonAndCheck("GET", path, query)
        return answer

    def _pages(self, path: str, **query: Any) -> Iterator[Any]:
        url = f"{self.repository.url}{path}"
        return read_pages(self.repository.requester, url, query, _MAX_PAGES)


def _check_of_status(status: _Status) -> FailedCheck:
    return FailedCheck(
        name=_one_line(status.context),
        conclusion=status.state,
        url=status.target_url or "",
        summary=_clean_text(status.description or "", MAX_SUMMARY_CHARACTERS),
    )


def _one_line(text: str) -> str:
    return shorten_text(" ".join(visible(text).split()), 200)


def _clean_text(text: str, limit: int) -> str:
    return _without_secrets(strip_hidden(text).text.strip(), limit)


def _without_secrets(cleaned: str, limit: int) -> str:
    return shorten_text(_without_credentials(without_pictures(cleaned)), limit)


def _without_credentials(text: str) -> str:
    """Return the text with everything redacted that has the format of a credential.

    Such a value may be a secret that the CI system did not know and so did not mask.
    """
    parts, copied_end = [], 0
    for credential in sorted(find_credentials(text), key=lambda match: match.start):
        if credential.start >= copied_end:
            parts += [text[copied_end : credential.start], "[redacted]"]
        copied_end = max(copied_end, credential.end)
    return "".join([*parts, text[copied_end:]])
