"""Writes comments on GitHub: those of runs, and reactions.

A run's comment is created when the run starts and edited while it works and when it ends. The
comments of runs that were killed are found and closed by a later run.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import github
from github.Issue import Issue
from github.IssueComment import IssueComment
from github.Repository import Repository

from resolver.errors import ForgeError, UsageError
from resolver.github.client.access import GitHubAccess, read_rows
from resolver.github.client.requester import repository_at
from resolver.github.client.resources import PolledReader
from resolver.github.comments import comment_text, find_or_create
from resolver.github.comments.progress import RunProgress, killed_run_body, progress_body
from resolver.github.comments.report import Report
from resolver.github.context import own_comments
from resolver.github.events.payloads import IssueComment as IssueCommentPayload
from resolver.github.text.markers import (
    ActiveRunMarker,
    Ending,
    find_active_run,
    is_of_run,
    is_refusal_of,
    may_close,
)
from resolver.models.run import Trigger, TriggerKind

logger = logging.getLogger("resolver.github")


def add_reaction(
    access: GitHubAccess, repository: Repository, number: int, trigger: Trigger, content: str
) -> None:
    """Add a reaction to what made the request on issue or pull request `number`. Never raises."""
    try:
        with access.wrap_errors("react to the request", "issues: write"):
            _react(repository, number, trigger, content)
    except ForgeError as error:
        logger.warning("%s", error.what)


def _react(repository: Repository, number: int, trigger: Trigger, content: str) -> None:
    issue = repository.get_issue(number)
    if trigger.kind is TriggerKind.REVIEW_COMMENT and trigger.comment_id is not None:
        pull = repository.get_pull(number)
        pull.get_review_comment(trigger.comment_id).create_reaction(content)
    elif trigger.comment_id is not None and trigger.kind is not TriggerKind.REVIEW_SUBMITTED:
        issue.get_comment(trigger.comment_id).create_reaction(content)
    else:
        issue.create_reaction(content)


CONFIRMED = "+1"
"""The reaction that confirms that an active run has received a comment."""

MAX_REACTIONS = 100


def read_confirmations(
    access: GitHubAccess, polled: PolledReader, repository: Repository, trigger: Trigger
) -> set[str]:
    """Return the logins of those who confirmed the trigger's comment, in lower case.

    Raises ForgeError.
    """
    if trigger.comment_id is None or trigger.kind is not TriggerKind.ISSUE_COMMENT:
        return set()  # only issue comments control a run
    with access.wrap_errors("read the reactions to the request", "issues: read"):
        path = f"{repository.url}/issues/comments/{trigger.comment_id}/reactions"
        listed = polled.get(path, {"content": CONFIRMED, "per_page": MAX_REACTIONS})
        reactions = (one for one in listed if one["content"] == CONFIRMED)
        return {(one["user"] or {}).get("login", "").casefold() for one in reactions}


DELETED_STATUSES = frozenset({404, 410})


def _edit_unless_deleted(comment: IssueComment, body: str) -> bool:
    """Replace the text of a comment. Return False if the comment was deleted."""
    try:
        comment.edit(body)
    except github.GithubException as error:
        if error.status not in DELETED_STATUSES:
            raise
        return False
    return True


def issue_number(trigger: Trigger, repository: str) -> int:
    """Return the number of the trigger's issue. Raises UsageError if it is not in `repository`."""
    if trigger.number is None or trigger.repository.casefold() != repository.casefold():
        raise UsageError(
            f"the request is not about an issue of {repository}",
            "give OWNER/NAME#N of the same repository",
        )
    return trigger.number


@dataclass
class RunComments:
    """Reads and writes the comments of runs in one repository.

    `own_login` is the login that Resolver writes as. `listed` has Resolver's own comments on those
    issues, by number, whose comments were read just now. All methods raise ForgeError.
    """

    access: GitHubAccess
    repository: Repository
    own_login: str
    listed: dict[int, Sequence[IssueComment]] = field(default_factory=dict)
    _searched: dict[int, Sequence[IssueComment]] = field(default_factory=dict)

    @property
    def _name(self) -> str:
        return self.repository.full_name

    def _own_comments(self, issue: Issue, number: int) -> Sequence[IssueComment]:
        """Return all of Resolver's own comments, newest first. A second call reads them again."""
        listed = self.listed.pop(number, None)
        return own_comments.own_comments(issue, self.own_login, None) if listed is None else listed

    def write_report(self, report: Report, seconds: float | None = None) -> IssueComment:
        """Write the report into the run's comment, which is created if there is none.

        `seconds` limits how long this is retried; None leaves that to the client's retry policy.
        """
        trigger, body = report.trigger, comment_text.comment_body(report)
        issue, operation = self._issue(trigger), self._describe_write(trigger)
        is_refusal = report.ending is Ending.REFUSED

        def find() -> IssueComment | None:
            since = None if is_refusal else own_comments.searched_since(trigger)
            comments = own_comments.own_comments(issue, self.own_login, since)
            run_comment = own_comments.find_run_comment(comments, trigger)
            if not is_refusal or (run_comment and find_active_run(run_comment.body or "")):
                return run_comment
            author = trigger.actor.login
            return next((c for c in comments if is_refusal_of(c.body or "", author)), None)

        def attempt() -> IssueComment:
            if report.progress_comment_id is not None:
                comment = issue.get_comment(report.progress_comment_id)
                if _edit_unless_deleted(comment, body):
                    return comment
            comment = find() or issue.create_comment(body)
            # A person whose earlier request was refused here does not get the same refusal again.
            is_repeated_refusal = is_refusal and is_refusal_of(
                comment.body or "", trigger.actor.login
            )
            if comment.body != body and not is_repeated_refusal:
                comment.edit(body)
            return comment

        return self.access.retry_until_success(operation, "issues: write", attempt, seconds)

    def write_progress(self, progress: RunProgress, comment_id: int | None) -> int | None:
        """See `ProgressWriter.write_progress`."""
        body, operation = progress_body(progress), self._describe_write(progress.trigger)
        number = issue_number(progress.trigger, self._name)
        issue = self.repository.get_issue(number)
        listed: Sequence[IssueComment] = ()
        if comment_id is not None:
            with self.access.wrap_errors(operation, "issues: write"):
                exists = _edit_unless_deleted(issue.get_comment(comment_id), body)
            return comment_id if exists else None

        def find() -> IssueComment | None:
            nonlocal listed
            listed = self._own_comments(issue, number)
            return own_comments.find_run_comment(listed, progress.trigger)

        comment = find_or_create.write_once(
            self.access, operation, "issues: write", find, lambda: issue.create_comment(body)
        )
        with self.access.wrap_errors(operation, "issues: write"):
            if comment.body != body:
                comment.edit(body)
        self._searched[number] = listed  # for `close_killed_runs`
        return comment.id

    def close_killed_runs(
        self,
        number: int,
        now: datetime,
        mention: str,
        excluded_trigger: Trigger | None = None,
    ) -> int:
        """Mark the comments of killed runs on an issue as died, and return how many there were.

        The comment of the run for the trigger `excluded_trigger` is left alone.
        """

        def is_killed(body: str, active_run: ActiveRunMarker) -> bool:
            if excluded_trigger is not None and is_of_run(body, excluded_trigger.key):
                return False
            return not self.is_alive(active_run, now)

        return self._close_comments(number, mention, is_killed)

    def close_job(
        self, number: int, job: str | None, mention: str, trigger: Trigger | None = None
    ) -> int:
        """Close the comments that a GitHub Actions job left in progress on an issue.

        With `trigger`, only that of its run; it gets the pull request that the run opened before it
        was killed, if it did. The others say that the run died. Returns how many comments were
        closed. `job` has the form of `ActiveRunMarker.job`.
        """

        def is_killed(body: str, active_run: ActiveRunMarker) -> bool:
            is_meant = trigger is None or is_of_run(body, trigger.key)
            return is_meant and may_close(job, active_run.job)

        return self._close_comments(number, mention, is_killed, trigger=trigger)

    def _close_comments(
        self,
        number: int,
        mention: str,
        is_killed: Callable[[str, ActiveRunMarker], bool],
        *,
        trigger: Trigger | None = None,
    ) -> int:
        """Close the comments of killed runs on an issue, and return how many there were.

        is_killed: gets the text of an active run's comment, and what its marker says.
        trigger: the trigger of these runs, if all have the same. Their comments get the pull
            request that the run opened, if it did.
        """
        closed = 0
        issue = self.repository.get_issue(number)
        operation = f"look for runs that died on {self._name}#{number}"
        with self.access.wrap_errors(operation, "issues: write"):
            listed = self._searched.pop(number, None)
            for comment in self._own_comments(issue, number) if listed is None else listed:
                active_run = find_active_run(comment.body or "")
                if active_run is None or not is_killed(comment.body or "", active_run):
                    continue
                final_text = self._final_comment_of_killed_run(trigger, active_run, mention)
                page = f"{self.access.server_url.rstrip('/')}/{self._name}/actions/runs"
                died_text = killed_run_body(comment.body, active_run, mention, page)
                comment.edit(final_text or died_text)
                closed += 1
        return closed

    def find_active_run(self, trigger: Trigger) -> ActiveRunMarker | None:
        """Return what the comment of the trigger's run says about it, or None if it is not active.

        A run is active while it waits or works.
        """
        with self.access.wrap_errors(self._describe_write(trigger), "issues: read"):
            comment = own_comments.comment_of_run(self._issue(trigger), self.own_login, trigger)
            return find_active_run(comment.body or "") if comment else None

    def is_alive(self, active_run: ActiveRunMarker, now: datetime) -> bool:
        """Return True if the run may still be active.

        A run in GitHub Actions is looked up there. One that has no job, or whose job cannot be
        read, counts as active until the time at which it must have ended.

        Source: https://docs.github.com/en/rest/actions/workflow-runs#get-a-workflow-run
        """
        if now > active_run.until:
            return False
        if active_run.job is None:
            return True
        id, _, attempt = active_run.job.partition(".")
        path = f"{self.repository.url}/actions/runs/{id}"
        try:
            with self.access.wrap_errors("look at a run of GitHub Actions", "actions: read"):
                try:
                    _, run = self.repository.requester.requestJsonAndCheck("GET", path)
                except github.GithubException as error:
                    if error.status != 404:
                        raise
                    return False  # the workflow run was deleted, with its log
                was_restarted = int(run.get("run_attempt") or 1) > int(attempt)
                return not was_restarted and run.get("status") != "completed"
        except ForgeError as error:
            logger.info("%s", error.what)  # without `actions: read` only the time limit is known
            return True

    def _final_comment_of_killed_run(
        self, trigger: Trigger | None, active_run: ActiveRunMarker, mention: str
    ) -> str | None:
        """Return the final comment of a killed run, None unless it opened a pull request."""
        if trigger is None:
            return None
        newest = find_or_create.newest_pulls(self.repository)
        pull = find_or_create.pull_request_of_run(newest, self.own_login, trigger)
        if pull is None:
            return None
        report = Report(
            trigger=trigger,
            run=active_run.run,
            mention=mention,
            pull_request=find_or_create.describe_pull_request(pull),
        )
        return comment_text.comment_body(report)

    def _issue(self, trigger: Trigger) -> Issue:
        return self.repository.get_issue(issue_number(trigger, self._name))

    def _describe_write(self, trigger: Trigger) -> str:
        return f"comment on {self._name}#{trigger.number}"


MAX_COMMENTS = 100
"""Maximum number of newest comments of an issue that are read."""


def recent_comments(
    access: GitHubAccess, repository: str, number: int
) -> list[IssueCommentPayload]:
    """Return the newest comments of an issue, newest first. Raises ForgeError."""
    with access.wrap_errors(f"read the comments of {repository}#{number}", "issues: read"):
        issue = repository_at(access.requester(), repository).get_issue(number)
        rows = [comment.raw_data for comment in own_comments.newest_comments(issue, MAX_COMMENTS)]
        return list(reversed(read_rows(IssueCommentPayload, rows)[0]))
