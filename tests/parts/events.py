"""Events that start work: GitHub's published examples, adapted to the test GitHub."""

import copy
from typing import Any

from tests.parts.github import GitHubServer
from tests.parts.github_server.documents import stamp
from tests.parts.github_server.state import Issue, Review, ReviewComment
from tests.parts.published import webhook_examples

Payload = dict[str, Any]


def example(name: str, action: str | None = None, number: int = 0) -> Payload:
    """A copy of the example of this event and action."""
    fitting = [e for e in webhook_examples()[name] if e.get("action") == action]
    return copy.deepcopy(fitting[number])


class Events:
    """The events of one repository, which has the issue or pull request that they are about."""

    def __init__(self, github: GitHubServer, repository: str) -> None:
        self.github, self.repository = github, github.repository(repository)

    def subject(self, issue: Issue, action: str, sender: str, **more: Any) -> Payload:
        """What is done to it: an event of `issues`, or of `pull_request`. Who is assigned or asked
        for a review, is so from now on."""
        name = "pull_request" if issue.pull else "issues"
        account = self.github.world.account
        if "assignee" in more:
            issue.assignees.append(account(more["assignee"]["login"]))
        if issue.pull and "requested_reviewer" in more:
            issue.pull.reviewers.append(account(more["requested_reviewer"]["login"]))
        if issue.pull and "requested_team" in more:
            issue.pull.teams.append(more["requested_team"]["slug"])
        payload = example(name, action) | self._around(sender)
        if issue.pull:
            payload["pull_request"] |= self.github.document_of_pull(issue)
        else:
            payload["issue"] = self.github.document(issue)
        return payload | more

    def review(self, review: Review) -> Payload:
        """A `pull_request_review`."""
        payload = self._on_pull("pull_request_review", "submitted", "review", review)
        payload["review"]["state"] = review.state.lower()
        return payload

    def review_comment(self, comment: ReviewComment) -> Payload:
        """A `pull_request_review_comment`."""
        return self._on_pull("pull_request_review_comment", "created", "comment", comment)

    def _on_pull(self, name: str, action: str, part: str, text: Review | ReviewComment) -> Payload:
        payload = example(name, action) | self._around(text.author.login)
        payload["pull_request"] |= self.github.document_of_pull(text.issue)
        payload[part] |= self.github.document(text)
        return payload

    def account(self, login: str) -> Payload:
        return self.github.document(self.github.world.account(login))

    def by_hand(self, sender: str, **inputs: str) -> Payload:
        """A `workflow_dispatch`."""
        return example("workflow_dispatch") | self._around(sender) | {"inputs": inputs}

    def by_program(self, sender: str, **given: Any) -> Payload:
        """A `repository_dispatch`."""
        named = {"action": "agent", "client_payload": given}
        return example("repository_dispatch", "on-demand-test") | self._around(sender) | named

    def workflow_failed(self, branch: str, sender: str, name: str = "CI") -> Payload:
        """A `workflow_run` for the branch's newest commit."""
        payload = example("workflow_run", "completed", 1) | self._around(sender)
        payload["workflow_run"] |= {
            "name": name,
            "event": "push",
            "head_branch": branch,
            "head_sha": self.repository.git.tip(branch),
            "conclusion": "failure",
            "updated_at": stamp(self.github.world.now()),
            "head_repository": {"full_name": self.repository.full_name},
            "pull_requests": [],
        }
        return payload

    def _around(self, sender: str) -> Payload:
        return {
            "repository": self.github.document(self.repository),
            "sender": self.account(sender),
        }
