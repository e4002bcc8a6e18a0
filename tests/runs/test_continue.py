"""Comments that steer a run of the Action, and runs that go on from the log of an earlier one."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resolver.storage.run_refs import RUNS
from tests.parts.github import GitHubServer
from tests.parts.github_server.exchange import Exchange
from tests.parts.github_server.state import Comment, Issue
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish
from tests.parts.waiting import until
from tests.runs.test_github import FIX, REPOSITORY, SUMMARY, Scenario

LIMIT = {"INPUT_MAX-ITERATIONS": "2"}


class Continuing(Scenario):
    """The same repository, with jobs of the Action on its issue and its pull requests."""

    def __init__(self, github: GitHubServer, line: CommandLine, endpoint: ModelEndpoint) -> None:
        super().__init__(github, line, endpoint)
        line.environment["RESOLVER_COMMENT_INTERVAL_SECONDS"] = "{commands: 0.2, writes: 0}"

    def ask(
        self, text: str, author: str = "mona", on: Issue | None = None, **environment: str
    ) -> Ended:
        """A comment, and the job that it starts. Its run's id is a second of its own."""
        self.github.advance(2)
        comment = self.github.add_comment(on or self.issue, text, author)
        return self.action(self.github.event_issue_comment(comment), **environment)

    def kept(self) -> list[str]:
        """Ids of the runs whose logs the repository holds."""
        listed = self.repository.git.text("for-each-ref", "--format=%(refname)", RUNS)
        assert all(name.startswith(f"{RUNS}/{self.issue.number}/") for name in listed.split())
        return [name.rpartition("/")[2] for name in listed.split()]

    def git(self, *args: str) -> str:
        return str(self.repository.git.text(*args)).strip()

    def last_comment(self, on: Issue | None = None) -> str:
        """The last comment of ours."""
        texts = [c.body for c in (on or self.issue).comments if c.author.login == "resolver-bot"]
        return texts[-1] if texts else ""

    def looks(self) -> list[Exchange]:
        """The requests with which runs looked for new comments on the issue."""
        path = f"/issues/{self.issue.number}/comments"
        found = self.github.requests
        return [
            request
            for request in found
            if request.path.endswith(path) and request.query.get("since")
        ]

    def wait_for_look(self) -> None:
        """Wait until the run has looked for new comments again, from its beginning to its end."""
        seen = len(self.looks())
        until(lambda: len(self.looks()) > seen + 1)

    def while_at_work(self, number: int, answer: Answer, act: Callable[[], object]) -> None:
        """Give `answer` to the model's request of this number, and do `act` a moment later."""

        def answered(_: dict[str, Any]) -> Answer:
            assert len(self.endpoint.requests) == number
            threading.Timer(0.5, act).start()
            return answer

        self.endpoint.answer_with(answered)

    @property
    def last_request(self) -> str:
        return json.dumps(self.endpoint.requests[-1].body)


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Continuing]:
    made = Continuing(github, command_line, model_endpoint)
    yield made
    wire = b"".join(p.read_bytes() for p in command_line.folder.rglob("*") if p.is_file())
    assert made.token.encode() not in wire, "the token was written to a file"


def limited(scenario: Continuing, **environment: str) -> Ended:
    """A run that has made the change and ends at its limit of two replies."""
    scenario.endpoint.script(FIX, bash("echo looked"))
    done = scenario.ask("@agent please fix this", **LIMIT, **environment)
    assert done.exit_code == 4, done.stdout + done.stderr
    return done


def events_of(done: Ended) -> list[dict[str, Any]]:
    lines = (done.output / "events.jsonl").read_bytes().splitlines()
    return [json.loads(line) for line in lines]


def published(scenario: Continuing, **environment: str) -> Issue:
    """A run that has opened its pull request."""
    scenario.endpoint.script(FIX, finish(SUMMARY))
    done = scenario.ask("@agent please fix this", **environment)
    assert done.exit_code == 0, done.stdout + done.stderr
    [pull] = scenario.pulls()
    return pull  # type: ignore[no-any-return]


def test_a_run_continues_after_its_limit_from_the_log_in_the_repository(
    scenario: Continuing,
) -> None:
    """Whole runs, because the second one rebuilds its work from the archived log of the first."""
    first = limited(scenario)
    assert scenario.kept() == [first.outcome["run"]]
    assert "`@agent continue +50 iterations`" in scenario.last_comment()
    scenario.endpoint.script(finish(SUMMARY))
    done = scenario.ask("@agent continue +5 iterations, and mention the ticket", **LIMIT)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert len(scenario.endpoint.requests) == 3, "a reply of the log was asked for again"
    for words in ("a - b/a + b", "looked", "mention the ticket", "2 + 2 gives 0."):
        assert words in scenario.last_request, words
    events = events_of(done)
    assert [e["run"] for e in events if e["kind"] == "run_started"] == [first.outcome["run"]]
    assert [e["by"] for e in events if e["kind"] == "resumed"] == ["mona"]
    [extended] = [e["limits"] for e in events if e["kind"] == "limits_extended"]
    assert extended["max_iterations"] == 6, "beyond three times the limit of the settings"
    [pull] = scenario.pulls()
    assert f"Fixes #{scenario.issue.number}" in pull.body
    assert scenario.git("show", f"refs/heads/{done.outcome['branch']}:calc.py").endswith("a + b")
    assert scenario.kept() == sorted([first.outcome["run"], done.outcome["run"]])


def test_without_a_log_it_starts_over_and_says_so(scenario: Continuing) -> None:
    """Whole runs, because the first must leave no log."""
    limited(scenario, RESOLVER_KEEP_LOG="false")
    assert scenario.kept() == []
    assert "continue" not in scenario.last_comment()
    scenario.endpoint.script(FIX, finish(SUMMARY))
    done = scenario.ask("@agent continue, and be quick", RESOLVER_KEEP_LOG="false")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "no log of an earlier run" in scenario.last_comment()
    assert "be quick" in scenario.last_request
    assert scenario.kept() == []


def test_a_planted_log_is_not_believed(scenario: Continuing) -> None:
    """A whole run, because the new run has to start over and say why. `test_continuation.py` has
    the ways in which a log can be wrong."""
    first = limited(scenario)
    tree = scenario.git(
        "ls-tree", "--name-only", f"{RUNS}/{scenario.issue.number}/{scenario.kept()[0]}"
    )
    assert tree.split() == ["events.jsonl", "outcome.json"]
    ref = f"{RUNS}/{scenario.issue.number}/{first.outcome['run']}"
    log = (first.output / "events.jsonl").read_bytes()
    plant(scenario, ref, log.replace(b"/octo/calc.git", b"/evil/calc.git", 1))
    scenario.endpoint.script(FIX, finish(SUMMARY))
    done = scenario.ask("@agent continue")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert (
        "can't be used" in scenario.last_comment() and "another server" in scenario.last_comment()
    )
    assert "started over" in scenario.last_comment()


def plant(scenario: Continuing, ref: str, log: bytes) -> None:
    git = scenario.repository.git
    blob = git.git("hash-object", "-w", "--stdin", input=log).decode().strip()
    tree = git.git("mktree", input=f"100644 blob {blob}\tevents.jsonl\n".encode())
    who = {f"GIT_{n}_{k}": "eve@x" for n in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}
    commit = git.git("commit-tree", "-m", "x", tree.decode().strip(), env=who)
    git.git("update-ref", ref, commit.decode().strip())


def test_a_stranger_continues_nothing(scenario: Continuing) -> None:
    """A whole run, because no stage of it may begin to work."""
    scenario.github.add_user("eve")
    done = scenario.ask("@agent continue +50 iterations", author="eve")
    assert done.exit_code == 5
    assert not scenario.work_done()
    assert "write access" in scenario.last_comment()


def test_a_stop_comment_ends_the_command_that_runs(scenario: Continuing) -> None:
    """A whole run, because a comment has to interrupt a command in its sandbox."""
    said: list[Comment] = []
    scenario.while_at_work(
        1,
        bash("echo begun; sleep 1200", timeout=3000),
        lambda: said.append(scenario.mention(text="@agent stop: wrong file")),
    )
    done = scenario.ask("@agent please fix this")
    assert done.exit_code == 1
    assert done.outcome["state"] == "stopped"
    assert "mona" in scenario.last_comment()
    assert "`@agent continue`" in scenario.last_comment()
    assert [r.content for r in said[0].reactions] == ["+1"]

    comments = len(scenario.issue.comments)
    job = scenario.action(scenario.github.event_issue_comment(said[0]))
    assert job.exit_code == 0
    assert scenario.outputs() == {"state": "taken"}
    assert len(scenario.issue.comments) == comments


def wait_for_look(scenario: Continuing) -> None:
    """Until the run at work has read all comments that there are now."""
    before = len(scenario.github.requests)

    def looks() -> int:
        return sum("/comments" in asked.path for asked in scenario.github.requests[before:])

    until(lambda: looks() > 1)  # one may have been on its way


def test_a_stranger_stops_nothing_and_the_requester_does(scenario: Continuing) -> None:
    """A whole run, because the comments have to come while it works."""
    scenario.github.add_user("eve")

    def both() -> None:
        scenario.mention("eve", "@agent stop")
        scenario.wait_for_look()
        scenario.github.grant("mona", REPOSITORY, "read")
        scenario.mention("mona", "@agent stop")

    scenario.while_at_work(1, bash("sleep 120", timeout=300), both)
    done = scenario.ask("@agent please fix this")
    assert done.outcome["state"] == "stopped"
    by_eve, by_mona = (c for c in scenario.issue.comments if c.body == "@agent stop")
    assert [r.content for r in by_eve.reactions] == []
    assert [r.content for r in by_mona.reactions] == ["+1"]


@pytest.mark.nightly
def test_stop_with_no_active_run_is_answered_once(scenario: Continuing) -> None:
    comment = scenario.mention(text="@agent stop")
    for _ in range(2):
        job = scenario.action(scenario.github.event_issue_comment(comment))
        assert job.exit_code == 0
    assert scenario.outputs() == {"state": "nothing"}
    [result] = scenario.bot_comments()
    assert "No run is in progress" in result
    assert [r.content for r in comment.reactions] == ["eyes"]
    assert not scenario.work_done()
