"""Reads the checks that had failed on a commit when the request was made.

That includes what they say, the lines they annotate, and the lines of the job's log that show why
it failed. The content of a log comes from the project's tools and the code they ran. Like the text
of an issue, it is data and never an instruction.

Sources: https://docs.github.com/en/rest/checks/runs
https://docs.github.com/en/rest/commits/statuses
https://docs.github.com/en/rest/actions/workflow-jobs#download-job-logs-for-a-workflow-run
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from github.Repository import Repository
from pydantic import Field

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess, read_rows
from resolver.github.client.answers import ApiAnswer
from resolver.github.client.downloads import Download, DownloadRefusal, download
from resolver.github.client.resources import read_pages
from resolver.github.context.visibility import utc
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.links import without_pictures
from resolver.github.text.markdown import shorten_text, visible
from resolver.models.issue_context import Annotation, FailedCheck
from resolver.models.run import Trigger, TriggerKind
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
_JOB = re.compile(r"/actions/runs/\d+/jobs?/(\d+)")


class _App(ApiAnswer):
    slug: str | None = None


class _Suite(ApiAnswer):
    id: int


class _Output(ApiAnswer):
    title: str | None = None
    summary: str | None = None
    annotations_count: int = 0


class _Run(ApiAnswer):
    id: int
    name: str
    conclusion: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    html_url: str | None = None
    details_url: str | None = None
    output: _Output = _Output()
    check_suite: _Suite | None = None
    app: _App | None = None

    @property
    def kind(self) -> tuple[str, str, int]:
        """The key of the check, which is the same for all attempts."""
        app = (self.app.slug if self.app else None) or ""
        return app, self.name, self.check_suite.id if self.check_suite else 0


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

    What can't be read is added to `left_out`; it doesn't prevent the work.
    """

    access: GitHubAccess
    repository: Repository
    trigger: Trigger

    def failed(self, commit: str, left_out: list[str]) -> tuple[FailedCheck, ...]:
        """Return the checks that had failed at the time of the request, the requested one first."""
        short_commit = commit[:12]
        ended_runs = self._read_or_report(
            f"the checks of {short_commit}", lambda: self._runs(commit), left_out
        )
        current_statuses = self._read_or_report(
            f"the statuses of {short_commit}", lambda: self._statuses(commit), left_out
        )
        runs = [run for run in ended_runs or () if run.conclusion in _FAILED_CONCLUSIONS]
        statuses = [
            status for status in current_statuses or () if status.state in {"failure", "error"}
        ]
        requested_check = self.trigger.check
        runs.sort(key=lambda run: run.name != requested_check)
        statuses.sort(key=lambda status: status.context != requested_check)
        unread_count = len(runs) + len(statuses) - MAX_CHECKS
        if unread_count > 0:
            left_out.append(f"{unread_count} more checks that failed")
        checks = [self._check(run, left_out) for run in runs[:MAX_CHECKS]]
        checks += [_status(status) for status in statuses[: MAX_CHECKS - len(checks)]]
        return tuple(sorted(checks, key=lambda check: check.name != requested_check))

    def _read_or_report(
        self, resource: str, read: Callable[[], _Answered], left_out: list[str]
    ) -> _Answered | None:
        """Return what `read` returns. On a ForgeError, report it in `left_out` and return None."""
        try:
            with self.access.wrap_errors(f"read {resource}", "checks: read, actions: read"):
                return read()
        except ForgeError as error:
            left_out.append(error.what)
            return None

    def _runs(self, commit: str) -> list[_Run]:
        """Return the newest attempt of each check that had ended at the time of the request."""
        newest: dict[tuple[str, str, int], _Run] = {}
        for page in self._pages(f"/commits/{commit}/check-runs", filter="all"):
            page_runs, _ = read_rows(_Run, page["check_runs"])
            for run in page_runs:
                if run.completed_at is None or self._is_late(run.completed_at):
                    continue
                earlier = newest.get(run.kind)
                if (
                    earlier is None
                    or (earlier.completed_at or run.completed_at) <= run.completed_at
                ):
                    newest[run.kind] = run
        return list(newest.values())

    def _statuses(self, commit: str) -> list[_Status]:
        """Return the newest status of each context at the time of the request."""
        newest: dict[str, _Status] = {}
        for page in self._pages(f"/commits/{commit}/statuses"):
            page_statuses, _ = read_rows(_Status, page)
            for status in page_statuses:
                # GitHub lists statuses newest first, so the first one of a context counts.
                if not self._is_late(status.created_at):
                    newest.setdefault(status.context, status)
        return list(newest.values())

    def _is_late(self, moment: datetime) -> bool:
        trigger = self.trigger
        return trigger.kind is not TriggerKind.COMMAND_LINE and utc(moment) > trigger.at

    def _check(self, run: _Run, left_out: list[str]) -> FailedCheck:
        output = f"{run.output.title or ''}\n\n{run.output.summary or ''}"
        cleaned = strip_hidden(output)
        if cleaned.removed:
            left_out.append(
                f"hidden in the output of {_one_line(run.name)}: {', '.join(cleaned.removed)}"
            )
        is_job = run.app is not None and run.app.slug == "github-actions"
        step, log = self._job(run, left_out) if is_job else ("", "")
        return FailedCheck(
            name=_one_line(run.name),
            conclusion=run.conclusion or "",
            url=run.html_url or run.details_url or "",
            step=step,
            summary=_clean_text(output, MAX_SUMMARY_CHARACTERS),
            annotations=self._annotations(run, left_out) if run.output.annotations_count else (),
            log=log,
        )

    def _annotations(self, run: _Run, left_out: list[str]) -> tuple[Annotation, ...]:
        """Return the annotations of a check, failures first."""
        path = f"{self.repository.url}/check-runs/{run.id}/annotations"
        resource = f"the annotations of {_one_line(run.name)}"
        answer = self._read_or_report(
            resource, lambda: read_rows(_Annotation, self._get(path, {"per_page": 100})), left_out
        )
        annotations, _ = answer or ([], 0)
        order = {"failure": 0, "warning": 1}
        ordered = sorted(
            annotations, key=lambda annotation: order.get(annotation.annotation_level or "", 2)
        )
        return tuple(
            Annotation(
                path=_one_line(annotation.path),
                line=annotation.start_line,
                level=_one_line(annotation.annotation_level or ""),
                message=_clean_text(
                    f"{annotation.title or ''}\n{annotation.message or ''}", MAX_MESSAGE_CHARACTERS
                ),
            )
            for annotation in ordered[:MAX_ANNOTATIONS]
        )

    def _job(self, run: _Run, left_out: list[str]) -> tuple[str, str]:
        """Return the name of the failed step and the log of the job that the check belongs to.

        The id of a job is taken from the URL of the check, else it is the id of the check run.
        """
        match = _JOB.search(run.details_url or "")
        path = f"{self.repository.url}/actions/jobs/{match[1] if match else run.id}"
        resource = f"the steps of {_one_line(run.name)}"
        job = self._read_or_report(resource, lambda: _Job.model_validate(self._get(path)), left_out)
        failed_steps = (
            [step.name for step in job.steps if step.conclusion in _FAILED_CONCLUSIONS]
            if job
            else []
        )
        return _one_line(failed_steps[0]) if failed_steps else "", self._log(run, path, left_out)

    def _log(self, run: _Run, path: str, left_out: list[str]) -> str:
        """Download the log. GitHub redirects to a URL on another host, valid for one minute."""
        limits = Download(MAX_LOG_BYTES, self.access.timeout, tail_bytes=LOG_TAIL_BYTES)
        resource = f"the log of {_one_line(run.name)}"

        def read() -> bytes:
            return download(
                f"{path}/logs",
                limits,
                token_for=lambda url: self.access.token if url == f"{path}/logs" else "",
                # Every redirect is followed, because GitHub's own API names the host.
                is_allowed=lambda _: True,
                retry=self.access.retry(),
            )

        try:
            data = self._read_or_report(resource, read, left_out)
        except DownloadRefusal as refusal:
            left_out.append(f"{resource}: {refusal}")
            return ""
        return cut_log(
            (data or b"").decode("utf-8", "replace"), MAX_LOG_CHARACTERS, _without_credentials
        )

    def _get(self, path: str, query: dict[str, Any] | None = None) -> Any:
        _, answer = self.repository.requester.requestJsonAndCheck("GET", path, query)
        return answer

    def _pages(self, path: str, **query: Any) -> Iterator[Any]:
        url = f"{self.repository.url}{path}"
        return read_pages(self.repository.requester, url, query, _MAX_PAGES)


def _status(status: _Status) -> FailedCheck:
    return FailedCheck(
        name=_one_line(status.context),
        conclusion=status.state,
        url=status.target_url or "",
        summary=_clean_text(status.description or "", MAX_SUMMARY_CHARACTERS),
    )


def _one_line(text: str) -> str:
    return shorten_text(" ".join(visible(text).split()), 200)


def _clean_text(text: str, limit: int) -> str:
    cleaned = without_pictures(strip_hidden(text).text.strip())
    return shorten_text(_without_credentials(cleaned), limit)


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
