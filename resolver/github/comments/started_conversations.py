"""Remembers for a moment what is on GitHub about a request.

Several steps at the start of a run ask for it: what an earlier run has published, where the run's
comment is, and what the task is.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from github.IssueComment import IssueComment
from github.PullRequest import PullRequest
from github.Repository import Repository

from resolver.github.client.access import GitHubAccess
from resolver.github.client.resources import CachedRows
from resolver.github.comments.find_or_create import newest_pulls
from resolver.github.context.conversation import Conversation, ConversationReader
from resolver.github.context.own_comments import own_comments_in
from resolver.models.run import Actor, Trigger

MAX_AGE_SECONDS = 30.0
"""A conversation that was read less than this time ago is not read again to start a run on it."""


@dataclass(frozen=True)
class StartedConversation:
    """A conversation, and the repository's pull requests, as they were when a request was seen."""

    conversation: Conversation
    newest_pulls: CachedRows[PullRequest]
    read_at: float = field(default_factory=time.monotonic)

    @property
    def is_current(self) -> bool:
        """False once it has to be read again."""
        return time.monotonic() - self.read_at < MAX_AGE_SECONDS


@dataclass
class StartedConversations:
    """Reads the conversations of the repository that `name` names.

    Attributes:
        account: The account of the token, once it is known.
    """

    access: GitHubAccess
    repository: Repository
    name: str
    account: Actor | None = None
    _started: dict[int, StartedConversation] = field(default_factory=dict)

    def read(self, trigger: Trigger, number: int) -> Conversation:
        """Return the issue or pull request, as it was read just now. Raises ForgeError."""
        started = self.current(number)
        if started is not None:
            return started.conversation
        with self.access.wrap_errors(f"read issue {number} of {self.name}", "issues: read"):
            conversation = ConversationReader(self.access, self.name, number).read(trigger.at)
        if conversation.viewer is not None:
            self.account = conversation.viewer.actor
        return conversation

    def start(self, trigger: Trigger, number: int) -> StartedConversation:
        """Return what the start of a run on this conversation needs. Raises ForgeError."""
        started = self.current(number)
        if started is None:
            conversation = self.read(trigger, number)
            started = StartedConversation(conversation, newest_pulls(self.repository))
            self._started[number] = started
        return started

    def current(self, number: int) -> StartedConversation | None:
        """Return what was read just now of this conversation, None if nothing was."""
        started = self._started.get(number)
        return started if started is not None and started.is_current else None

    def own_comments(
        self, repository: Repository, own_login: str
    ) -> dict[int, Sequence[IssueComment]]:
        """Return Resolver's own comments in the conversations that were read just now, by number.

        repository: of the client that is to edit them.
        """
        return {
            number: own_comments_in(started.conversation, repository, own_login)
            for number, started in dict(self._started).items()
            if started.is_current
        }
