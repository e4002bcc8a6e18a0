"""Reads an issue as it was at an earlier time, for tasks that are made of a repository's history.

The reader of requests (`read_task`) refuses closed issues, and drops a text that was edited since.
Here the issue is closed, and the earlier text is what is wanted: GitHub keeps each version of it.
"""

from dataclasses import dataclass
from datetime import datetime

from pydantic import AwareDatetime, Field

from resolver.github.client.access import GitHubAccess
from resolver.github.client.answers import ApiAnswer, Nodes, TitleChange
from resolver.github.client.resources import query_repository
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.markdown import shorten_text

MAX_PAST_TITLE = 256
MAX_PAST_BODY = 65_536
"""Maximum number of characters."""

PAST_ISSUE_QUERY = """
query($owner: String!, $name: String!, $number: Int!, $at: DateTime!) {
  repository(owner: $owner, name: $name) {
    issue(number: $number) {
      title body createdAt lastEditedAt
      renamed: timelineItems(itemTypes: RENAMED_TITLE_EVENT, since: $at, first: 1) {
        nodes { ... on RenamedTitleEvent { previousTitle } }
      }
      userContentEdits(first: 100) { nodes { editedAt diff } }
    }
  }
}
"""


@dataclass(frozen=True)
class PastIssue:
    """An issue's text at an earlier time."""

    title: str
    body: str


class _Edit(ApiAnswer):
    """A version of the body. text: the whole body after the edit; None if it was deleted."""

    at: AwareDatetime = Field(alias="editedAt")
    text: str | None = Field(default=None, alias="diff")


class _Issue(ApiAnswer):
    title: str = ""
    body: str = ""
    created_at: AwareDatetime = Field(alias="createdAt")
    edited_at: AwareDatetime | None = Field(default=None, alias="lastEditedAt")
    renamed: Nodes[TitleChange] = ()
    edits: Nodes[_Edit] = Field(default=(), alias="userContentEdits")


def read_past_issue(
    access: GitHubAccess, repository: str, number: int, at: datetime
) -> PastIssue | None:
    """Return an issue of OWNER/NAME as it was just before `at`.

    None if it did not exist then, or its text of that time is not known. Raises ForgeError.
    """
    with access.wrap_errors(f"read issue {number} of {repository}", "issues: read"):
        answer = query_repository(
            access, repository, PAST_ISSUE_QUERY, number=number, at=at.isoformat()
        )
        issue = _Issue.model_validate(answer["issue"])
    body = _body_at(issue, at)
    if body is None or issue.created_at > at:
        return None
    title = strip_hidden(issue.renamed[0].before if issue.renamed else issue.title).text
    return PastIssue(
        title=shorten_text(" ".join(title.split()), MAX_PAST_TITLE),
        body=shorten_text(strip_hidden(body).text.strip(), MAX_PAST_BODY),
    )


def _body_at(issue: _Issue, at: datetime) -> str | None:
    """Return the body as it was before `at`; None if GitHub does not have that version.

    The versions of an edited issue are whole texts, and the first of them is the original one.
    """
    if issue.edited_at is None or issue.edited_at < at:
        return issue.body
    earlier = [edit for edit in issue.edits if edit.at < at]
    return max(earlier, key=lambda edit: edit.at).text if earlier else None
