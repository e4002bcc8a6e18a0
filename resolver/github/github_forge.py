"""One repository of GitHub or GitHub Enterprise Server, as a run reads and writes it.

Every write goes to the trigger's own issue in this repository. A run on a checkout of this machine
has no forge.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property

from github.Repository import Repository

from resolver.github.client import accounts
from resolver.github.client.access import GitHubAccess, check_repository
from resolver.github.client.requester import repository_at
from resolver.github.client.resources import PolledReader, markdown_files, read_request_time
from resolver.github.client.snapshot import RepositorySnapshot, read_snapshot
from resolver.github.comments import open_pull_request as opening
from resolver.github.comments import review as reviews
from resolver.github.comments.check_conversations import CheckConversations
from resolver.github.comments.earlier_publication import find_publication
from resolver.github.comments.find_or_create import branch_tips, create_comment_once
from resolver.github.comments.pull_request_heads import GitHubPullRequestHeads
from resolver.github.comments.report import Report
from resolver.github.comments.run_comments import (
    CONFIRMED,
    RunComments,
    add_reaction,
    issue_number,
    read_confirmations,
    recent_comments,
)
from resolver.github.comments.signed_commits import SignedCommits
from resolver.github.comments.started_conversations import StartedConversations
from resolver.github.comments.thread_replies import ThreadReplyWriter
from resolver.github.context.conversation import SubjectMissing
from resolver.github.context.labeled_issues import LabeledIssues
from resolver.github.context.own_comments import find_run_comment, own_comments_in
from resolver.github.context.own_pull_requests import OwnPullRequest, find_own_pull_requests
from resolver.github.context.read_task import NewComments, read_task
from resolver.github.context.request_status import (
    read_requested_reviewers,
    status_in_conversation,
)
from resolver.github.events.payloads import IssueComment
from resolver.models.pull_request import AnsweredThreads, PublishedReview, Review, ThreadReply
from resolver.models.request_status import RequestStatus
from resolver.models.run import Actor, Publication, PullRequest, Task, Trigger


class GitHubForge:
    """One repository. Each run has one; its client must not be shared between threads.

    Raises UsageError if the repository, the token or the URLs are not valid. All methods raise
    ForgeError, which names the missing permission if that is the cause.
    """

    def __init__(
        self, access: GitHubAccess, repository: str, picture_hosts: tuple[str, ...] = ()
    ) -> None:
        self._access, self._picture_hosts = access, picture_hosts
        self._name = check_repository(repository)
        self._requester = access.requester()
        self._repository = repository_at(self._requester, self._name)
        self._polled = PolledReader(self._requester)
        self._own_account = accounts.OwnAccount(access)
        self._started = StartedConversations(access, self._name, self._own_account)

    # Accounts and the repository

    def whoami(self) -> str:
        """Return the login that Resolver writes as."""
        return self._own_account.login()

    def account(self) -> Actor:
        """Return the account that Resolver writes as, with its id if known.

        This may make another request.
        """
        return self._own_account.read()

    def permission(self, login: str) -> str:
        """See `PermissionReader.permission`."""
        return accounts.read_permission(self._access, self._repository, login)

    def is_member(self, team: str, login: str) -> bool:
        """Return True if `login` is an active member of the team ORG/TEAM."""
        return accounts.is_member(self._access, self._repository, team, login)

    def operator_may_push(self) -> bool:
        """Return True if the owner of the token may push."""
        return accounts.operator_may_push(self._access, self._repository)

    def snapshot(
        self, ref: str, path: str, ref_prefix: str, siblings: Sequence[str]
    ) -> RepositorySnapshot | None:
        """Return the state of the repository's refs; see `read_snapshot`."""
        return read_snapshot(self._access, self._name, ref, path, ref_prefix, siblings)

    def branches(self, prefix: str) -> set[str]:
        """Return the names of the branches that start with `prefix`."""
        with self._access.wrap_errors(f"list the branches of {self._name}", "contents: read"):
            return set(branch_tips(self._repository, prefix))

    def markdown_files(self, folder: str, max_files: int) -> dict[str, bytes]:
        """Return at most `max_files` markdown files of a folder of the default branch, by path."""
        with self._access.wrap_errors(f"read {folder} of {self._name}", "contents: read"):
            return markdown_files(self._repository, folder, max_files)

    def requested_at(self, run: str) -> datetime | None:
        """Return when a workflow run was requested, None if the token may not read that."""
        return read_request_time(self._access, self._repository, run)

    # The request

    def read(self, trigger: Trigger) -> Task:
        """Return the issue as the requester saw it, without hidden text."""
        self._number(trigger)
        conversation = self._started.read(trigger, trigger.subject or 0)
        login, hosts = self.whoami(), self._picture_hosts
        return read_task(self._access, self._repository, trigger, conversation, login, hosts)

    def request_status(self, trigger: Trigger) -> RequestStatus:
        """Return the current state of the request's comment and of its issue."""
        self._started.forget()
        return self.request_status_at_start(trigger)

    def request_status_at_start(self, trigger: Trigger) -> RequestStatus:
        """Return the state of the request as it was when its conversation was read just now."""
        try:
            conversation = self._started.read(trigger, trigger.subject or 0)
            place = self._started.read(trigger, trigger.number or 0)
        except SubjectMissing:
            return RequestStatus(exists=False)
        reviewers = read_requested_reviewers(self._access, self._repository, trigger)
        return status_in_conversation(conversation, place, trigger, reviewers)

    def acknowledge(self, trigger: Trigger) -> None:
        """Show at once that the request was seen. Never raises: the run does not depend on it."""
        add_reaction(self._access, self._repository, self._number(trigger), trigger, "eyes")

    def confirm(self, trigger: Trigger) -> None:
        """Show that an active run has received what the comment asks. Never raises."""
        add_reaction(self._access, self._repository, self._number(trigger), trigger, CONFIRMED)

    def is_confirmed(self, trigger: Trigger) -> bool:
        """Return True if any of Resolver's processes called `confirm` for this comment."""
        logins = read_confirmations(self._access, self._polled, self._repository, trigger)
        return bool(logins) and self.whoami().casefold() in logins

    def new_comments(self, number: int, since: datetime) -> NewComments:
        """Return the reader of new comments on issue or pull request `number`."""
        return NewComments(self._access, self._repository, number, since)

    def recent_comments(self, number: int) -> Sequence[IssueComment]:
        """Return the newest comments of an issue, newest first."""
        return recent_comments(self._access.with_short_timeouts(), self._name, number)

    def labeled(self, label: str) -> LabeledIssues:
        """Return the open issues that have the label."""
        return LabeledIssues(self._access, self._repository, label, self.whoami())

    # What was published

    def find_publication(self, trigger: Trigger) -> Publication | None:
        """Return what an earlier run with the same key published, or None if the run may start.

        `comment_url` is None if that run was killed after it opened its pull request and before it
        wrote its final comment.
        """
        conversation = self._started.read(trigger, self._number(trigger))
        login = self.whoami()  # the conversation names it, if it was not known before
        pulls = self._started.newest_pulls(self._repository)
        return find_publication(self._access, self._repository, login, trigger, conversation, pulls)

    def has_run_comment(self, trigger: Trigger) -> bool:
        """Return True if a run with this key has written a comment on the issue."""
        conversation = self._started.read(trigger, self._number(trigger))
        comments = own_comments_in(conversation, self._repository, self.whoami())
        return find_run_comment(comments, trigger) is not None

    def has_active_run(self, trigger: Trigger) -> bool:
        """Return True if a comment says that the run with this key waits or is active."""
        return self.run_comments.find_active_run(trigger) is not None

    def is_pull_request(self, number: int) -> bool:
        """Return True if `number` is a pull request."""
        with self._access.wrap_errors(f"read {self._name}#{number}", "issues: read"):
            return self._repository.get_issue(number).pull_request is not None

    def own_pull_requests(self, prefix: str, since: datetime) -> list[OwnPullRequest]:
        """Return the pull requests that Resolver opened since then, newest first."""
        return find_own_pull_requests(self._access, self._name, self.whoami(), prefix, since)

    @cached_property
    def _heads(self) -> GitHubPullRequestHeads:
        return GitHubPullRequestHeads(self._access, self._repository, self.whoami())

    def heads(self) -> GitHubPullRequestHeads:
        """Return the reader of pull request heads, of this repository and its forks."""
        return self._heads

    # Writing

    def open_pull_request(self, report: Report, branch: str, is_new: bool = False) -> PullRequest:
        """Return the pull request from `branch`, which is opened if there is none.

        A comment says what the run has added to an existing one of Resolver's own. `is_new` is True
        if this run has created the branch just now, so that there is no pull request to look for.
        """
        self._number(report.trigger)
        access, login = self._access, self.whoami()
        return opening.open_pull_request(access, self._repository, login, report, branch, is_new)

    def signer(self) -> SignedCommits:
        """Return what creates commits again through the API, so that GitHub signs them."""
        return SignedCommits(self._access, self._repository)

    def publish_review(self, report: Report, review: Review) -> PublishedReview:
        """Return the review of the trigger's pull request, which is published unless it exists.

        If GitHub refuses the lines of a comment, all comments go into the body of the review.
        """
        pull = self._repository.get_pull(self._number(report.trigger))
        return reviews.submit_review(self._access, pull, self.whoami(), report, review)

    def answer_threads(
        self, report: Report, replies: Sequence[ThreadReply], commit: str | None
    ) -> AnsweredThreads:
        """Write one reply in each of these review threads, unless it exists.

        `commit` is the commit that was added to the pull request, None for none.
        """
        self._number(report.trigger)
        login = self.whoami()
        answers = ThreadReplyWriter(self._access, self._repository, login, report, commit)
        return answers.post(replies)

    def post_answer(self, trigger: Trigger, text: str) -> None:
        """Answer the request with a comment that belongs to no run, at most once per request."""
        operation = f"comment on {self._name}#{trigger.number}"
        issue = self._repository.get_issue(self._number(trigger))
        create_comment_once(self._access, issue, self.whoami(), trigger, text, operation)

    def ask(self, report: Report) -> datetime | None:
        """Write what the run waits for into its comment, and return when that was published.

        The time is by GitHub's clock. Returns None if there is nobody to ask.
        """
        return self.run_comments.write_report(report).updated_at

    def comment(self, report: Report, seconds: float | None = None) -> str:
        """Write how the run ended into its comment and return the URL of that.

        There is one comment per key. `seconds` limits how long this is retried while GitHub is
        unavailable; None applies the same limit as for other writes.
        """
        return self.run_comments.write_report(report, seconds).html_url

    def check_conversations(self) -> CheckConversations:
        """Return the reader of the conversations about failing checks."""
        return CheckConversations(self._access, self._repository, self.whoami())

    def progress_writer(self) -> RunComments:
        """Return the writer of progress comments, for use by one other thread.

        It has a client of its own with short timeouts. Raises ForgeError.
        """
        # The login is known by now, from the search for what an earlier run published.
        hasty_access = self._access.with_short_timeouts(
            bot_login=self.whoami(), pause_between_writes=0.0
        )
        return self._run_comments(hasty_access, GitHubForge(hasty_access, self._name)._repository)

    @property
    def run_comments(self) -> RunComments:
        """The comments of runs in this repository."""
        return self._run_comments(self._access, self._repository)

    def _run_comments(self, access: GitHubAccess, repository: Repository) -> RunComments:
        listed = self._started.own_comments(repository, self.whoami())
        return RunComments(access, repository, self.whoami(), listed)

    def _number(self, trigger: Trigger) -> int:
        return issue_number(trigger, self._name)
