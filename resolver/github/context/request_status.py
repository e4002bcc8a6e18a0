"""Decides whether a request still stands: by its comment, its issue's state, lock and labels, as
its conversation shows them, and by who is asked for a review, if that was the request.
"""

from github.Repository import Repository

from resolver.github.client.access import GitHubAccess
from resolver.github.context.conversation import Conversation, RemarkText
from resolver.models.request_status import RequestStatus, RequestText
from resolver.models.run import Trigger, TriggerKind


def status_in_conversation(
    conversation: Conversation, place: Conversation, trigger: Trigger, reviewers: tuple[str, ...]
) -> RequestStatus:
    """Return the state of a request.

    conversation: of the issue or pull request that is worked on. place: the one in which the
    request was made. reviewers: logins whose review is requested, if a review request made it.
    """
    subject = conversation.subject
    comment, has_comment = _find_comment(place, trigger)
    is_assigned = trigger.kind is TriggerKind.ISSUE_ASSIGNED
    assignees = tuple(account.login for account in subject.assignees)
    return RequestStatus(
        closed=subject.closed,
        locked=subject.locked and bool(subject.locks),
        labels=tuple(label.name for label in subject.labels),
        issue=RequestText(subject.body, subject.edited_at),
        comment=RequestText(comment.body, comment.edited_at) if comment else None,
        has_comment=has_comment,
        requested_accounts=assignees if is_assigned else reviewers,
    )


def _find_comment(place: Conversation, trigger: Trigger) -> tuple[RemarkText | None, bool]:
    """Return the comment or review that made the request, and True unless it is not known.

    One that is missing may be among those that were not read.
    """
    remarks: list[RemarkText] = []
    is_cut = True
    match trigger.kind:
        case TriggerKind.ISSUE_COMMENT:
            remarks, is_cut = [*place.comments.items], bool(place.comments.unread)
        case TriggerKind.REVIEW_SUBMITTED:
            remarks, is_cut = [*place.reviews.items], bool(place.reviews.unread)
        case TriggerKind.REVIEW_COMMENT:
            threads = place.threads.items
            remarks = [comment for thread in threads for comment in thread.shown_comments]
            is_cut = place.is_code_cut
    if trigger.comment_id is None:
        return None, False
    comment = next((remark for remark in remarks if remark.id == trigger.comment_id), None)
    return comment, comment is not None or not is_cut


def read_requested_reviewers(
    access: GitHubAccess, repository: Repository, trigger: Trigger
) -> tuple[str, ...]:
    """Return the logins whose review is requested, if a review request made the request.

    The REST API is asked: in GraphQL, a team among the reviewers needs a permission of its own.
    Raises ForgeError.
    """
    if trigger.kind is not TriggerKind.REVIEW_REQUESTED:
        return ()
    number, name = trigger.subject or 0, trigger.repository
    with access.wrap_errors(f"read the reviewers of {name}#{number}", "pull requests: read"):
        return tuple(user.login for user in repository.get_pull(number).requested_reviewers)
