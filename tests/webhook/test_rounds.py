"""A round of review on `resolver serve`: whatever happens in between, each thread is answered
once."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue, Review, ReviewComment
from tests.parts.model_endpoint import ModelEndpoint, tool_call
from tests.parts.runs import bash
from tests.parts.waiting import PATIENCE_SECONDS, until
from tests.webhook.serving import BOT, Forge, Plans, Server

NAME = "octo/calc"
TEXT = "".join(f"# {n}\n" for n in range(1, 31))
ANSWERS = [{"id": f"T{n}", "addressed": True, "answer": f"Done {n}."} for n in (1, 2, 3)]


@pytest.fixture
def pull(github: GitHubServer) -> Issue:
    forge = Forge(github)
    forge.repository(NAME)
    github.commit(NAME, "main", {"half.py": TEXT})
    github.commit(NAME, "half", {"half.py": TEXT.replace("# 10\n", "x = 1\ny = 2\n")})
    made = github.create_pull(NAME, "half", "plan-round", author="zoe")
    github.advance(5)
    return made


@pytest.fixture
def review(github: GitHubServer, pull: Issue) -> Review:
    lines = tuple(("half.py", n, f"@agent change {n}") for n in (9, 10, 11))
    made = github.add_review(pull, "@agent please address", "mona", comments=lines)
    github.advance(5)
    return made


@pytest.fixture
def server(
    github: GitHubServer, pull: Issue, tmp_path: Path, model_endpoint: ModelEndpoint
) -> Iterator[Server]:
    done = tool_call(
        "finish", {"title": "Change it", "message": "All is changed", "threads": ANSWERS}
    )
    Plans(model_endpoint).add("round", bash("sed -i 's/x = 1/x = 3/' half.py"), done)
    made = Server(tmp_path, Forge(github), model_endpoint)
    made.start()
    yield made
    made.close()
    made.check()


def ours(pull: Issue) -> list[ReviewComment]:
    return [c for c in list(pull.review_comments) if c.author.login == BOT]


def own_comments(pull: Issue) -> list[str]:
    return [c.body for c in list(pull.comments) if c.author.login == BOT]


def is_over(pull: Issue) -> bool:
    """Return True if all threads are answered, and the comment says that the run has ended."""
    return len(ours(pull)) == 3 and any("All is changed" in body for body in own_comments(pull))


def test_a_server_that_is_killed_between_two_replies_writes_each_once(
    github: GitHubServer, pull: Issue, review: Review, server: Server
) -> None:
    """A whole run, because a process is killed between two of its requests to GitHub."""
    first, second = (github.hold_next("POST", r"/replies$", after=True) for _ in range(2))
    server.deliver(github.event_review(review), "pull_request_review")
    first.released.set()
    assert second.reached.wait(PATIENCE_SECONDS)
    server.end(signal.SIGKILL)  # GitHub has written the second, and nobody reads its answer
    second.released.set()
    assert len(ours(pull)) == 2
    tip = pull.repository.git.tip("half")
    server.start()
    until(lambda: is_over(pull))
    assert pull.repository.git.tip("half") == tip
    assert all(f"/commits/{tip}" in c.body for c in ours(pull))
    assert sorted(c.in_reply_to or 0 for c in ours(pull)) == [c.id for c in review.comments]
    assert len(own_comments(pull)) == 1
