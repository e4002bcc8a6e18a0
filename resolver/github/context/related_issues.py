"""Reads the issues and pull requests that an issue or pull request is related to.

Related are those of the same repository that its texts name, that name it, or that close it. Issues
of other repositories are never read: they may be private, and what is read here may be repeated in
public.
Source: https://docs.github.com/en/graphql/reference/objects#crossreferencedevent
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from urllib.parse import urlsplit

from pydantic import Field

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess, read_rows
from resolver.github.client.answers import AuthoredAnswer, Nodes, TitleChange
from resolver.github.client.resources import query_repository
from resolver.github.context.conversation import Subject
from resolver.github.context.visibility import SeenTexts
from resolver.github.text.links import references_in, without_pictures
from resolver.github.text.markdown import shorten_text
from resolver.models.issue_context import Reference

MAX_RELATED = 12
"""Maximum number of issues and pull requests that are read."""

MAX_BODY_CHARACTERS = 3_000
"""Maximum number of characters of the text of one."""

MAX_REFERENCES = 200
"""Maximum number of references in the texts that are considered."""

_ISSUE_FIELDS = """
  title body createdAt lastEditedAt closedAt authorAssociation author { __typename login }
  renamed: timelineItems(itemTypes: RENAMED_TITLE_EVENT, since: $at, first: 1) {
    nodes { ... on RenamedTitleEvent { previousTitle } }
  }
"""


class _RelatedIssue(AuthoredAnswer):
    kind: str = Field(alias="__typename")
    title: str
    closed_at: datetime | None = Field(alias="closedAt", default=None)
    merged_at: datetime | None = Field(alias="mergedAt", default=None)
    renamed: Nodes[TitleChange] = ()


@dataclass(frozen=True)
class RelatedIssueReader:
    """Reads what is related to an issue or pull request of the repository OWNER/NAME."""

    access: GitHubAccess
    repository: str
    subject: Subject
    seen: SeenTexts

    def read(self, texts: Iterable[str], excluded: Iterable[int]) -> tuple[Reference, ...]:
        """Return up to `MAX_RELATED` related issues and pull requests. A run can work without them:
        what can't be read is reported.

        Those that close it come first, then those that the texts name, then those that name it.

        texts: the most important first.
        excluded: numbers that were read elsewhere already.
        """
        relations = self._relations(texts)
        for number in (self.subject.number, self.seen.trigger.number, *excluded):
            relations.pop(number or 0, None)
        left_out = self.seen.left_out
        if len(relations) > MAX_RELATED:
            left_out.append(
                f"{len(relations) - MAX_RELATED} more issues and pull requests it refers to"
            )
        chosen = dict(list(relations.items())[:MAX_RELATED])
        if not chosen:
            return ()
        try:
            with self.access.wrap_errors("read what it refers to", "issues: read"):
                issues = self._fetch(chosen)
        except ForgeError as error:
            left_out.append(error.what)
            return ()
        references = []
        for number, issue in issues.items():
            if self.seen.is_late(issue.created_at):
                left_out.append(f"#{number}, opened after the request")
            else:
                references.append(self._reference(number, chosen[number], issue))
        return tuple(references)

    def _relations(self, texts: Iterable[str]) -> dict[int, str]:
        """Return the relation of each number, in the order of importance."""
        relations: dict[int, str] = {}
        mentioned, foreign = self._find_references(texts)
        for closer in self.subject.closers:
            if closer.repository.is_same(self.repository):
                relations.setdefault(closer.number, "closes it")
        for number in mentioned:
            relations.setdefault(number, "mentioned")
        for event in reversed(self.subject.naming):
            named_by = event.source.number if event.source else None
            if named_by and not event.is_foreign and not self.seen.is_late(event.created_at):
                relations.setdefault(named_by, "mentions it")
        if foreign:
            self.seen.left_out.append(
                f"{len(foreign)} issue{'' if len(foreign) == 1 else 's'} of other repositories "
                "that are mentioned: only this one's are read"
            )
        return relations

    def _find_references(self, texts: Iterable[str]) -> tuple[list[int], set[tuple[str, int]]]:
        """Return the issues of this repository and of others that the texts name."""
        host = urlsplit(self.access.server_url).netloc
        found = islice((r for text in texts for r in references_in(text, host)), MAX_REFERENCES)
        mentioned: dict[int, None] = {}
        foreign: set[tuple[str, int]] = set()
        for name, number in found:
            if name and name.casefold() != self.repository.casefold():
                foreign.add((name.casefold(), number))
            else:
                mentioned[number] = None
        return list(mentioned), foreign

    def _fetch(self, numbers: Collection[int]) -> dict[int, _RelatedIssue]:
        parts = "\n".join(
            f"i{number}: issueOrPullRequest(number: {number}) {{ __typename "
            f"... on Issue {{ {_ISSUE_FIELDS} }} "
            f"... on PullRequest {{ {_ISSUE_FIELDS} mergedAt }} }}"
            for number in numbers
        )
        query = (
            "query($owner: String!, $name: String!, $at: DateTime!) {\n"
            f"repository(owner: $owner, name: $name) {{ {parts} }} }}"
        )
        aliases = [f"i{number}" for number in numbers]
        at = self.seen.trigger.at.isoformat()
        answer = query_repository(self.access, self.repository, query, aliases, at=at)
        related: dict[int, _RelatedIssue] = {}
        for number in numbers:
            row = answer.get(f"i{number}")
            issues, invalid_count = read_rows(_RelatedIssue, [row] if row else [])
            if issues:
                related[number] = issues[0]
            if invalid_count:
                self.seen.left_out.append(f"#{number}, which GitHub describes in an unknown form")
        return related

    def _reference(self, number: int, relation: str, issue: _RelatedIssue) -> Reference:
        place, body = f"#{number}", ""
        is_late = self.seen.is_late(issue.edited_at or issue.created_at)
        if is_late:
            self.seen.left_out.append(f"the text of {place}, edited after the request")
        else:
            body = without_pictures(self.seen.clean(issue.body, place, issue.author))
        renames = issue.renamed if not self.seen.is_now else ()
        return Reference(
            number=number,
            is_pull_request=issue.kind == "PullRequest",
            relation=relation,
            state=self._state(issue),
            title=self.seen.title(renames[0].before if renames else issue.title, place),
            author=issue.author,
            association=issue.association,
            body=shorten_text(body, MAX_BODY_CHARACTERS),
            is_late=is_late,
        )

    def _state(self, issue: _RelatedIssue) -> str:
        """Return the state at the time of the request; one that was closed later was open then."""
        if issue.merged_at and not self.seen.is_late(issue.merged_at):
            return "merged"
        is_closed = issue.closed_at and not self.seen.is_late(issue.closed_at)
        return "closed" if is_closed else "open"
