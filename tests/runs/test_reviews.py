"""A review of a pull request, from the request to the review and the comment, over real sockets.

Whole runs, because the review is of one commit from the request to GitHub's page, whatever is
pushed meanwhile.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from resolver.events.actions import ReviewComment
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue, Review
from tests.parts.model_endpoint import Answer, ModelEndpoint, reply, tool_call
from tests.parts.runs import CommandLine, bash, finish
from tests.runs.test_github import WATCHED, Scenario

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


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[ReviewScenario]:
    yield ReviewScenario(github, command_line, model_endpoint)


def test_the_agent_is_shown_the_pull_request_at_its_head_and_what_was_said_of_it(
    scenario: ReviewScenario,
) -> None:
    """A whole run: the story of a review of what others have reviewed. What an open conversation
    says is not said again."""
    scenario.github.add_review_comment(
        scenario.pull, "half.py", 10, "half is a poor name here", "eve"
    )
    scenario.github.add_review(scenario.pull, "Nice start.", "mona", "APPROVED")
    scenario.endpoint.script(
        bash("head -n 11 half.py | tail -n 1; ls later.py"),
        comment(10, "The name half is poor: a better name says what it is half of."),
        comment(11, "This rounds down."),
        submit(),
    )
    done = scenario.action(scenario.ask("@agent review, mostly for rounding"))
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "You review a change" in scenario.prompt
    for words in (
        "    10 +def half(x):",
        "    10 -# line 10",
        "     9  # line 9",
        "=== half.py: modified, +2 -1",
        "zoe/calc, a fork",
        "half is a poor name here",
        "open conversation on half.py:10",
        "review by mona (COLLABORATOR): APPROVED",
        "which it closes",
        "2 + 2 gives 0.",
        "Add half()",
        "mostly for rounding",
        "not known to have write access",
    ):
        assert words in scenario.prompt, words
    seen = json.dumps(scenario.endpoint.requests[1].body)
    assert "return x // 2" in seen
    assert "No such file" in seen
    [review] = scenario.reviews
    assert [c.body for c in review.comments] == ["This rounds down."]
    assert "open review threads already say the same" in review.body


def test_a_question_about_a_pull_request_is_answered_at_its_head(scenario: ReviewScenario) -> None:
    """A whole run: the story of a question about a pull request, whose answer links to its head."""
    scenario.endpoint.script(bash("sed -n 11p half.py"), finish("Because `half.py:11` does."))
    done = scenario.action(scenario.ask("@agent why does half() round down?"))
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "You answer a question" in scenario.prompt
    assert "    11 +    return x // 2" in scenario.prompt
    [comment] = scenario.own_comments()
    assert f"/blob/{scenario.head}/half.py#L11" in comment
    assert scenario.pull.reviews == []


def test_who_has_opened_a_pull_request_gets_no_review_or_work_on_it_for_that(
    scenario: ReviewScenario,
) -> None:
    """A whole run, because no stage of it may begin to work."""
    assert scenario.action(scenario.ask(author="zoe")).exit_code == 5
    head = scenario.github.repository(FORK).git.tip("half")
    done = scenario.action(scenario.ask("@agent please fix the rounding", author="zoe"))
    assert done.exit_code == 5
    assert not scenario.endpoint.requests
    assert scenario.github.repository(FORK).git.tip("half") == head
    assert scenario.pull.reviews == []
    assert "no write access" in scenario.own_comments()[0]


def test_the_tags_do_the_same(scenario: ReviewScenario) -> None:
    """A whole run: the story of a review, from the words of the model to GitHub's page."""
    text = (
        'Found one.\n\n<review_comment path="half.py" line="11" start_line="10" severity="high">\n'
        "<body>\nIt rounds. See half.py:10.\n</body>\n"
        "<suggestion>\ndef half(x):\n    return x / 2\n"
        "</suggestion>\n</review_comment>\n\n"
        '<submit_review verdict="comment">\nFine otherwise.\n</submit_review>'
    )
    scenario.endpoint.script(reply(text))
    done = scenario.action(scenario.ask(), RESOLVER_DIALECT="tags")
    assert done.exit_code == 0, done.stdout + done.stderr
    [review] = scenario.reviews
    [placed] = review.comments
    assert (placed.start_line, placed.line, placed.side) == (10, 11, "RIGHT")
    assert placed.body.startswith("**High**")
    page = f"{scenario.github.server_url}/{UPSTREAM}/blob/{scenario.head}/half.py#L10"
    assert f"[`half.py:10`](<{page}>)" in placed.body
    assert placed.body.endswith("```suggestion\ndef half(x):\n    return x / 2\n```")
    assert (review.state, review.commit) == ("COMMENTED", scenario.head)
    assert "Fine otherwise." in review.body
    [result] = scenario.own_comments()
    assert f"#pullrequestreview-{review.id}" in result
    assert f"`{scenario.head[:12]}`: 1 comment" in result
    assert scenario.branches() == [] and len(scenario.pulls()) == 1


def test_the_command_line_reviews_and_publishes_only_where_it_is_wanted(
    scenario: ReviewScenario,
) -> None:
    """A whole run: the story of a review from the command line, as in docs/how-to/reviews.md."""
    scenario.endpoint.script(comment(11, "This rounds down."), submit())
    target = f"{UPSTREAM}#{scenario.pull.number}"
    dry = scenario.line.call("resolve", target, "--agent", "ReviewerAgent", "--no-publish")
    assert dry.exit_code == 0, dry.stderr
    assert scenario.pull.reviews == scenario.own_comments() == []
    written = (dry.output / "review.md").read_text()
    assert "This rounds down." in written
    assert "`half.py:11`" in written
    assert "review.md" in dry.stderr
    assert (dry.outcome["review"]["placed"], dry.outcome["review"]["url"]) == (1, "")
    scenario.endpoint.script(comment(11, "This rounds down."), submit())
    done = scenario.line.call("resolve", target, "--agent", "ReviewerAgent")
    assert done.exit_code == 0, done.stderr
    assert scenario.reviews[0].commit == scenario.head
    assert f"pullrequestreview-{scenario.reviews[0].id}" in done.stderr


def test_an_interrupted_review_continues_from_its_log(scenario: ReviewScenario) -> None:
    """A whole run, because the second attempt has only what the first one has stored."""
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
    assert (review.commit, len(review.comments)) == (scenario.head, 1)


def test_a_review_cut_off_by_a_limit_continues_when_asked_and_is_published_once(
    scenario: ReviewScenario,
) -> None:
    """A whole run, because the later request finds the log and the commit of the earlier one."""
    scenario.endpoint.script(comment(11, "This rounds down."), bash("true"))
    first = scenario.action(scenario.ask(), **{"INPUT_MAX-ITERATIONS": "2"})
    assert (first.exit_code, scenario.reviews) == (4, [])
    assert "limit" in scenario.own_comments()[0]
    assert any(isinstance(event, ReviewComment) for event in first.events)
    scenario.github.commit(FORK, "half", {"half.py": "EVIL = 1\n"}, "meanwhile")
    scenario.endpoint.script(submit())
    again = scenario.ask("@agent continue")
    done = scenario.action(again, **WATCHED)
    assert done.exit_code == 0, done.stdout + done.stderr
    [review] = scenario.reviews
    assert (review.commit, [c.line for c in review.comments]) == (scenario.head, [11])
    assert "reviewed this" in scenario.own_comments()[1]
    asked = len(scenario.endpoint.requests)
    assert scenario.action(again, **WATCHED).exit_code == 0
    assert len(scenario.endpoint.requests) == asked
    assert (len(scenario.reviews), len(scenario.own_comments())) == (1, 2)
