"""Finds what an earlier run for the same request has published.

A request may arrive twice, and a run may be killed before its final comment: the next run for it
continues from there, or does not start.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from github.IssueComment import IssueComment
from github.PullRequest import PullRequest
from github.Repository import Repository

from resolver.github.client.access import GitHubAccess
from resolver.github.comments.find_or_create import describe_pull_request, pull_request_of_run
from resolver.github.comments.review import published_review
from resolver.github.comments.thread_replies import reply_of_run
from resolver.github.context.conversation import Conversation
from resolver.github.context.own_comments import find_run_comment, own_comments_in
from resolver.github.text.markers import Ending, ending_of
from resolver.models.run import Command, Publication, Trigger

_REVIEWING_COMMANDS = frozenset({Command.REVIEW, Command.CONTINUE, Command.RESUME})


@dataclass(frozen=True)
class PublicationFinder:
    """Finds what a run with the trigger's key has left on GitHub.

    `own_login` is Resolver's login. `conversation` is the trigger's issue or pull request, as it
    was read just now. The methods raise ForgeError.
    """

    access: GitHubAccess
    repository: Repository
    own_login: str
    trigger: Trigger
    conversation: Conversation

    def find_comment(self) -> IssueComment | None:
        """Return the run's comment, or None."""
        comments = own_comments_in(self.conversation, self.repository, self.own_login)
        return find_run_comment(comments, self.trigger)

    def find_publication(self, newest_pulls: Iterable[PullRequest]) -> Publication | None:
        """Return what the run published, or None.

        `newest_pulls` are the repository's pull requests, the most recently updated first.
        """
        trigger, comment = self.trigger, self.find_comment()
        ending = ending_of(comment.body or "", trigger.key) if comment else None
        comment_url = comment.html_url if comment and ending and ending.is_final else None
        operation = f"look for an earlier run on {self.repository.full_name}#{trigger.number}"
        with self.access.wrap_errors(operation, "pull-requests: read, issues: read"):
            pull = pull_request_of_run(newest_pulls, self.own_login, trigger)
            if pull is not None:
                return Publication(
                    branch=pull.head.ref,
                    commit=pull.head.sha,
                    pull_request=describe_pull_request(pull),
                    comment_url=comment_url if ending is Ending.PULL_REQUEST else None,
                    repeated=True,
                )
            if trigger.in_thread and comment_url is None:
                reply = reply_of_run(self._pull_request(), self.own_login, trigger)
                comment_url = reply.html_url if reply else None
            review = None
            if trigger.command in _REVIEWING_COMMANDS and trigger.is_pull_request:
                review = published_review(self._pull_request(), self.own_login, trigger.key)
        if comment_url is None and review is None:
            return None
        return Publication(comment_url=comment_url, review=review, repeated=True)

    def _pull_request(self) -> PullRequest:
        return self.repository.get_pull(self.trigger.number or 0)
