"""`resolver serve` reviews pull requests: asked for in comments, on the code and in reviews."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import bash
from tests.parts.waiting import until
from tests.runs.test_reviews import comment, submit
from tests.webhook.serving import BOT, Forge, Plans, Server

NAME = "octo/calc"
TEXT = "".join(f"# {n}\n" for n in range(1, 31))


@pytest.fixture
def pull(github: GitHubServer) -> Issue:
    forge = Forge(github)
    forge.repository(NAME)
    github.commit(NAME, "main", {"half.py": TEXT})
    github.create_repository("zoe/calc", parent=NAME)
    github.commit("zoe/calc", "half", {"half.py": TEXT.replace("# 10\n", "x = 1\ny = 2\n")})
    made = github.create_pull(NAME, "zoe:half", "plan-review", author="zoe")
    github.advance(5)
    return made


@pytest.fixture
def server(
    github: GitHubServer, pull: Issue, tmp_path: Path, model_endpoint: ModelEndpoint
) -> Iterator[Server]:
    plans = Plans(model_endpoint)
    plans.add("review", comment(10, "Name it."), submit())
    forge = Forge(github)
    made = Server(tmp_path, forge, model_endpoint)
    made.start()
    yield made
    made.close()
    made.check()


def reviews(pull: Issue) -> int:
    return len([r for r in list(pull.reviews) if r.author.login == BOT])


def test_each_way_of_asking_gives_one_review(
    github: GitHubServer, pull: Issue, server: Server
) -> None:
    """Whole runs, because each of them has to find what the one before it has published."""
    event = github.event_issue_comment(github.add_comment(pull, "@agent review", "mona"))
    assert server.deliver(event)[0] == 202
    assert server.deliver(event)[0] == 202, "another delivery of the same event"
    until(lambda: reviews(pull) == 1 and len(Forge.final_comments(pull)) == 1)
    for thread in pull.review_comments:
        thread.resolved = True
    github.advance(5)
    on_code = github.add_review_comment(pull, "half.py", 11, "@agent review again", "mona")
    server.deliver(github.event_review_comment(on_code), "pull_request_review_comment")
    until(lambda: reviews(pull) == 2 and len(Forge.final_comments(pull)) == 2)
    submitted = github.add_review(pull, "@agent review", "mona")
    server.deliver(github.event_review(submitted), "pull_request_review")
    until(lambda: reviews(pull) == 3 and len(Forge.final_comments(pull)) == 3)
    assert [r.content for r in on_code.reactions] == ["eyes"]
    assert all("Name it." in c.body for c in pull.review_comments if c.author.login == BOT)


def test_a_review_cut_off_by_a_limit_continues_and_is_published(
    github: GitHubServer, pull: Issue, tmp_path: Path, model_endpoint: ModelEndpoint
) -> None:
    """Whole runs, because the second has to review with the log and the agent of the first."""
    Plans(model_endpoint).add("review", comment(10, "Name it."), bash("true"), submit())
    server = Server(tmp_path, Forge(github), model_endpoint, RESOLVER_MAX_ITERATIONS="2")
    server.start()
    try:
        github.advance(5)
        for words, expected in (("@agent review", "limit"), ("@agent continue", "reviewed this")):
            event = github.event_issue_comment(github.add_comment(pull, words, "mona"))
            server.deliver(event)
            until(
                lambda expected=expected: (
                    expected in "".join(c.body for c in Forge.final_comments(pull))
                )
            )
            github.advance(5)
    finally:
        server.close()
    server.check()
    [review] = [r for r in pull.reviews if r.author.login == BOT]
    assert [c.line for c in review.comments] == [10]
