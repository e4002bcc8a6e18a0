"""GitHubForge: one repository of GitHub or of a GitHub Enterprise Server, behind the protocol.

Every write goes to the trigger's own issue in this repository, nowhere else.
"""

import logging
from datetime import datetime
from functools import cached_property
from itertools import islice

import github
from github.Issue import Issue
from github.IssueComment import IssueComment
from github.Repository import Repository

from resolver.errors import ForgeError, UsageError
from resolver.forge.github import publishing
from resolver.forge.github.access import GitHubAccess, check_repository
from resolver.forge.github.files import markdown_files
from resolver.forge.github.labelled import LabelledIssues
from resolver.forge.github.news import ThreadNews
from resolver.forge.github.reading import read_task
from resolver.forge.github.reviews import ReviewPublisher, published_review
from resolver.forge.markers import answer_marker, ending_of, work_of
from resolver.forge.report import Ending, Report
from resolver.forge.wording import comment_body, pull_request_body, pull_request_title
from resolver.model import Command, Publication, PullRequest, Task, Trigger, TriggerKind
from resolver.pull import PublishedReview, Review

logger = logging.getLogger("resolver.forge")

ACTIONS_LOGIN = "github-actions[bot]"
"""Who writes with the token that GitHub gives to an Action; that token may not ask who it is."""

CONFIRMED = "+1"
"""The reaction that says: the run at work has got it."""

MOST_REACTIONS = 500


class GitHubForge:
    """A `Forge`. One per run; its client may not be shared between threads.

    Raises UsageError when repository, token or addresses can't be used.
    """

    def __init__(self, access: GitHubAccess, repository: str) -> None:
        self._access = access
        self._name = check_repository(repository)
        self._client = access.client()

    def whoami(self) -> str:
        return self._own_login

    @cached_property
    def _own_login(self) -> str:
        if self._access.bot_login:
            return self._access.bot_login
        with self._access.asking("ask whose token this is"):
            try:
                return self._client.get_user().login
            except github.GithubException as error:
                # an installation's token has no user; a wrong token is 401
                if error.status not in {403, 404}:
                    raise
        return self._access.viewer() or ACTIONS_LOGIN

    def permission(self, login: str) -> str:
        with self._access.asking(f"read the permission of {login}", "metadata: read"):
            return self._repository.get_collaborator_permission(login)

    def operator_may_push(self) -> bool:
        with self._access.asking(f"read {self._name}", "metadata: read"):
            rights = self._repository.complete().raw_data.get("permissions") or {}
        return bool(rights.get("push"))

    def acknowledge(self, trigger: Trigger) -> None:
        try:
            with self._access.asking("react to the request", "issues: write"):
                self._react(trigger, "eyes")
        except ForgeError as error:
            logger.warning("%s", error.what)

    def _react(self, trigger: Trigger, content: str) -> None:
        issue = self._issue(trigger)
        if trigger.kind is TriggerKind.REVIEW_COMMENT and trigger.comment_id is not None:
            pull = self._repository.get_pull(self._number(trigger))
            pull.get_review_comment(trigger.comment_id).create_reaction(content)
        elif trigger.comment_id is not None and trigger.kind is not TriggerKind.REVIEW_SUBMITTED:
            issue.get_comment(trigger.comment_id).create_reaction(content)
        else:
            issue.create_reaction(content)

    def confirm(self, trigger: Trigger) -> None:
        """Show that what was asked of a run at work has reached it. Never raises."""
        try:
            with self._access.asking("react to the request", "issues: write"):
                self._react(trigger, CONFIRMED)
        except ForgeError as error:
            logger.warning("%s", error.what)

    def is_confirmed(self, trigger: Trigger) -> bool:
        """Whether `confirm` was done for this comment, by any process of ours."""
        if trigger.comment_id is None or trigger.kind is not TriggerKind.ISSUE_COMMENT:
            return False  # what is asked elsewhere never steers a run
        with self._access.asking("read the reactions to the request", "issues: read"):
            comment = self._issue(trigger).get_comment(trigger.comment_id)
            return any(
                each.content == CONFIRMED and each.user.login.casefold() == self.whoami().casefold()
                for each in islice(comment.get_reactions(), MOST_REACTIONS)
            )

    def say(self, trigger: Trigger, text: str) -> None:
        """One comment that is no run's, where it was asked. Given once for each request."""
        own, marker = self.whoami(), answer_marker(trigger.key)
        issue = self._issue(trigger)
        with self._access.asking(f"comment on {self._name}#{trigger.number}", "issues: write"):
            comments = publishing.own_comments(issue, own, trigger.at)
            if not any((c.body or "").startswith(marker) for c in comments):
                issue.create_comment(f"{marker}\n\n{text}\n")

    def markdown_files(self, folder: str, most: int) -> dict[str, bytes]:
        """At most so many markdown files of a folder of the default branch, by path."""
        with self._access.asking(f"read {folder} of {self._name}", "contents: read"):
            return markdown_files(self._repository, folder, most)

    def origin(self, number: int) -> tuple[int, str] | None:
        """Issue and run that the pull request `number` came from, None when it isn't ours."""
        own = self.whoami()
        with self._access.asking(f"read {self._name}#{number}", "pull-requests: read"):
            pull = self._repository.get_pull(number).complete()
            return work_of(pull.body or "") if publishing.is_ours(pull, own) else None

    def news(self, number: int, since: datetime) -> ThreadNews:
        """The comments that issue or pull request `number` gets from now on."""
        return ThreadNews(self._access, self._repository, number, since)

    def labelled(self, label: str) -> LabelledIssues:
        """The open issues that wear the label."""
        return LabelledIssues(self._access, self._repository, label, self.whoami())

    def read(self, trigger: Trigger) -> Task:
        self._number(trigger)
        return read_task(self._access, self._repository, trigger, self.whoami())

    def find_publication(self, trigger: Trigger) -> Publication | None:
        own = self.whoami()
        what = f"look for an earlier run on {self._name}#{trigger.number}"
        with self._access.asking(what, "pull-requests: read"):
            pull = publishing.pull_request_of_run(self._repository, own, trigger)
        with self._access.asking(what, "issues: read"):
            comment = publishing.comment_of_run(self._issue(trigger), own, trigger)
            ending = ending_of(comment.body or "", trigger.key) if comment else None
            told = comment.html_url if comment and ending and ending.is_final else None
            review = self._review_of(trigger, own) if pull is None else None
            if pull is None:
                done = told or review is not None
                return Publication(comment_url=told, review=review, repeated=True) if done else None
            if ending is not Ending.PULL_REQUEST:
                told = None
            return Publication(
                branch=pull.head.ref,
                commit=pull.head.sha,
                pull_request=publishing.described(pull),
                comment_url=told,
                repeated=True,
            )

    def _review_of(self, trigger: Trigger, own: str) -> PublishedReview | None:
        """The review that an earlier run of this request has published."""
        may_be = trigger.command in {Command.REVIEW, Command.CONTINUE, Command.RESUME}
        if not may_be or not trigger.is_pull_request:
            return None
        pull = self._repository.get_pull(self._number(trigger))
        return published_review(pull, own, trigger.key)

    def branches(self, prefix: str) -> set[str]:
        with self._access.asking(f"list the branches of {self._name}", "contents: read"):
            return set(publishing.branch_tips(self._repository, prefix))

    def discard_abandoned(self, prefix: str, run: str) -> None:
        try:
            with self._access.asking("remove what a cut-off attempt has pushed", "contents: write"):
                for branch in publishing.abandoned_branches(self._repository, prefix, run):
                    logger.info("removing %s of %s, left by a cut-off attempt", branch, self._name)
                    publishing.delete_branch(self._repository, branch)
        except ForgeError as error:
            logger.warning("%s", error.what)

    def open_head(self, branch: str) -> str | None:
        own = self.whoami()
        with self._access.asking(f"look at {branch} of {self._name}", "pull-requests: read"):
            pull = publishing.open_pull_request_of(self._repository, branch)
            return pull.head.sha if pull and publishing.is_ours(pull, own) else None

    def open_pull_request(self, report: Report, branch: str) -> PullRequest:
        self._number(report.trigger)
        if report.task is None:
            raise UsageError("a pull request needs the task it answers", "read the issue first")
        base = report.task.base_branch
        title, body = pull_request_title(report), pull_request_body(report)
        what = f"open a pull request from {branch} to {base}"
        pull = publishing.once(
            self._access,
            what,
            "pull-requests: write",
            lambda: publishing.open_pull_request_of(self._repository, branch),
            lambda: publishing.create_pull_request(
                self._repository, base=base, head=branch, title=title, body=body, draft=report.draft
            ),
        )
        with self._access.asking(what, "pull-requests: write"):
            if publishing.is_ours(pull, self.whoami()) and (pull.title, pull.body) != (title, body):
                pull.edit(title=title, body=body)
            return publishing.described(pull)

    def publish_review(self, report: Report, review: Review) -> PublishedReview:
        number = self._number(report.trigger)
        page = f"{self._access.server_url.rstrip('/')}/{self._name}/blob/{review.commit}"
        pull = self._repository.get_pull(number)
        return ReviewPublisher(self._access, pull, self.whoami(), report, page).publish(review)

    def ask(self, report: Report) -> datetime | None:
        return self._told(report).updated_at

    def comment(self, report: Report) -> str:
        return self._told(report).html_url

    def _told(self, report: Report) -> IssueComment:
        """The run's one comment, with the words of the report."""
        trigger, own = report.trigger, self.whoami()
        issue, body = self._issue(trigger), comment_body(report)
        refused = report.ending is Ending.REFUSED
        what = f"comment on {self._name}#{trigger.number}"
        comment = publishing.once(
            self._access,
            what,
            "issues: write",
            lambda: (
                publishing.refusal_of(issue, own, trigger.actor.login)
                if refused
                else publishing.comment_of_run(issue, own, trigger)
            ),
            lambda: issue.create_comment(body),
        )
        with self._access.asking(what, "issues: write"):
            if not refused and comment.body != body:
                comment.edit(body)
        return comment

    @cached_property
    def _repository(self) -> Repository:
        return self._client.get_repo(self._name)

    def _issue(self, trigger: Trigger) -> Issue:
        return self._repository.get_issue(self._number(trigger))

    def _number(self, trigger: Trigger) -> int:
        """The trigger's issue; UsageError when it isn't one of this repository."""
        if trigger.number is None or trigger.repository.casefold() != self._name.casefold():
            raise UsageError(
                f"the request is not about an issue of {self._name}",
                "give OWNER/NAME#N of the same repository",
            )
        return trigger.number
