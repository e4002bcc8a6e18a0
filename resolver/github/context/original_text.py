"""Restores the text of an issue or pull request at the time of a request.

It is used if the event of the request doesn't contain the text: a dispatch, a ticked checkbox, a
failed check.
"""

from datetime import datetime

from pydantic import AwareDatetime, Field

from resolver.github.client.access import GitHubAccess
from resolver.github.client.graphql import query_graphql
from resolver.github.context.moments import utc
from resolver.github.context.renames import Renames, RenamesAnswer
from resolver.models.run import Snapshot, Trigger, TriggerKind

_WORDS = """
query($owner: String!, $name: String!, $number: Int!, $at: DateTime!) {
  repository(owner: $owner, name: $name) { subject: issueOrPullRequest(number: $number) {
    ... on Issue { lastEditedAt renamed: timelineItems(
      itemTypes: RENAMED_TITLE_EVENT, since: $at, first: 1
    ) { nodes { ... on RenamedTitleEvent { previousTitle } } } }
    ... on PullRequest { lastEditedAt renamed: timelineItems(
      itemTypes: RENAMED_TITLE_EVENT, since: $at, first: 1
    ) { nodes { ... on RenamedTitleEvent { previousTitle } } } }
  } }
}
"""


class _Words(RenamesAnswer):
    edited_at: AwareDatetime | None = Field(alias="lastEditedAt", default=None)
    renamed: Renames = Renames()


def original_text(
    access: GitHubAccess,
    repository: str,
    number: int,
    trigger: Trigger,
    now: Snapshot,
    updated_at: datetime,
) -> Snapshot:
    """Return `now` as it was at the time of the trigger.

    Its body is "" if it was edited since, because GitHub's API doesn't return the earlier one.

    updated_at: when the issue was last changed. Raises what `GitHubAccess.asking` turns into a
    ForgeError.
    """
    if trigger.kind is TriggerKind.COMMAND_LINE or utc(updated_at) < trigger.at:
        return now
    owner, _, name = repository.partition("/")
    given = {"owner": owner, "name": name, "number": number, "at": trigger.at.isoformat()}
    found = _Words.model_validate(
        query_graphql(access, _WORDS, given)["repository"]["subject"] or {}
    )
    renamed = found.renamed.nodes
    is_late = found.edited_at is not None and found.edited_at >= trigger.at
    return now.model_copy(
        update={
            "title": renamed[0].before if renamed else now.title,
            "body": "" if is_late else now.body,
        }
    )
