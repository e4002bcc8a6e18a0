"""Finds the open issues with a label, who added the label and when, and what has happened since.

Source: https://docs.github.com/en/rest/issues/events (`labeled`, `unlabeled`, `renamed`)
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any

from github.Reaction import Reaction
from github.Repository import Repository
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess, read_rows
from resolver.github.client.resources import Listing, query_graphql
from resolver.github.comments.find_or_create import comment_of_run
from resolver.github.comments.markers import at_work_in, run_of_marker
from resolver.github.context.visibility import utc
from resolver.models.run import Trigger

logger = logging.getLogger("resolver.github")

PAGE = 100
"""Number of items on a page of the API."""

MOST_ISSUES = 1000
"""Maximum number of open issues with the label that are listed, oldest first."""

MOST_OPEN = 10_000
"""Maximum number of open issues that are searched if GitHub can't filter by the label."""

MOST_EVENTS = 3000
"""Maximum number of events of an issue that are read. If there are more, ForgeError is raised."""

MOST_PULLS = 1000
"""Maximum number of open pull requests that are searched for Resolver's own."""

MOST_REACTIONS = 500
"""Maximum number of reactions to an issue that are read."""

SEEN = "eyes"
"""The reaction with which Resolver acknowledges a request."""

_STATE = """
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { issue(number: $number) {
    state lastEditedAt
    closers: closedByPullRequestsReferences(first: 20) {
      nodes { number url state author { login } repository { nameWithOwner } }
    }
  } }
}
"""


class LabellingAccount(BaseModel):
    """An account as the API returns it. type: "User", "Bot" or "Organization"."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    login: str
    id: int
    type: str = "User"


@dataclass(frozen=True)
class LabelledIssue:
    """An open issue with the label, as the API lists it."""

    number: int
    id: int
    title: str
    body: str
    author: str


@dataclass(frozen=True)
class Labelling:
    """How and when an issue was labelled, and the state of the issue.

    label: the name as it was when it was added.
    by: the account that added it, None for a deleted account.
    at: when it was added.
    edited_at: when the title or text was last changed, None for never.
    is_open: True if the issue is open now.
    pull_request: URL of the open pull request that Resolver made for the issue, else of another
        open one that closes it, "" for none.
    pull_request_by: login of the author of that pull request, "" if it is Resolver's own.
    """

    label: str
    by: LabellingAccount | None
    at: datetime
    edited_at: datetime | None
    is_open: bool
    pull_request: str
    pull_request_by: str = ""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class _Label(_Answer):
    name: str


class _Issue(_Answer):
    id: int
    number: int
    title: str
    body: str | None = None
    user: LabellingAccount | None = None
    pull_request: dict[str, Any] | None = None
    labels: tuple[_Label, ...] = ()


class _Event(_Answer):
    id: int
    event: str
    actor: LabellingAccount | None = None
    created_at: AwareDatetime
    label: _Label | None = None


class _Login(_Answer):
    login: str


class _Place(_Answer):
    name: str = Field(alias="nameWithOwner")


class _Closer(_Answer):
    url: str
    state: str
    author: _Login | None = None
    repository: _Place


class _Closers(_Answer):
    nodes: list[_Closer | None] = []


class _State(_Answer):
    state: str
    closers: _Closers = _Closers()
    edited_at: AwareDatetime | None = Field(alias="lastEditedAt", default=None)


class _Pull(_Answer):
    html_url: str
    body: str | None = None
    user: LabellingAccount | None = None


_EVENTS = TypeAdapter(list[_Event])
_PULLS = TypeAdapter(list[_Pull])


class LabelledIssues:
    """Reads the issues with one label. own: the login whose pull requests are Resolver's own."""

    def __init__(self, access: GitHubAccess, repository: Repository, label: str, own: str) -> None:
        self._access = access
        self._repository = repository
        self._label = label
        self._own = own.casefold()

    def oldest_first(self) -> list[LabelledIssue]:
        """Return the open issues with the label, without pull requests. Raises ForgeError."""
        query = {"state": "open", "sort": "created", "direction": "asc"}
        # In GitHub's `labels` parameter, a comma separates two labels, so a label with a comma in
        # its name can't be filtered by.
        named = {} if "," in self._label else {"labels": self._label}
        most = MOST_ISSUES if named else MOST_OPEN
        with self._asking(f"list the issues labelled {self._label}", "issues: read"):
            rows, unread = read_rows(_Issue, list(self._rows("issues", query | named, most)))
        if unread:
            logger.warning("%s issues of %s can't be read", unread, self._repository.full_name)
        return [
            LabelledIssue(
                number=row.number,
                id=row.id,
                title=row.title,
                body=row.body or "",
                author=row.user.login if row.user else "ghost",
            )
            for row in rows
            if row.pull_request is None and (named or self._is_worn(row.labels))
        ][:MOST_ISSUES]

    def labelling(self, issue: LabelledIssue) -> Labelling | None:
        """Return how an issue of the list was labelled, None if it doesn't have the label any more.

        It is called after the list was read, so an edit in between counts as an edit. Raises
        ForgeError.
        """
        with self._asking(f"read the events of #{issue.number}", "issues: read"):
            path = f"issues/{issue.number}/events"
            events = _EVENTS.validate_python(list(self._rows(path, {}, MOST_EVENTS)))
            state = _State.model_validate(self._asked(issue.number))
        if len(events) >= MOST_EVENTS:
            raise ForgeError(
                f"#{issue.number} has too many events to find who labelled it",
                "ask for it with a comment",
            )
        last = max(filter(self._is_about_label, events), key=_order, default=None)
        if last is None or last.event == "unlabeled" or last.label is None:
            return None
        closer = self._closer(state)
        own = self._own_pulls.get(issue.number, "")
        renamed = [event.created_at for event in events if event.event == "renamed"]
        return Labelling(
            label=last.label.name,
            by=last.actor,
            at=last.created_at,
            edited_at=max([*renamed, *filter(None, [state.edited_at])], default=None),
            is_open=state.state == "OPEN",
            pull_request=own or (closer.url if closer else ""),
            pull_request_by="" if own or closer is None else _login(closer),
        )

    def at_work_since(self, *triggers: Trigger) -> datetime | None:
        """Return since when a run of Resolver may be working on a labelled issue, None if none is.

        A run may be at work if Resolver has reacted to the issue since it was labelled, and no
        comment says that the run has ended or died.

        triggers: the triggers that the labelling may have been handled as. Raises ForgeError.
        """
        first = triggers[0]
        with self._asking(f"look for a run at work on #{first.number}", "issues: read"):
            issue = self._repository.get_issue(first.number or 0)
            reactions = Listing(issue.requester, Reaction, f"{issue.url}/reactions")
            seen = [
                utc(each.created_at)
                for each in islice(reactions, MOST_REACTIONS)
                if each.content == SEEN and each.user.login.casefold() == self._own
            ]
            since = max((at for at in seen if at >= first.at), default=None)
            for trigger in triggers if since is not None else ():
                comment = comment_of_run(issue, self._own, trigger)
                if comment is not None:
                    work = at_work_in(comment.body or "")
                    return work.since if work else None
            return since

    def _closer(self, state: _State) -> _Closer | None:
        """Return an open pull request of this repository that closes the issue, by any author."""
        here = self._repository.full_name.casefold()
        for closer in state.closers.nodes:
            if closer and closer.state == "OPEN" and closer.repository.name.casefold() == here:
                return closer
        return None

    def _is_worn(self, labels: Iterable[_Label]) -> bool:
        return any(label.name.casefold() == self._label.casefold() for label in labels)

    def _is_about_label(self, event: _Event) -> bool:
        named = event.label.name.casefold() if event.label else ""
        return event.event in {"labeled", "unlabeled"} and named == self._label.casefold()

    @cached_property
    def _own_pulls(self) -> dict[int, str]:
        """URLs of Resolver's open pull requests, by the number of the issue they were made for."""
        with self._asking("list the open pull requests", "pull-requests: read"):
            rows = _PULLS.validate_python(list(self._rows("pulls", {"state": "open"}, MOST_PULLS)))
        ours = [row for row in rows if row.user and row.user.login.casefold() == self._own]
        made = [(run_of_marker(row.body or ""), row.html_url) for row in ours]
        return {work[0]: url for work, url in made if work is not None}

    def _rows(self, path: str, query: dict[str, str], most: int) -> Iterator[dict[str, Any]]:
        """Yield the rows of a listing, up to `most`.

        It bypasses PyGithub's objects, which would send another request for each row that is read.
        """
        for page in range(1, most // PAGE + 1):
            _, rows = self._repository.requester.requestJsonAndCheck(
                "GET",
                f"{self._repository.url}/{path}",
                parameters={**query, "per_page": PAGE, "page": page},
            )
            yield from rows
            if len(rows) < PAGE:
                return

    def _asked(self, number: int) -> dict[str, Any]:
        owner, _, name = self._repository.full_name.partition("/")
        data = query_graphql(self._access, _STATE, {"owner": owner, "name": name, "number": number})
        found: dict[str, Any] = data["repository"]["issue"]
        return found

    def _asking(self, what: str, permission: str) -> Any:
        return self._access.asking(f"{what} in {self._repository.full_name}", permission)


def _login(closer: _Closer) -> str:
    return closer.author.login if closer.author else "ghost"


def _order(event: _Event) -> tuple[datetime, int]:
    return event.created_at, event.id
