"""Implements `Forge` for one repository of GitHub or GitHub Enterprise Server.

Every write goes to the trigger's own issue in this repository.
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from github.Issue import Issue
from github.PullRequest import PullRequest as GitHubPullRequest
from github.Repository import Repository

from resolver.errors import ForgeError
from resolver.github.client import accounts
from resolver.github.client.access import GitHubAccess, check_repository
from resolver.github.client.requester import repository_at
from resolver.github.client.resources import PolledReader, markdown_files
from resolver.github.client.snapshot import RepositorySnapshot, SnapshotQuery, read_snapshot
from resolver.github.comments import find_or_create
from resolver.github.comments import open_pull_request as opening
from resolver.github.comments import review as reviews
from resolver.github.comments.check_conversations import CheckConversations
from resolver.github.comments.pull_request_heads import GitHubPullRequestHeads
from resolver.github.comments.report import Report
from resolver.github.comments.run_comments import (
    RunComments,
    add_reaction,
    issue_number,
    recent_comments,
)
from resolver.github.comments.signed_commits import SignedCommits
from resolver.github.comments.started_conversations import StartedConversations
from resolver.github.comments.thread_replies import ThreadReplyWriter, reply_of_run
from resolver.github.context import own_comments
from resolver.github.context.conversation import Conversation
from resolver.github.context.labeled_issues import LabeledIssues
from resolver.github.context.own_pull_requests import OwnPullRequest, find_own_pull_requests
from resolver.github.context.read_task import NewComments, read_task
from resolver.github.context.request_status import read_request_status, status_in_conversation
from resolver.github.events.payloads import IssueComment
from resolver.github.forge import ACTIONS_LOGIN
from resolver.github.text.markers import Ending, answer_marker, ending_of, parse_pull_request_marker
from resolver.models.pull_request import AnsweredThreads, PublishedReview, Review, ThreadReply
from resolver.models.request_status import RequestStatus
from resolver.models.run import Actor, Command, Publication, PullRequest, Task, Trigger, TriggerKind

logger = logging.getLogger("resolver.github")

CONFIRMED = "+1"
"""The reaction that confirms that an active run has received a comment."""

MAX_REACTIONS = 100


class GitHubForge:
    """A `Forge` on GitHub. Each run has one; its client must not be shared between threads.

    Raises UsageError if the repository, the token or the URLs are not valid.
    """

    def __init__(
        self, access: GitHubAccess, repository: str, picture_hosts: tuple[str, ...] = ()
    ) -> None:
        self._access, self._picture_hosts = access, picture_hosts
        self._name = check_repository(repository)
        self._requester = access.requester()
        self._started = StartedConversations(access, self._name)

    def whoami(self) -> str:
        return self._access.bot_login or self._own_account.login

    @property
    def _own_account(self) -> Actor:
        """The account of the token. It may be known from what was read before."""
        if self._started.account is None:
            account = accounts.own_account(self._access)
            self._started.account = account or Actor(login=ACTIONS_LOGIN)
        return self._started.account

    def account(self) -> Actor:
        login, account = self.whoami(), self._started.account
        if account is not None and account.id is not None and account.login == login:
            return account
        return accounts.find_account(self._access, self._requester, login)

    def permission(self, login: str) -> str:
        with self._access.wrap_errors(f"read the permission of {login}", "metadata: read"):
            return self._repository.get_collaborator_permission(login)

    def is_member(self, team: str, login: str) -> bool:
        with self._access.wrap_errors(f"read who is in {team}", "members: read"):
            return accounts.is_member(self._repository, team, login)

    def operator_may_push(self) -> bool:
        with self._access.wrap_errors(f"read {self._name}", "metadata: read"):
            permissions = self._repository.complete().raw_data.get("permissions") or {}
        return bool(permissions.get("push"))

    def acknowledge(self, trigger: Trigger) -> None:
        add_reaction(self._access, self._repository, self._number(trigger), trigger, "eyes")

    def confirm(self, trigger: Trigger) -> None:
        """Show that an active run has received what the comment asks. Never raises."""
        add_reaction(self._access, self._repository, self._number(trigger), trigger, CONFIRMED)

    def is_confirmed(self, trigger: Trigger) -> bool:
        """Return True if any of Resolver's processes called `confirm` for this comment."""
        if trigger.comment_id is None or trigger.kind is not TriggerKind.ISSUE_COMMENT:
            return False  # only issue comments control a run
        with self._access.wrap_errors("read the reactions to the request", "issues: read"):
            path = f"{self._repository.url}/issues/comments/{trigger.comment_id}/reactions"
            answer = self._polled.get(path, {"content": CONFIRMED, "per_page": MAX_REACTIONS})
            return _is_confirmed_by(answer.data, self.whoami())

    def has_run_comment(self, trigger: Trigger) -> bool:
        """Return True if a run with this key has written a comment on the issue."""
        conversation = self._started.read(trigger, self._number(trigger))
        repository, login = self._repository, self.whoami()
        comments = own_comments.own_comments_in(conversation, repository, login)
        return own_comments.find_run_comment(comments, trigger) is not None

    def post_answer(self, trigger: Trigger, text: str) -> None:
        """Answer the request with a comment that belongs to no run, at most once per request."""
        operation = f"comment on {self._name}#{trigger.number}"
        issue, login, marker = self._issue(trigger), self.whoami(), answer_marker(trigger.key)
        find_or_create.create_comment_once(
            self._access, issue, login, trigger, marker, text, operation
        )

    def markdown_files(self, folder: str, max_files: int) -> dict[str, bytes]:
        """Return at most `max_files` markdown files of a folder of the default branch, by path."""
        with self._access.wrap_errors(f"read {folder} of {self._name}", "contents: read"):
            return markdown_files(self._repository, folder, max_files)

    def find_origin(self, number: int) -> tuple[int, str] | None:
        """Return the issue and the run of pull request `number`, None if it is not Resolver's."""
        bot = self.whoami()
        with self._access.wrap_errors(f"read {self._name}#{number}", "pull-requests: read"):
            pull = self._repository.get_pull(number).complete()
            return parse_pull_request_marker(pull.body or "") if accounts.is_by(pull, bot) else None

    def new_comments(self, number: int, since: datetime) -> NewComments:
        """Return the reader of new comments on issue or pull request `number`."""
        return NewComments(self._access, self._repository, number, since)

    def check_conversations(self) -> CheckConversations:
        """Return the reader of the conversations about failing checks."""
        return CheckConversations(self._access, self._repository, self.whoami())

    def snapshot(self, query: SnapshotQuery) -> RepositorySnapshot | None:
        return read_snapshot(self._access, self._name, query)

    def is_public(self) -> bool | None:
        return accounts.is_public(self._access, self._repository)

    def is_pull_request(self, number: int) -> bool:
        """Return True if `number` is a pull request."""
        with self._access.wrap_errors(f"read {self._name}#{number}", "issues: read"):
            issue = self._repository.get_issue(number).complete()
            return issue.raw_data.get("pull_request") is not None

    def requested_at(self, run: str) -> datetime | None:
        """Return when a workflow run was requested, None if the token may not read that.

        The time is the same for every attempt of the run. The job itself begins later: it may wait
        for a runner and for other jobs. `run` is the value of GITHUB_RUN_ID.
        """
        if not run.isdecimal():
            return None
        try:
            with self._access.wrap_errors("read when the workflow was started", "actions: read"):
                return self._repository.get_workflow_run(int(run)).created_at
        except ForgeError as error:
            logger.info("the time of the request is not known: %s", error)
            return None

    def recent_comments(self, number: int) -> Sequence[IssueComment]:
        return recent_comments(self._access.with_short_timeouts(), self._name, number)

    def own_pull_requests(self, prefix: str, since: datetime) -> list[OwnPullRequest]:
        """Return the pull requests that Resolver opened since then, newest first."""
        return find_own_pull_requests(self._access, self._name, self.whoami(), prefix, since)

    def labeled(self, label: str) -> LabeledIssues:
        """Return the open issues that have the label."""
        return LabeledIssues(self._access, self._repository, label, self.whoami())

    def read(self, trigger: Trigger) -> Task:
        self._number(trigger)
        conversation = self._started.read(trigger, trigger.subject or 0)
        login, hosts = self.whoami(), self._picture_hosts
        return read_task(self._access, self._repository, trigger, conversation, login, hosts)

    def request_status_at_start(self, trigger: Trigger) -> RequestStatus:
        conversation = self._started.current(trigger.number or 0)
        status = status_in_conversation(conversation, trigger) if conversation else None
        return status or self.request_status(trigger)

    def request_status(self, trigger: Trigger) -> RequestStatus:
        return read_request_status(self._access, self._repository, trigger)

    def find_publication(self, trigger: Trigger) -> Publication | None:
        conversation = self._started.read(trigger, self._number(trigger))
        operation = f"look for an earlier run on {self._name}#{trigger.number}"
        with self._access.wrap_errors(operation, "pull-requests: read, issues: read"):
            pulls = self._started.newest_pulls(self._repository)
            return _find_publication(conversation, pulls, self._repository, self.whoami(), trigger)

    def branches(self, prefix: str) -> set[str]:
        with self._access.wrap_errors(f"list the branches of {self._name}", "contents: read"):
            return set(find_or_create.branch_tips(self._repository, prefix))

    def open_head(self, branch: str) -> str | None:
        login = self.whoami()
        with self._access.wrap_errors(f"look at {branch} of {self._name}", "pull-requests: read"):
            pull = find_or_create.open_pull_request_of(self._repository, branch)
            return pull.head.sha if pull and accounts.is_by(pull, login) else None

    def heads(self) -> GitHubPullRequestHeads:
        return self._heads

    @cached_property
    def _heads(self) -> GitHubPullRequestHeads:
        return GitHubPullRequestHeads(self._access, self._repository, self.whoami())

    def open_pull_request(self, report: Report, branch: str, is_new: bool = False) -> PullRequest:
        self._number(report.trigger)
        access, login = self._access, self.whoami()
        return opening.open_pull_request(access, self._repository, login, report, branch, is_new)

    def signer(self) -> SignedCommits:
        return SignedCommits(self._access, self._repository)

    def publish_review(self, report: Report, review: Review) -> PublishedReview:
        pull = self._repository.get_pull(self._number(report.trigger))
        return reviews.submit_review(self._access, pull, self.whoami(), report, review)

    def answer_threads(
        self, report: Report, replies: Sequence[ThreadReply], commit: str | None
    ) -> AnsweredThreads:
        self._number(report.trigger)
        page = f"{self._access.server_url.rstrip('/')}/{self._name}/pull/{report.trigger.number}"
        link = f"{page}/commits/{commit}" if commit else None
        answers = ThreadReplyWriter(self._access, self._repository, self.whoami(), report, link)
        return answers.post(replies)

    def ask(self, report: Report) -> datetime | None:
        return self.run_comments.write_report(report).updated_at

    def comment(self, report: Report, seconds: float | None = None) -> str:
        return self.run_comments.write_report(report, seconds).html_url

    def has_active_run(self, trigger: Trigger) -> bool:
        return self.run_comments.find_active_run(trigger) is not None

    def progress_writer(self) -> RunComments:
        # The login is known by now, from the search for what an earlier run published.
        hasty_access = self._access.with_short_timeouts(
            bot_login=self.whoami(), pause_between_writes=0.0
        )
        repository = GitHubForge(hasty_access, self._name)._repository
        listed = self._started.own_comments(repository, self.whoami())
        return RunComments(hasty_access, repository, self.whoami(), listed)

    @property
    def run_comments(self) -> RunComments:
        repository, login = self._repository, self.whoami()
        listed = self._started.own_comments(repository, login)
        return RunComments(self._access, repository, login, listed)

    @cached_property
    def _repository(self) -> Repository:
        return repository_at(self._requester, self._name)

    @cached_property
    def _polled(self) -> PolledReader:
        return PolledReader(self._repository.requester)

    def _issue(self, trigger: Trigger) -> Issue:
        return self._repository.get_issue(self._number(trigger))

    def _number(self, trigger: Trigger) -> int:
        return issue_number(trigger, self._name)


def _is_confirmed_by(reactions: Iterable[dict[str, Any]], login: str) -> bool:
    """Return True if the account of this login is among those that have confirmed."""
    confirmed = (
        reaction["user"] or {} for reaction in reactions if reaction["content"] == CONFIRMED
    )
    return any(user.get("login", "").casefold() == login.casefold() for user in confirmed)


def _review_of(
    repository: Repository, number: int, trigger: Trigger, login: str
) -> PublishedReview | None:
    """Return the review that an earlier run of this request published, or None."""
    may_have_review = trigger.command in {Command.REVIEW, Command.CONTINUE, Command.RESUME}
    if not may_have_review or not trigger.is_pull_request:
        return None
    return reviews.published_review(repository.get_pull(number), login, trigger.key)


def _find_publication(
    conversation: Conversation,
    newest: Iterable[GitHubPullRequest],
    repository: Repository,
    login: str,
    trigger: Trigger,
) -> Publication | None:
    """Return what an earlier run of the trigger published. Raises what `wrap_errors` converts."""
    pull = find_or_create.pull_request_of_run(newest, login, trigger)
    comments = own_comments.own_comments_in(conversation, repository, login)
    comment = own_comments.find_run_comment(comments, trigger)
    ending = ending_of(comment.body or "", trigger.key) if comment else None
    comment_url = comment.html_url if comment and ending and ending.is_final else None
    if trigger.in_thread and comment_url is None:
        reply = reply_of_run(repository.get_pull(trigger.number or 0), login, trigger)
        comment_url = reply.html_url if reply else None
    if pull is None:
        review = _review_of(repository, trigger.number or 0, trigger, login)
        earlier = Publication(comment_url=comment_url, review=review, repeated=True)
        return earlier if comment_url or review is not None else None
    return Publication(
        branch=pull.head.ref,
        commit=pull.head.sha,
        pull_request=find_or_create.describe_pull_request(pull),
        comment_url=comment_url if ending is Ending.PULL_REQUEST else None,
        repeated=True,
    )
