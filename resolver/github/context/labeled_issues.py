"""Finds the open issues with a label, who added the label and when, and what has happened since.

A sweep turns labels whose event was never handled into triggers. Such a trigger equals the one that
the event would have made, so that work which the event did start is found.

Source: https://docs.github.com/en/rest/issues/events (`labeled`, `unlabeled`, `renamed`)
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from github.Reaction import Reaction
from github.Repository import Repository
from pydantic import AwareDatetime, Field

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess, read_rows
from resolver.github.client.accounts import is_by
from resolver.github.client.answers import ApiAnswer, AuthorAccount, Nodes, RepositoryName
from resolver.github.client.resources import PAGE_SIZE, Listing, query_repository, read_pages
from resolver.github.context.own_comments import comment_of_run
from resolver.github.context.visibility import utc
from resolver.github.events.issues import label_key
from resolver.github.events.payloads import Issue, Label, User
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.starting_events import ListeningPolicy
from resolver.github.text.markers import find_active_run
from resolver.models.run import Snapshot, Trigger, TriggerKind

logger = logging.getLogger("resolver.github")

MAX_ISSUES = 1000
"""Maximum number of open issues with the label that are listed, oldest first."""

MAX_EVENTS = 100
"""Number of the newest changes of labels and titles that are read."""

MAX_REACTIONS = 500
"""Maximum number of reactions to an issue that are read."""

SEEN = "eyes"
"""The reaction with which Resolver acknowledges a request."""

_STATE_QUERY = f"""
query($owner: String!, $name: String!, $number: Int!) {{
  repository(owner: $owner, name: $name) {{ issue(number: $number) {{
    state lastEditedAt
    closers: closedByPullRequestsReferences(first: 20) {{
      nodes {{ number url state author {{ __typename login }} repository {{ nameWithOwner }} }}
    }}
    events: timelineItems(
      itemTypes: [LABELED_EVENT, UNLABELED_EVENT, RENAMED_TITLE_EVENT], last: {MAX_EVENTS}
    ) {{ nodes {{
      __typename
      ... on LabeledEvent {{
        createdAt label {{ name }}
        actor {{ __typename login ... on User {{ databaseId }} ... on Bot {{ databaseId }} }}
      }}
      ... on UnlabeledEvent {{ createdAt label {{ name }} }}
      ... on RenamedTitleEvent {{ createdAt }}
    }} }}
  }} }}
}}
"""


@dataclass(frozen=True)
class Labeling:
    """The labeling of an issue, its time, and the state of the issue.

    label: the name as it was when it was added.
    by: the account that added it, None for a deleted account.
    at: when it was added.
    edited_at: when the title or text was last changed, None for never.
    is_open: True if the issue is open now.
    pull_request: URL of an open pull request that closes it, None if there is none.
    pull_request_by: login of the author of that pull request.
    """

    label: str
    by: User | None
    at: datetime
    edited_at: datetime | None
    is_open: bool
    pull_request: str | None = None
    pull_request_by: str | None = None


class _Labeler(AuthorAccount):
    id: int | None = Field(alias="databaseId", default=None)


class _Event(ApiAnswer):
    kind: str = Field(alias="__typename")
    created_at: AwareDatetime = Field(alias="createdAt")
    label: Label | None = None
    actor: _Labeler | None = None

    @property
    def labeler(self) -> User | None:
        """The account as an event of a webhook has it, None for a deleted one."""
        if self.actor is None or self.actor.id is None:
            return None
        return User(login=self.actor.name, id=self.actor.id, type=self.actor.kind)


class _Closer(ApiAnswer):
    url: str
    state: str
    author: AuthorAccount | None = None
    repository: RepositoryName


class _State(ApiAnswer):
    state: str
    closers: Nodes[_Closer] = ()
    events: Nodes[_Event] = ()
    edited_at: AwareDatetime | None = Field(alias="lastEditedAt", default=None)


@dataclass(frozen=True)
class LabeledIssues:
    """Reads the issues with one label. own_login: Resolver's."""

    access: GitHubAccess
    repository: Repository
    label: str
    own_login: str

    def oldest_first(self) -> list[Issue]:
        """Return the open issues with the label, without pull requests. Raises ForgeError."""
        query = {"state": "open", "sort": "created", "direction": "asc", "labels": self.label}
        url = f"{self.repository.url}/issues"
        with self._convert_errors(f"list the issues labeled {self.label}", "issues: read"):
            # PyGithub's objects would send another request for each row that is read.
            pages = read_pages(self.repository.requester, url, query, MAX_ISSUES // PAGE_SIZE)
            issues, invalid_count = read_rows(Issue, [row for page in pages for row in page])
        if invalid_count:
            logger.warning(
                "%s issues of %s can't be read", invalid_count, self.repository.full_name
            )
        return [issue for issue in issues if issue.pull_request is None]

    def labeling(self, issue: Issue) -> Labeling | None:
        """Return how an issue of the list was labeled, None if it doesn't have the label any more.

        It is called after the list was read, so an edit in between counts as an edit. Raises
        ForgeError.
        """
        with self._convert_errors(f"read the events of #{issue.number}", "issues: read"):
            full_name = self.repository.full_name
            answer = query_repository(self.access, full_name, _STATE_QUERY, number=issue.number)
            state = _State.model_validate(answer["issue"])
        about_label = [event for event in state.events if self._is_about_label(event)]
        if not about_label and len(state.events) == MAX_EVENTS:
            raise ForgeError(
                f"#{issue.number} has too many events to find who labeled it",
                "ask for it with a comment",
            )
        last_event = about_label[-1] if about_label else None
        if last_event is None or last_event.kind != "LabeledEvent" or last_event.label is None:
            return None
        open_closers = (closer for closer in state.closers if closer.state == "OPEN")
        closer = next((c for c in open_closers if c.repository.is_same(full_name)), None)
        renamed_at = [e.created_at for e in state.events if e.kind == "RenamedTitleEvent"]
        return Labeling(
            label=last_event.label.name,
            by=last_event.labeler,
            at=last_event.created_at,
            edited_at=max([*renamed_at, *filter(None, [state.edited_at])], default=None),
            is_open=state.state == "OPEN",
            pull_request=closer.url if closer else None,
            pull_request_by=closer.author.name if closer and closer.author else None,
        )

    def active_since(self, *triggers: Trigger) -> datetime | None:
        """Return the time since which a run may have been working on a labeled issue, or None.

        A run may be active if Resolver has reacted to the issue since it was labeled, and no
        comment says that the run has ended or died.

        triggers: the triggers that the labeling may have been handled as. Raises ForgeError.
        """
        first_trigger = triggers[0]
        with self._convert_errors(
            f"look for an active run on #{first_trigger.number}", "issues: read"
        ):
            issue = self.repository.get_issue(first_trigger.number or 0)
            reactions = Listing(issue.requester, Reaction, f"{issue.url}/reactions")
            reaction_times = [
                utc(reaction.created_at)
                for reaction in islice(reactions, MAX_REACTIONS)
                if reaction.content == SEEN and is_by(reaction, self.own_login)
            ]
            started_at = max((at for at in reaction_times if at >= first_trigger.at), default=None)
            for trigger in triggers if started_at is not None else ():
                comment = comment_of_run(issue, self.own_login, trigger)
                if comment is not None:
                    active_run = find_active_run(comment.body or "")
                    return active_run.since if active_run else None
            return started_at

    def _is_about_label(self, event: _Event) -> bool:
        return event.label is not None and event.label.name.casefold() == self.label.casefold()

    def _convert_errors(self, operation: str, permission: str) -> Any:
        return self.access.wrap_errors(f"{operation} in {self.repository.full_name}", permission)


MAX_WEBHOOK_DELAY = timedelta(seconds=1)
"""Maximum time by which the webhook's time of a labeling is later than the one in the events.

The webhook's time is the issue's `updated_at`.
"""


def labeled_trigger(
    issue: Issue, labeling: Labeling | None, repository: str, policy: ListeningPolicy
) -> Trigger | IgnoredEvent:
    """Return the trigger for a labeling, or the reason why it starts no work now.

    Args:
        issue: The issue.
        labeling: When and by whom it was labeled; None when the label is no longer there.
        repository: OWNER/NAME.
        policy: Whose labels start work.
    """
    if labeling is None:
        return IgnoredEvent("the label was removed in the meantime")
    if not labeling.is_open:
        return IgnoredEvent("the issue was closed in the meantime")
    if labeling.pull_request:
        author = labeling.pull_request_by or "ghost"
        return IgnoredEvent(f"an open pull request of {author} closes it")
    labeler = labeling.by
    if labeler is None:
        return IgnoredEvent("the account that added the label no longer exists")
    ignored = policy.ignores(labeler)
    if ignored:
        return IgnoredEvent(f"it was labeled by {labeler.login}: {ignored.reason}")
    # GitHub's times are in whole seconds: an edit in the second of the labeling may have come
    # after it, so that the person did not see the text.
    if labeling.edited_at is not None and labeling.edited_at >= labeling.at:
        return IgnoredEvent(
            f"it was edited after {labeler.login} labeled it: read it, and label it again"
        )
    return Trigger(
        key=label_key(issue.id, labeling.label, labeling.at),
        kind=TriggerKind.ISSUE_LABELED,
        repository=repository,
        number=issue.number,
        actor=labeler.actor,
        at=labeling.at,
        snapshot=Snapshot(
            title=issue.title,
            body=issue.body or "",
            author=issue.user.login if issue.user else "ghost",
        ),
    )


def with_later_time(trigger: Trigger, issue: Issue, labeling: Labeling) -> Trigger:
    """Return the same trigger as it would be if the webhook's payload had the later time."""
    at = trigger.at + MAX_WEBHOOK_DELAY
    key = label_key(issue.id, labeling.label, at)
    return trigger.model_copy(update={"at": at, "key": key})
