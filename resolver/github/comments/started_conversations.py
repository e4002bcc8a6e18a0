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
from resolver.github.client.accounts import OwnAccount
from resolver.github.client.resources import CachedRows
from resolver.github.comments.find_or_create import newest_pulls
from resolver.github.context.conversation import Conversation, ConversationReader
from resolver.github.context.own_comments import own_comments_in
from resolver.models.run import Trigger

MAX_AGE_SECONDS = 30.0
"""A conversation that was read less than this time ago is not read again to start a run on it."""


@dataclass
class StartedConversations:
    """Reads the conversations of the repository that `name` names.

    They also say which account the token has, which `own_account` remembers.
    """

    access: GitHubAccess
    name: str
    own_account: OwnAccount
    _read: dict[int, tuple[float, Conversation]] = field(default_factory=dict)
    _pulls: tuple[float, CachedRows[PullRequest]] | None = None

    def read(self, trigger: Trigger, number: int) -> Conversation:
        """Return the issue or pull request, as it was read just now. Raises ForgeError."""
        conversation = self.current(number)
        if conversation is not None:
            return conversation
        with self.access.wrap_errors(f"read issue {number} of {self.name}", "issues: read"):
            conversation = ConversationReader(self.access, self.name, number).read(trigger.at)
        if conversation.viewer is not None:
            self.own_account.viewer = conversation.viewer.actor
        self._read[number] = (time.monotonic(), conversation)
        return conversation

    def current(self, number: int) -> Conversation | None:
        """Return the conversation if it was read just now, else None."""
        read_at, conversation = self._read.get(number, (0.0, None))
        return conversation if time.monotonic() - read_at < MAX_AGE_SECONDS else None

    def forget(self) -> None:
        """Forget what was read, so that it is read again."""
        self._read.clear()

    def newest_pulls(self, repository: Repository) -> CachedRows[PullRequest]:
        """Return the pull requests of the repository, as they were read just now."""
        if self._pulls is None or time.monotonic() - self._pulls[0] >= MAX_AGE_SECONDS:
            self._pulls = (time.monotonic(), CachedRows(newest_pulls(repository)))
        return self._pulls[1]

    def own_comments(
        self, repository: Repository, own_login: str
    ) -> dict[int, Sequence[IssueComment]]:
        """Return Resolver's own comments in the conversations that were read just now, by number.

        repository: of the client that is to edit them.
        """
        return {
            number: own_comments_in(conversation, repository, own_login)
            for number in list(self._read)
            if (conversation := self.current(number)) is not None
        }
