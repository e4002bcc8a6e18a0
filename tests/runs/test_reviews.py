"""A review of a pull request, from the request to the review and the comment, over real sockets.

Whole runs, because the review is of one commit from the request to GitHub's page, whatever is
pushed meanwhile.
"""

from typing import Any

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue, Review
from tests.parts.model_endpoint import Answer, ModelEndpoint, tool_call
from tests.parts.runs import CommandLine
from tests.runs.scenario import Scenario

UPSTREAM = "octo/calc"
FORK = "zoe/calc"
BEFORE = "\n".join(f"# line {n}" for n in range(1, 31)) + "\n"
AFTER = BEFORE.replace("# line 10\n", "def half(x):\n    return x // 2\n")


def comment(line: int, body: str, **more: Any) -> Answer:
    """The model comments on a line."""
    return tool_call("review_comment", {"path": "half.py", "line": line, "body": body, **more})


def submit(summary: str = "It halves, and rounds down.", **more: Any) -> Answer:
    """The model ends the review."""
    return tool_call("submit_review", {"summary": summary, **more})


class ReviewScenario(Scenario):
    """A pull request of `zoe` from a fork; the maintainer `mona` asks for a review."""

    def __init__(self, github: GitHubServer, line: CommandLine, endpoint: ModelEndpoint) -> None:
        super().__init__(github, line, endpoint)
        github.commit(UPSTREAM, "main", {"half.py": BEFORE, "other.py": "OTHER = 1\n"})
        github.create_repository(FORK, parent=UPSTREAM)
        self.head = github.commit(FORK, "half", {"half.py": AFTER}, "Add half()")
        github.commit(UPSTREAM, "main", {"later.py": "LATER = 1\n"}, "meanwhile")
        self.pull: Issue = github.create_pull(
            UPSTREAM, "zoe:half", "Add half()", f"Fixes #{self.issue.number}", author="zoe"
        )

    def ask(self, text: str = "@agent review", author: str = "mona") -> dict[str, Any]:
        self.github.advance(5)
        return self.github.event_issue_comment(
            self.github.add_comment(self.pull, text, author=author)
        )

    @property
    def reviews(self) -> list[Review]:
        return [r for r in self.pull.reviews if r.author.login == "resolver-bot"]

    def own_comments(self) -> list[str]:
        return [c.body for c in self.pull.comments if c.author.login == "resolver-bot"]

    @property
    def prompt(self) -> str:
        body = self.endpoint.requests[0].body
        return "\n".join(str(m["content"]) for m in body["messages"])


SCENARIO = ReviewScenario


def test_the_command_line_reviews_and_publishes_once_at_the_head_where_it_is_wanted(
    scenario: ReviewScenario,
) -> None:
    """Whole runs: the story of a review from the command line, as in docs/how-to/reviews.md. The
    second attempt to publish it has only what the first one has stored."""
    scenario.endpoint.script(comment(11, "This rounds down."), submit())
    target = f"{UPSTREAM}#{scenario.pull.number}"
    scenario.github.fail_next("POST", r"/reviews$", 403, body={"message": "Forbidden"})
    cut = scenario.line.call("resolve", target, "--agent", "ReviewerAgent")
    assert cut.exit_code == 1
    assert scenario.reviews == []
    scenario.github.commit(FORK, "half", {"half.py": "EVIL = 1\n"}, "meanwhile")
    asked = len(scenario.endpoint.requests)
    done = scenario.line.call("resolve", "--resume", str(cut.output))
    assert done.exit_code == 0, done.stderr
    assert len(scenario.endpoint.requests) == asked
    [review] = scenario.reviews
    assert (review.commit, [c.line for c in review.comments]) == (scenario.head, [11])
    assert f"pullrequestreview-{review.id}" in done.stderr
