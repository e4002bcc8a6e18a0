"""Reads the context of an issue or pull request: related ones, pictures and failed checks.

A run can work without all of these. What can't be read is reported, and the run continues.

Related are the issues and pull requests of the same repository that its texts name, that name it,
or that close it. Issues of other repositories are never read: they may be private, and what is read
here may be repeated in public.
Source: https://docs.github.com/en/graphql/reference/objects#crossreferencedevent
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from github.Repository import Repository
from pydantic import Field

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess, read_rows
from resolver.github.client.answers import AuthoredAnswer, Nodes, TitleChange
from resolver.github.client.resources import query_repository
from resolver.github.context.conversation import Subject
from resolver.github.context.failed_checks import FailedCheckReader
from resolver.github.context.pictures import PictureHosts, PictureReader
from resolver.github.context.visibility import utc
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.links import PictureLinks, references_in, without_pictures
from resolver.github.text.markdown import shorten_text
from resolver.github.text.markers import without_markers
from resolver.models.issue_context import FailedCheck, Picture, Reference
from resolver.models.pull_request import PullRequestContext
from resolver.models.run import Comment, Snapshot, Trigger, TriggerKind

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
    """Reads what is related to an issue or pull request of the repository OWNER/NAME.

    own_login: Resolver's login. The methods raise errors that `GitHubAccess.wrap_errors`
    turns into a ForgeError.
    """

    access: GitHubAccess
    repository: str
    subject: Subject
    trigger: Trigger
    own_login: str

    def read(
        self, texts: Iterable[str], excluded: Iterable[int], left_out: list[str]
    ) -> tuple[Reference, ...]:
        """Return up to `MAX_RELATED` related issues and pull requests.

        Those that close it come first, then those that the texts name, then those that name it.

        texts: the most important first.
        excluded: numbers that were read elsewhere already.
        left_out: collects what is not used.
        """
        relations = self._relations(texts, left_out)
        for number in (self.subject.number, self.trigger.number, *excluded):
            relations.pop(number or 0, None)
        if len(relations) > MAX_RELATED:
            left_out.append(
                f"{len(relations) - MAX_RELATED} more issues and pull requests it refers to"
            )
        chosen = dict(list(relations.items())[:MAX_RELATED])
        if not chosen:
            return ()
        issues = self._fetch(chosen, left_out)
        references = (
            self._reference(related_number, chosen[related_number], issue, left_out)
            for related_number, issue in issues.items()
        )
        return tuple(reference for reference in references if reference is not None)

    def _relations(self, texts: Iterable[str], left_out: list[str]) -> dict[int, str]:
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
            if named_by and not event.is_foreign and not self._is_late(event.created_at):
                relations.setdefault(named_by, "mentions it")
        if foreign:
            left_out.append(
                f"{len(foreign)} issue{'' if len(foreign) == 1 else 's'} of other repositories "
                "that are mentioned: only this one's are read"
            )
        return relations

    def _find_references(self, texts: Iterable[str]) -> tuple[list[int], set[tuple[str, int]]]:
        host = urlsplit(self.access.server_url).netloc
        mentioned: dict[int, None] = {}
        foreign: set[tuple[str, int]] = set()
        examined = 0
        for text in texts:
            for name, number in references_in(text, host):
                examined += 1
                if examined > MAX_REFERENCES:
                    return list(mentioned), foreign
                if name and name.casefold() != self.repository.casefold():
                    foreign.add((name.casefold(), number))
                else:
                    mentioned[number] = None
        return list(mentioned), foreign

    def _fetch(self, numbers: Collection[int], left_out: list[str]) -> dict[int, _RelatedIssue]:
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
        at = self.trigger.at.isoformat()
        answer = query_repository(self.access, self.repository, query, aliases, at=at)
        related: dict[int, _RelatedIssue] = {}
        for number in numbers:
            row = answer.get(f"i{number}")
            issues, invalid_count = read_rows(_RelatedIssue, [row] if row else [])
            if issues:
                related[number] = issues[0]
            if invalid_count:
                left_out.append(f"#{number}, which GitHub describes in an unknown form")
        return related

    def _reference(
        self, number: int, relation: str, issue: _RelatedIssue, left_out: list[str]
    ) -> Reference | None:
        if self._is_late(issue.created_at):
            left_out.append(f"#{number}, opened after the request")
            return None
        is_late = self._is_late(issue.edited_at or issue.created_at)
        if is_late:
            left_out.append(f"the text of #{number}, edited after the request")
        renames = issue.renamed if not self._is_now else ()
        title = strip_hidden(renames[0].before if renames else issue.title).text
        text = "" if is_late else without_markers(issue.body, issue.author, self.own_login)
        body = strip_hidden(text)
        if body.removed:
            left_out.append(f"hidden in #{number}: {', '.join(body.removed)}")
        return Reference(
            number=number,
            is_pull_request=issue.kind == "PullRequest",
            relation=relation,
            state=self._state(issue),
            title=shorten_text(" ".join(title.split()), 256),
            author=issue.author,
            association=issue.association,
            body=shorten_text(without_pictures(body.text.strip()), MAX_BODY_CHARACTERS),
            is_late=is_late,
        )

    def _state(self, issue: _RelatedIssue) -> str:
        """Return the state at the time of the request; one that was closed later was open then."""
        if issue.merged_at and not self._is_late(issue.merged_at):
            return "merged"
        return "closed" if issue.closed_at and not self._is_late(issue.closed_at) else "open"

    @property
    def _is_now(self) -> bool:
        return self.trigger.kind is TriggerKind.COMMAND_LINE

    def _is_late(self, moment: datetime) -> bool:
        return not self._is_now and utc(moment) >= self.trigger.at


@dataclass(frozen=True)
class IssueContext:
    """The context of an issue or pull request."""

    references: tuple[Reference, ...]
    pictures: tuple[Picture, ...]
    checks: tuple[FailedCheck, ...]


@dataclass(frozen=True)
class IssueContextReader:
    """Reads the context of an issue or pull request.

    own_login: Resolver's.
    picture_hosts: hosts in addition to GitHub's own, with their port if it is not the default.
    """

    access: GitHubAccess
    repository: Repository
    trigger: Trigger
    subject: Subject
    own_login: str
    picture_hosts: tuple[str, ...] = ()

    def read(
        self,
        snapshot: Snapshot,
        comments: Sequence[Comment],
        links: PictureLinks,
        pull: PullRequestContext | None,
        left_out: list[str],
    ) -> IssueContext:
        """Return the whole context. What is left out is added to `left_out`."""
        commit = pull.head if pull else self.trigger.head
        needs_checks = pull is not None or self.trigger.kind is TriggerKind.CHECK_FAILED
        return IssueContext(
            references=self._references(snapshot, comments, pull, left_out),
            pictures=self._pictures(_task_texts(snapshot, comments, pull), links, left_out),
            checks=self.checks(commit, left_out) if needs_checks and commit else (),
        )

    def checks(self, commit: str, left_out: list[str]) -> tuple[FailedCheck, ...]:
        """Return the checks that had failed on the commit."""
        try:
            with self.access.wrap_errors("read the failed checks", "checks: read, actions: read"):
                return FailedCheckReader(self.access, self.repository, self.trigger).failed(
                    commit, left_out
                )
        except ForgeError as error:
            left_out.append(error.what)
            return ()

    def _references(
        self,
        snapshot: Snapshot,
        comments: Sequence[Comment],
        pull: PullRequestContext | None,
        left_out: list[str],
    ) -> tuple[Reference, ...]:
        texts = [self.trigger.instruction, snapshot.title, snapshot.body]
        texts += [comment.body for comment in reversed(comments) if not comment.is_ours]
        texts += _review_texts(pull)
        closed_numbers = [issue.number for issue in pull.closes] if pull else []
        name = self.repository.full_name
        try:
            with self.access.wrap_errors("read what it refers to", "issues: read"):
                related = RelatedIssueReader(
                    self.access, name, self.subject, self.trigger, self.own_login
                )
                return related.read(texts, closed_numbers, left_out)
        except ForgeError as error:
            left_out.append(error.what)
            return ()

    def _pictures(
        self, texts: Sequence[str], links: PictureLinks, left_out: list[str]
    ) -> tuple[Picture, ...]:
        """Return the pictures in those texts that are used."""
        if links.unnumbered:
            left_out.append(f"{links.unnumbered} more pictures")
        used_links = [
            link
            for link in links.links
            if any(f"[picture {link.number}]" in text for text in texts)
        ]
        hosts = PictureHosts(self.access.server_url, self.picture_hosts)
        reader = PictureReader(self.access, self.repository.requester, hosts)
        return reader.read(used_links, left_out)


def _review_texts(pull: PullRequestContext | None) -> list[str]:
    """Return the texts of reviews and review threads, newest first."""
    if pull is None:
        return []
    texts = [review.text for review in pull.reviews]
    texts += [text for thread in pull.threads for text in thread.comments]
    return [text.body for text in sorted(texts, key=lambda text: text.at, reverse=True)]


def _task_texts(
    snapshot: Snapshot, comments: Sequence[Comment], pull: PullRequestContext | None
) -> list[str]:
    """Return the texts that the task contains."""
    texts = [snapshot.body, *(comment.body for comment in comments)]
    if pull is not None:
        texts += [review.text.body for review in pull.reviews]
        texts += [comment.body for thread in pull.threads for comment in thread.comments]
    return texts
