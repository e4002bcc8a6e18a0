"""Reads whether a request still stands: its comment, its issue's state, lock and labels, in one
query; and who is assigned or asked for a review, if that was the request.

Source: https://docs.github.com/en/graphql/reference/interfaces#lockable
"""

from dataclasses import replace

from github.Repository import Repository
from pydantic import AwareDatetime, Field

from resolver.github.client import resources
from resolver.github.client.access import GitHubAccess
from resolver.github.client.answers import ApiAnswer, Nodes
from resolver.github.context.conversation import Conversation
from resolver.github.events.payloads import Label
from resolver.models.request_status import RequestStatus, RequestText
from resolver.models.run import Trigger, TriggerKind

_SUBJECT = """
closed locked body lastEditedAt
labels(first: 100) { nodes { name } }
locks: timelineItems(itemTypes: LOCKED_EVENT, since: $at, first: 1) {
  nodes { ... on LockedEvent { createdAt } }
}
"""
_COMMENT = """
comment: node(id: $comment) {
  ... on IssueComment { body lastEditedAt }
  ... on PullRequestReviewComment { body lastEditedAt }
  ... on PullRequestReview { body lastEditedAt }
}
"""


def _query(*, has_comment: bool) -> str:
    """Return the GraphQL query, with or without a comment that made the request."""
    return f"""
query($owner: String!, $name: String!, $number: Int!, $at: DateTime!{
        ", $comment: ID!" if has_comment else ""
    }) {{
  repository(owner: $owner, name: $name) {{ subject: issueOrPullRequest(number: $number) {{
    ... on Issue {{ {_SUBJECT} }}
    ... on PullRequest {{ {_SUBJECT} }}
  }} }}
  {_COMMENT if has_comment else ""}
}}
"""


class _Text(ApiAnswer):
    body: str = ""
    edited_at: AwareDatetime | None = Field(alias="lastEditedAt", default=None)

    def text(self) -> RequestText:
        return RequestText(self.body, self.edited_at)


class _Subject(_Text):
    closed: bool
    locked: bool
    labels: Nodes[Label] = ()
    locks: Nodes[object] = ()


def status_in_conversation(conversation: Conversation, trigger: Trigger) -> RequestStatus | None:
    """Return the state of a request in the conversation; None if that does not tell."""
    if trigger.subject != trigger.number or trigger.kind is TriggerKind.REVIEW_REQUESTED:
        return None
    subject, comments = conversation.subject, conversation.comments
    comment = next((c for c in comments.items if c.id == trigger.comment_id), None)
    is_issue_comment = trigger.kind is TriggerKind.ISSUE_COMMENT and trigger.comment_id is not None
    return RequestStatus(
        closed=subject.closed,
        labels=tuple(label.name for label in subject.labels),
        issue=RequestText(subject.body, subject.edited_at),
        comment=RequestText(comment.body, comment.edited_at) if comment else None,
        # A comment that is missing may be among those that were not read.
        has_comment=is_issue_comment and (comment is not None or not comments.unread),
        requested_accounts=tuple(account.login for account in subject.assignees),
    )


def read_request_status(
    access: GitHubAccess, repository: Repository, trigger: Trigger
) -> RequestStatus:
    """Return the current state of a trigger's comment and of the issue that is worked on.

    Raises ForgeError.
    """
    status = _read_conversation(access, trigger)
    if not status.exists:
        return status
    return replace(status, requested_accounts=_read_requested_accounts(access, repository, trigger))


def _read_requested_accounts(
    access: GitHubAccess, repository: Repository, trigger: Trigger
) -> tuple[str, ...]:
    """Return `RequestStatus.requested_accounts`.

    The REST API is asked: in GraphQL, a team among the reviewers needs a permission of its own.
    """
    number, name = trigger.subject or 0, trigger.repository
    if trigger.kind is TriggerKind.ISSUE_ASSIGNED:
        with access.wrap_errors(f"read the assignees of {name}#{number}", "issues: read"):
            return tuple(user.login for user in repository.get_issue(number).assignees)
    if trigger.kind is TriggerKind.REVIEW_REQUESTED:
        with access.wrap_errors(f"read the reviewers of {name}#{number}", "pull requests: read"):
            return tuple(user.login for user in repository.get_pull(number).requested_reviewers)
    return ()


def _read_conversation(access: GitHubAccess, trigger: Trigger) -> RequestStatus:
    owner, _, name = trigger.repository.partition("/")
    number, has_comment = trigger.subject or 0, bool(trigger.comment_node)
    variables = {"owner": owner, "name": name, "number": number, "at": trigger.at.isoformat()}
    if has_comment:
        variables["comment"] = trigger.comment_node
    operation = f"look at the request on {trigger.repository}#{number} again"
    with access.wrap_errors(operation, "issues: read"):
        query = _query(has_comment=has_comment)
        answer = resources.query_graphql(
            access, query, variables, nullable_fields=("subject", "comment")
        )
        row, comment = answer["repository"]["subject"], answer.get("comment")
        subject = _Subject.model_validate(row) if row else None
        text = _Text.model_validate(comment).text() if comment else None
    if subject is None:
        return RequestStatus(exists=False)
    return RequestStatus(
        closed=subject.closed,
        locked=subject.locked and bool(subject.locks),
        labels=tuple(label.name for label in subject.labels),
        issue=subject.text(),
        comment=text,
        has_comment=has_comment,
    )
