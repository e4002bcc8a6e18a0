"""Tests of finding the comment or review that made a request in the conversation."""

from typing import Any

import pytest

from resolver.github.context.conversation import (
    Conversation,
    ReadList,
    RemarkText,
    ReviewText,
    Subject,
    Thread,
)
from resolver.github.context.request_status import status_in_conversation
from resolver.models.request_status import RequestStatus
from resolver.models.run import TriggerKind
from tests.github import reports

PLACES = {
    TriggerKind.ISSUE_COMMENT: "an issue comment",
    TriggerKind.REVIEW_SUBMITTED: "a review",
    TriggerKind.REVIEW_COMMENT: "a comment on the code",
}


def remark(body: str, **fields: Any) -> dict[str, Any]:
    return {"fullDatabaseId": "77", "body": body, "createdAt": reports.WHEN, **fields}


def conversation(**changes: Any) -> Conversation:
    """One in which an issue comment, a review and a comment on the code have the same id."""
    subject = {"__typename": "PullRequest", "number": 12, "title": "It breaks", "url": "https://x"}
    on_code = remark("a comment on the code", state="SUBMITTED")
    thread = {"id": "t", "isResolved": False, "isOutdated": False, "path": "a.py"}
    comments = {"totalCount": 2, "nodes": [on_code]}
    values: dict[str, Any] = {
        "viewer": None,
        "repository": "octo/demo",
        "default_branch": "main",
        "subject": Subject.model_validate(remark("", closed=False, locked=False, **subject)),
        "comments": ReadList((RemarkText.model_validate(remark("an issue comment")),)),
        "reviews": ReadList((ReviewText.model_validate(remark("a review", state="COMMENTED")),)),
        "threads": ReadList(
            (
                Thread.model_validate(
                    {
                        **thread,
                        "begin": [remark("the first", fullDatabaseId="5")],
                        "comments": comments,
                    }
                ),
            )
        ),
    }
    return Conversation(**{**values, **changes})


def status(kind: TriggerKind, **changes: Any) -> RequestStatus:
    """Return the state of a request that was made in another place than the one worked on."""
    place = conversation(**changes)
    trigger = reports.trigger(kind=kind)
    return status_in_conversation(conversation(), place, trigger, ())


@pytest.mark.parametrize("kind", PLACES)
def test_a_request_is_found_among_the_texts_of_its_kind(kind: TriggerKind) -> None:
    found = status(kind)
    assert found.has_comment and found.comment is not None
    assert found.comment.body == PLACES[kind]


@pytest.mark.parametrize("kind", PLACES)
def test_a_missing_text_is_deleted_only_if_all_of_its_kind_were_read(kind: TriggerKind) -> None:
    for unread, is_deleted in ((0, True), (1, False)):
        lists = dict.fromkeys(("comments", "reviews", "threads"), ReadList[Any](unread=unread))
        found = status(kind, **lists)
        assert (found.comment, found.has_comment) == (None, is_deleted)


def test_a_text_is_looked_for_where_the_request_was_made() -> None:
    nothing = conversation(comments=ReadList())
    found = status_in_conversation(nothing, conversation(), reports.trigger(), ())
    assert found.comment is not None
