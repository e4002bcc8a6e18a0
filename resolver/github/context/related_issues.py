"""Reads the issues and pull requests that an issue or pull request is related to.

Related are those of the same repository that its texts name or that close it. Issues of other
repositories are never read: they may be private, and what is read here may be repeated in public.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlsplit

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess, read_rows
from resolver.github.client.resources import query_repository
from resolver.github.context.conversation import RELATED_ISSUE, RelatedIssue, Subject
from resolver.github.context.visibility import SeenTexts
from resolver.github.text.links import references_in, without_pictures
from resolver.github.text.markdown import shorten_text
from resolver.models.issue_context import Reference, Relation
from resolver.trace.plain import plural

MAX_RELATED = 12
"""Maximum number of issues and pull requests that are read."""

MAX_BODY_CHARACTERS: Mapping[Relation, int] = {
    "closed by it": 8_000,
    "closes it": 3_000,
    "mentioned": 3_000,
}
"""Maximum number of characters of the text of one."""

MAX_REFERENCES = 200
"""Maximum number of references in the texts that are considered."""


@dataclass(frozen=True)
class RelatedIssueReader:
    """Reads what is related to an issue or pull request of the repository OWNER/NAME."""

    access: GitHubAccess
    repository: str
    subject: Subject
    seen: SeenTexts

    def read(self, texts: Iterable[str]) -> tuple[Reference, ...]:
        """Return what it closes, and up to `MAX_RELATED` other related issues and pull requests. A
        run can work without them: what can't be read is reported.

        Those that close it come first. texts: the most important first.
        """
        closed = [i for i in self.subject.closes if i.repository.is_same(self.repository)]
        references = [self._reference(i.number, "closed by it", i) for i in closed]
        relations = self._relations(texts)
        for number in (self.subject.number, self.seen.trigger.number, *(i.number for i in closed)):
            relations.pop(number or 0, None)
        left_out = self.seen.left_out
        if len(relations) > MAX_RELATED:
            left_out.append(
                f"{len(relations) - MAX_RELATED} more issues and pull requests it refers to"
            )
        chosen = dict(list(relations.items())[:MAX_RELATED])
        try:
            with self.access.wrap_errors("read what it refers to", "issues: read"):
                issues = self._fetch(chosen) if chosen else {}
        except ForgeError as error:
            left_out.append(error.what)
            issues = {}
        for number, issue in issues.items():
            if self.seen.is_late(issue.created_at):
                left_out.append(f"#{number}, opened after the request")
            else:
                references.append(self._reference(number, chosen[number], issue))
        return tuple(references)

    def _relations(self, texts: Iterable[str]) -> dict[int, Relation]:
        """Return the relation of each number, in the order of importance."""
        closers = (c for c in self.subject.closers if c.repository.is_same(self.repository))
        relations: dict[int, Relation] = {closer.number: "closes it" for closer in closers}
        host = urlsplit(self.access.server_url).netloc
        found = islice((r for text in texts for r in references_in(text, host)), MAX_REFERENCES)
        foreign: set[tuple[str, int]] = set()
        for name, number in found:
            if name and name.casefold() != self.repository.casefold():
                foreign.add((name.casefold(), number))
            else:
                relations.setdefault(number, "mentioned")
        if foreign:
            self.seen.left_out.append(
                f"{plural(len(foreign), 'issue')} of other repositories "
                "that are mentioned: only this one's are read"
            )
        return relations

    def _fetch(self, numbers: Collection[int]) -> dict[int, RelatedIssue]:
        parts = "\n".join(
            f"i{number}: issueOrPullRequest(number: {number}) {{ "
            f"... on Issue {{ {RELATED_ISSUE} }} "
            f"... on PullRequest {{ {RELATED_ISSUE} mergedAt }} }}"
            for number in numbers
        )
        query = (
            "query($owner: String!, $name: String!, $at: DateTime!) {\n"
            f"repository(owner: $owner, name: $name) {{ {parts} }} }}"
        )
        aliases = [f"i{number}" for number in numbers]
        at = self.seen.trigger.at.isoformat()
        answer = query_repository(self.access, self.repository, query, aliases, at=at)
        related: dict[int, RelatedIssue] = {}
        for number in numbers:
            row = answer.get(f"i{number}")
            issues, invalid_count = read_rows(RelatedIssue, [row] if row else [])
            if issues:
                related[number] = issues[0]
            if invalid_count:
                self.seen.left_out.append(f"#{number}, which GitHub describes in an unknown form")
        return related

    def _reference(self, number: int, relation: Relation, issue: RelatedIssue) -> Reference:
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
            body=shorten_text(body, MAX_BODY_CHARACTERS[relation]),
            is_late=is_late,
        )

    def _state(self, issue: RelatedIssue) -> str:
        """Return the state at the time of the request; one that was closed later was open then."""
        if issue.merged_at and not self.seen.is_late(issue.merged_at):
            return "merged"
        is_closed = issue.closed_at and not self.seen.is_late(issue.closed_at)
        return "closed" if is_closed else "open"
