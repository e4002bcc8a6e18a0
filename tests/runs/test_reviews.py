"""A review of a pull request, from the request to the review and the comment, over real sockets."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from resolver.events.actions import ReviewComment
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue, Review
from tests.parts.model_endpoint import Answer, ModelEndpoint, reply, tool_call
from tests.parts.runs import CommandLine, bash, finish
from tests.runs.test_github import Scene

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


class ReviewScene(Scene):
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

    def told(self) -> list[str]:
        return [c.body for c in self.pull.comments if c.author.login == "resolver-bot"]

    @property
    def prompt(self) -> str:
        body = self.endpoint.requests[0].body
        return "\n".join(str(m["content"]) for m in body["messages"])


@pytest.fixture
def scene(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[ReviewScene]:
    yield ReviewScene(github, command_line, model_endpoint)


def test_a_review_is_one_review_with_comments_on_its_lines_and_one_comment(
    scene: ReviewScene,
) -> None:
    scene.endpoint.script(
        bash("git diff --stat HEAD~1 && cat half.py | head -12"),
        comment(
            11,
            "`half(3)` is 1: `//` rounds down. See half.py:10.",
            severity="high",
            suggestion="    return x / 2",
        ),
        submit(verdict="request_changes", verification="`half(3)` gave 1."),
    )
    done = scene.action(scene.ask())
    assert done.exit_code == 0, done.stdout + done.stderr
    [review] = scene.reviews
    assert (review.state, review.commit) == ("COMMENTED", scene.head)
    assert "It halves, and rounds down." in review.body
    assert "`half(3)` gave 1." in review.body
    [placed] = review.comments
    assert (placed.path, placed.line, placed.side, placed.start_line) == (
        "half.py",
        11,
        "RIGHT",
        None,
    )
    page = f"{scene.github.server_url}/{UPSTREAM}/blob/{scene.head}/half.py#L10"
    assert f"[`half.py:10`](<{page}>)" in placed.body
    assert placed.body.startswith("**High**")
    assert placed.body.endswith("```suggestion\n    return x / 2\n```")
    [told] = scene.told()
    assert f"#pullrequestreview-{review.id}" in told
    assert f"`{scene.head[:12]}`: 1 comment" in told
    assert "Cost" in told and "<details>" in told
    assert scene.branches() == []
    assert len(scene.pulls()) == 1
    assert done.outcome["review"]["url"].endswith(f"-{review.id}")
    assert done.outcome["base"] == scene.head
    assert "return x / 2" in (done.output / "review.md").read_text()


def test_the_agent_is_shown_the_pull_request_at_its_head(scene: ReviewScene) -> None:
    scene.github.add_review_comment(scene.pull, "half.py", 10, "What of odd ones?", "eve")
    scene.github.add_review(scene.pull, "Nice start.", "mona", "APPROVED")
    scene.endpoint.script(bash("head -n 11 half.py | tail -n 1; ls later.py"), submit())
    done = scene.action(scene.ask("@agent review, mostly for rounding"))
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "You review a change" in scene.prompt
    for words in (
        "    10 +def half(x):",
        "    10 -# line 10",
        "     9  # line 9",
        "=== half.py: modified, +2 -1",
        "zoe/calc, a fork",
        "What of odd ones?",
        "open conversation on half.py:10",
        "review by mona (COLLABORATOR): APPROVED",
        "which it closes",
        "2 + 2 gives 0.",
        "Add half()",
        "mostly for rounding",
        "not known to have write access",
    ):
        assert words in scene.prompt, words
    seen = json.dumps(scene.endpoint.requests[1].body)
    assert "return x // 2" in seen
    assert "No such file" in seen


def test_a_run_that_died_before_its_comment_tells_of_the_review_that_is_there(
    scene: ReviewScene,
) -> None:
    scene.endpoint.script(comment(10, "Name it."), submit())
    event = scene.ask()
    scene.github.fail_next("POST", rf"/issues/{scene.pull.number}/comments$", 422, times=2)
    assert scene.action(event).exit_code == 1
    assert (len(scene.reviews), scene.told()) == (1, [])
    assert scene.action(event).exit_code == 0
    [told] = scene.told()
    assert f"#pullrequestreview-{scene.reviews[0].id}" in told
    assert f"`{scene.head[:12]}`: 1 comment" in told
    assert (len(scene.endpoint.requests), len(scene.reviews)) == (2, 1)


def test_a_push_after_the_request_is_not_reviewed_and_it_is_said(scene: ReviewScene) -> None:
    event = scene.ask()
    scene.github.advance(60)
    later = scene.github.commit(FORK, "half", {"half.py": AFTER + "EVIL = 1\n"}, "more")
    scene.endpoint.script(bash("tail -n 1 half.py"), comment(10, "Name it."), submit())
    done = scene.action(event)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert done.outcome["base"] == scene.head != later
    asked = json.dumps([r.body for r in scene.endpoint.requests])
    assert "EVIL" not in asked
    assert "pushed to after the request" in scene.prompt
    [review] = scene.reviews
    assert review.commit == scene.head
    assert len(review.comments) == 1
    [told] = scene.told()
    assert f"It was pushed to after the request; what came after {scene.head[:12]}" in told


def test_a_head_that_was_forced_away_after_the_request_is_reviewed_all_the_same(
    scene: ReviewScene,
) -> None:
    event = scene.ask()
    scene.github.advance(60)
    start = scene.github.repository(FORK).git.tip("main")
    assert start is not None
    scene.github.force_push(FORK, "half", start)
    scene.github.commit(FORK, "half", {"half.py": "EVIL = 1\n"}, "another history")
    scene.endpoint.script(comment(10, "Name it."), submit())
    done = scene.action(event)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert done.outcome["base"] == scene.head
    assert "EVIL" not in json.dumps([r.body for r in scene.endpoint.requests])
    [review] = scene.reviews
    assert review.comments == []
    assert "half.py:10" in review.body
    assert "Name it." in review.body
    assert "did not accept a comment" in review.body


def test_where_a_forks_pushes_cannot_be_seen_a_review_is_to_name_the_commit(
    scene: ReviewScene,
) -> None:
    event = scene.ask()
    scene.github.add_comment(scene.pull, "bump", "eve")
    scene.github.fail_next("GET", r"/activity$", 404)
    assert scene.action(event).exit_code == 5
    assert not scene.endpoint.requests
    assert "ask in a review of it" in scene.told()[0]


def test_a_comment_on_the_code_pins_what_its_event_names(scene: ReviewScene) -> None:
    said = scene.github.add_review_comment(
        scene.pull, "half.py", 10, "@agent review, and look at this name", "mona"
    )
    event = scene.github.event_review_comment(said)
    scene.github.advance(60)
    scene.github.commit(FORK, "half", {"half.py": "EVIL = 1\n"}, "more")
    scene.endpoint.script(submit(verdict="approve"))
    allowed = {"RESOLVER_REVIEW_VERDICTS": "approve"}
    done = scene.action(event, "pull_request_review_comment", **allowed)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert done.outcome["base"] == scene.head
    assert "look at this name" in scene.prompt
    assert [r.content for r in said.reactions] == ["eyes"]
    assert len(scene.told()) == 1 and [r.state for r in scene.reviews] == ["APPROVED"]


def test_comments_beside_the_diff_and_refused_ones_stand_in_the_text(scene: ReviewScene) -> None:
    assert scene.pull.pull is not None
    scene.pull.pull.refused_lines.add(("half.py", 11))
    scene.endpoint.script(
        comment(10, "taken"),
        comment(11, "refused by GitHub", suggestion="    return x / 2"),
        comment(29, "far away"),
        tool_call("review_comment", {"path": "other.py", "line": 1, "body": "another file"}),
        submit(),
    )
    done = scene.action(scene.ask())
    assert done.exit_code == 0, done.stdout + done.stderr
    [review] = scene.reviews
    assert [c.body for c in review.comments] == ["taken"]
    for words in ("refused by GitHub", "far away", "another file", "return x / 2"):
        assert words in review.body, words
    page = f"{scene.github.server_url}/{UPSTREAM}/blob/{scene.head}"
    assert f"[`other.py:1`](<{page}/other.py#L1>)" in review.body
    assert "1 of these was meant for a line on which GitHub did not accept a comment" in review.body
    assert [r.state for r in scene.pull.reviews] == ["COMMENTED"], "a draft was left"
    noted = [m.get("content") for m in scene.endpoint.requests[-1].body["messages"]]
    assert any("its parts on that side: 7-14" in str(each) for each in noted)
    assert any("other.py is not a file of the diff" in str(each) for each in noted)


def test_what_an_open_conversation_says_is_not_said_again(scene: ReviewScene) -> None:
    scene.github.add_review_comment(scene.pull, "half.py", 10, "half is a poor name here", "eve")
    scene.endpoint.script(
        comment(10, "The name half is poor: a better name says what it is half of."),
        comment(11, "This rounds down."),
        submit(),
    )
    assert scene.action(scene.ask()).exit_code == 0
    [review] = scene.reviews
    assert [c.body for c in review.comments] == ["This rounds down."]
    assert "open review threads already say the same" in review.body


def test_a_question_about_a_pull_request_is_answered_at_its_head(scene: ReviewScene) -> None:
    scene.endpoint.script(bash("sed -n 11p half.py"), finish("Because `half.py:11` does."))
    done = scene.action(scene.ask("@agent why does half() round down?"))
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "You answer a question" in scene.prompt
    assert "    11 +    return x // 2" in scene.prompt
    [told] = scene.told()
    assert f"/blob/{scene.head}/half.py#L11" in told
    assert scene.pull.reviews == []


def test_who_has_opened_a_pull_request_gets_no_work_on_it_for_that(scene: ReviewScene) -> None:
    head = scene.github.repository(FORK).git.tip("half")
    done = scene.action(scene.ask("@agent please fix the rounding", author="zoe"))
    assert done.exit_code == 5
    assert not scene.endpoint.requests
    assert scene.github.repository(FORK).git.tip("half") == head
    assert "no write access" in scene.told()[0]


def test_a_stranger_gets_no_review(scene: ReviewScene) -> None:
    done = scene.action(scene.ask(author="zoe"))
    assert done.exit_code == 5
    assert not scene.endpoint.requests
    assert scene.pull.reviews == []


def test_the_tags_do_the_same(scene: ReviewScene) -> None:
    text = (
        'Found one.\n\n<review_comment path="half.py" line="11" start_line="10">\n<body>\nIt '
        "rounds.\n</body>\n<suggestion>\ndef half(x):\n    return x / 2\n</suggestion>\n"
        '</review_comment>\n\n<submit_review verdict="comment">\nFine otherwise.\n</submit_review>'
    )
    scene.endpoint.script(reply(text))
    done = scene.action(scene.ask(), RESOLVER_DIALECT="tags")
    assert done.exit_code == 0, done.stdout + done.stderr
    [review] = scene.reviews
    [placed] = review.comments
    assert (placed.start_line, placed.line) == (10, 11)
    assert placed.body.endswith("```suggestion\ndef half(x):\n    return x / 2\n```")
    assert "Fine otherwise." in review.body


def test_the_command_line_reviews_and_publishes_only_where_it_is_wanted(
    scene: ReviewScene,
) -> None:
    scene.endpoint.script(comment(11, "This rounds down."), submit())
    target = f"{UPSTREAM}#{scene.pull.number}"
    dry = scene.line.call("resolve", target, "--agent", "ReviewerAgent", "--no-publish")
    assert dry.exit_code == 0, dry.stderr
    assert scene.pull.reviews == scene.told() == []
    written = (dry.output / "review.md").read_text()
    assert "This rounds down." in written
    assert "`half.py:11`" in written
    assert "review.md" in dry.stderr
    assert (dry.outcome["review"]["placed"], dry.outcome["review"]["url"]) == (1, "")
    scene.endpoint.script(comment(11, "This rounds down."), submit())
    done = scene.line.call("resolve", target, "--agent", "ReviewerAgent")
    assert done.exit_code == 0, done.stderr
    assert scene.reviews[0].commit == scene.head
    assert f"pullrequestreview-{scene.reviews[0].id}" in done.stderr


def test_a_review_that_was_cut_off_goes_on_from_its_log(scene: ReviewScene) -> None:
    scene.endpoint.script(comment(11, "This rounds down."), submit())
    target = f"{UPSTREAM}#{scene.pull.number}"
    scene.github.fail_next("POST", r"/reviews$", 403, body={"message": "Forbidden"})
    cut = scene.line.call("resolve", target, "--agent", "ReviewerAgent")
    assert cut.exit_code == 1
    assert scene.reviews == []
    scene.github.commit(FORK, "half", {"half.py": "EVIL = 1\n"}, "meanwhile")
    asked = len(scene.endpoint.requests)
    done = scene.line.call("resolve", "--resume", str(cut.output))
    assert done.exit_code == 0, done.stderr
    assert len(scene.endpoint.requests) == asked
    [review] = scene.reviews
    assert (review.commit, len(review.comments)) == (scene.head, 1)


def test_a_review_that_a_limit_cut_off_goes_on_when_asked_and_is_published_once(
    scene: ReviewScene,
) -> None:
    scene.endpoint.script(comment(11, "This rounds down."), bash("true"))
    first = scene.action(scene.ask(), **{"INPUT_MAX-ITERATIONS": "2"})
    assert (first.exit_code, scene.reviews) == (4, [])
    assert "limit" in scene.told()[0]
    assert any(isinstance(event, ReviewComment) for event in first.events)
    scene.github.commit(FORK, "half", {"half.py": "EVIL = 1\n"}, "meanwhile")
    scene.endpoint.script(submit())
    again = scene.ask("@agent continue")
    done = scene.action(again)
    assert done.exit_code == 0, done.stdout + done.stderr
    [review] = scene.reviews
    assert (review.commit, [c.line for c in review.comments]) == (scene.head, [11])
    assert "reviewed this" in scene.told()[1]
    asked = len(scene.endpoint.requests)
    assert scene.action(again).exit_code == 0
    assert len(scene.endpoint.requests) == asked
    assert (len(scene.reviews), len(scene.told())) == (1, 2)
