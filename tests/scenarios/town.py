"""One repository, its people, its running server: what they do reaches it as GitHub delivers it."""

import re
from pathlib import Path
from typing import Any

from tests.parts.events import Events
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Comment, Issue, Repository, Review
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.waiting import until
from tests.webhook.serving import BOT, Forge, Server

NAME = "octo/calc"
FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n\n\ndef half(a):\n    return a // 2\n",
    "test_calc.py": "from calc import add\n\nassert add(2, 2) == 4\n",
    "README.md": "# calc\n",
}
PRICES = {
    "RESOLVER_MODEL_OPTIONS": "{input_cost_per_token: 0.000001, output_cost_per_token: 0.000001}",
}
_HIDDEN = re.compile(r"<!--.*?-->", re.S)


class Town:
    """mona maintains octo/calc, zoe reports, eve may do nothing. The model answers `script`."""

    def __init__(
        self, github: GitHubServer, endpoint: ModelEndpoint, folder: Path, **settings: str
    ) -> None:
        self.github, self.endpoint = github, endpoint
        self.forge = Forge(github)
        self.repository: Repository = github.create_repository(NAME, FILES)
        for login in ("mona", BOT):
            github.grant(login, NAME, "write", "MEMBER")
        for login in ("zoe", "eve"):
            github.add_user(login)
        self.events = Events(github, NAME)
        self.server = Server(folder, self.forge, endpoint, **{**PRICES, **settings})
        self.server.start()

    def close(self) -> None:
        """End the server; nothing in its log is to be looked into, and no secret anywhere."""
        self.server.close()
        self.server.check()

    def script(self, *answers: Answer) -> None:
        """Set the next answers of the model, for any request."""
        self.endpoint.script(*answers)

    # What people do

    def opens(self, who: str, title: str, body: str = "") -> Issue:
        """Open an issue."""
        self.github.advance(2)
        issue = self.github.create_issue(NAME, title, body, author=who)
        self.tell("issues", self.events.subject(issue, "opened", who))
        return issue

    def says(self, who: str, thread: Issue, words: str) -> Comment:
        """Write a comment."""
        self.github.advance(2)
        comment = self.github.add_comment(thread, words, who)
        self.tell("issue_comment", self.github.event_issue_comment(comment))
        return comment

    def reviews(self, who: str, pull: Issue, words: str, *lines: tuple[str, int, str]) -> Review:
        """Submit a review with comments on lines (path, line, words): an event each, as GitHub
        sends them."""
        self.github.advance(2)
        review = self.github.add_review(pull, words, who, comments=lines)
        for comment in review.comments:
            payload = self.events.review_comment(comment)
            self.tell("pull_request_review_comment", payload)
        self.tell("pull_request_review", self.events.review(review))
        return review

    def fails(self, pull: Issue, name: str, log: str) -> None:
        """A workflow fails on the newest commit of the pull request."""
        assert pull.pull is not None
        self.github.advance(2)
        tip = self.repository.git.tip(pull.pull.head)
        assert tip is not None
        self.github.end_check(NAME, tip, name, log=log)
        self.tell("workflow_run", self.events.workflow_failed(pull.pull.head, BOT, name))

    def tell(self, event: str, payload: dict[str, Any]) -> None:
        """Deliver an event to the server."""
        status, said = self.server.deliver(payload, event)
        assert status in {200, 202}, said

    # What is there to see

    def pull(self) -> Issue:
        """The pull request, as soon as it is there."""
        [found] = until(lambda: self.forge.pulls(self.repository), 60)
        return found  # type: ignore[no-any-return]

    def answered(self, thread: Issue, times: int = 1) -> None:
        """Wait until there are so many comments of ours on the thread whose work has ended."""
        until(lambda: len(self.ended(thread)) >= times, 60)

    def ended(self, thread: Issue) -> list[str]:
        """Return Resolver's comments in the conversation about work that has ended."""
        comments = (c.body for c in self.forge.final_comments(thread))
        return [seen(body) for body in comments if " ending=progress" not in body.split("\n")[0]]

    def replies(self, pull: Issue, review: Review) -> list[str]:
        """Our answers in the review's conversations."""
        asked = {comment.id for comment in review.comments}
        answers = (c for c in pull.review_comments if c.author.login == BOT)
        return [seen(c.body) for c in answers if c.in_reply_to in asked]


def seen(body: str) -> str:
    """Return the visible part of a comment's source."""
    return _HIDDEN.sub("", body).strip()
