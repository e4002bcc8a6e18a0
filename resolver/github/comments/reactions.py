"""Adds reactions to comments and issues: a request was seen, or a running agent has received it."""

import logging

from github.Repository import Repository

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.models.run import Trigger, TriggerKind

logger = logging.getLogger("resolver.github")


def add_reaction(
    access: GitHubAccess, repository: Repository, number: int, trigger: Trigger, content: str
) -> None:
    """Add a reaction to what made the request on issue or pull request `number`. Never raises."""
    try:
        with access.asking("react to the request", "issues: write"):
            _react(repository, number, trigger, content)
    except ForgeError as error:
        logger.warning("%s", error.what)


def _react(repository: Repository, number: int, trigger: Trigger, content: str) -> None:
    issue = repository.get_issue(number)
    if trigger.kind is TriggerKind.REVIEW_COMMENT and trigger.comment_id is not None:
        pull = repository.get_pull(number)
        pull.get_review_comment(trigger.comment_id).create_reaction(content)
    elif trigger.comment_id is not None and trigger.kind is not TriggerKind.REVIEW_SUBMITTED:
        issue.get_comment(trigger.comment_id).create_reaction(content)
    else:
        issue.create_reaction(content)
