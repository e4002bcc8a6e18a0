"""Finds what an earlier run for the same request has published.

A request may arrive twice, and a run may be killed before its final comment: the next run for it
continues from there, or does not start.
"""

from collections.abc import Iterable

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


def find_publication(
    access: GitHubAccess,
    repository: Repository,
    own_login: str,
    trigger: Trigger,
    conversation: Conversation,
    newest_pulls: Iterable[PullRequest],
) -> Publication | None:
    """Return what a run with the trigger's key published, or None. Raises ForgeError.

    Args:
        access: The access to GitHub.
        repository: The repository.
        own_login: Resolver's login.
        trigger: The request.
        conversation: The trigger's issue or pull request, as it was read just now.
        newest_pulls: The repository's pull requests, the most recently updated first.
    """
    comment = find_run_comment(own_comments_in(conversation, repository, own_login), trigger)
    ending = ending_of(comment.body or "", trigger.key) if comment else None
    comment_url = comment.html_url if comment and ending and ending.is_final else None
    operation = f"look for an earlier run on {repository.full_name}#{trigger.number}"
    own_pull = repository.get_pull(trigger.number or 0)  # requested when it is needed
    with access.wrap_errors(operation, "pull-requests: read, issues: read"):
        pull = pull_request_of_run(newest_pulls, own_login, trigger)
        if pull is not None:
            return Publication(
                branch=pull.head.ref,
                commit=pull.head.sha,
                pull_request=describe_pull_request(pull),
                comment_url=comment_url if ending is Ending.PULL_REQUEST else None,
                repeated=True,
            )
        if trigger.in_thread and comment_url is None:
            reply = reply_of_run(own_pull, own_login, trigger)
            comment_url = reply.html_url if reply else None
        review = None
        if trigger.command in _REVIEWING_COMMANDS and trigger.is_pull_request:
            review = published_review(own_pull, own_login, trigger.key)
    if comment_url is None and review is None:
        return None
    return Publication(comment_url=comment_url, review=review, repeated=True)
