"""Comments that steer a run of the Action, and runs that go on from the log of an earlier one."""

import json
import threading
from typing import Any

from resolver.storage.run_refs import RUNS
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish
from tests.runs.scenario import FIX, REPOSITORY, SUMMARY, Scenario

HALF = bash("printf '\\ndef half(a):\\n    return a / 2\\n' >> calc.py")
HALVES = finish("Add half to calc\n\nIt divides by two.")
LIMIT = {"INPUT_MAX-ITERATIONS": "2"}


class Continuing(Scenario):
    """The same repository, with jobs of the Action on its issue and its pull requests."""

    def __init__(self, github: GitHubServer, line: CommandLine, endpoint: ModelEndpoint) -> None:
        super().__init__(github, line, endpoint)
        line.environment["RESOLVER_PACE"] = '{"command_interval": 0.2, "write_interval": 0}'

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

    @property
    def last_request(self) -> str:
        return json.dumps(self.endpoint.requests[-1].body)


SCENARIO = Continuing


def events_of(done: Ended) -> list[dict[str, Any]]:
    lines = (done.output / "events.jsonl").read_bytes().splitlines()
    return [json.loads(line) for line in lines]


def test_a_run_continues_after_its_limit_and_a_fresh_request_adds_to_its_pull_request(
    scenario: Continuing,
) -> None:
    """Whole runs, because the second one rebuilds its work from the archived log of the first, and
    the third has to find and add to what the second opened."""
    scenario.endpoint.script(FIX, bash("echo looked"))
    first = scenario.ask("@agent please fix this", **LIMIT)
    assert first.exit_code == 4, first.stdout + first.stderr
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

    assert pull.pull is not None
    branch = pull.pull.head
    # The settings are those of the default branch: here, they would forbid the change.
    files = {"notes.txt": "x\n", ".github/resolver.yml": "protected_paths: [calc.py]\n"}
    pushed_commit = scenario.github.commit(REPOSITORY, branch, files, "Note", "mona")
    title, text = pull.title, pull.body
    scenario.endpoint.script(HALF, HALVES)
    done = scenario.ask("@agent also add half()")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert scenario.pulls() == [pull] and scenario.branches() == [branch]
    assert scenario.git("rev-parse", f"refs/heads/{branch}^") == pushed_commit
    tip = scenario.git("rev-parse", f"refs/heads/{branch}")
    assert scenario.git("diff", "--name-only", pushed_commit, tip) == "calc.py"
    assert "a + b" in scenario.git("show", f"refs/heads/{branch}:calc.py")
    assert done.outcome["branch"] == branch
    assert f"Resolver added the commit `{tip[:12]}` to [#{pull.number}]" in scenario.last_comment()
    assert len(scenario.issue.comments) == 6, "one comment for each request"
    assert f"pull request #{pull.number}" in scenario.last_request
    assert (pull.title, pull.body) == (title, text)
    [addition] = pull.comments
    assert f"as requested in #{scenario.issue.number}." in addition.body
    assert "It divides by two." in addition.body


RISKY = "sed -i 's/a - b/a + b/' calc.py"


def test_a_decision_reaches_the_run_that_waits(scenario: Continuing) -> None:
    """A whole run, because the comment has to reach it in another thread while it waits."""
    scenario.endpoint.script(bash(RISKY, security_risk="HIGH"), finish(SUMMARY))

    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            if "Resolver is **waiting for approval**" in scenario.last_comment():
                scenario.github.advance(2)
                scenario.github.add_comment(scenario.issue, "@agent approve", "mona")
                return

    watching = threading.Thread(target=watch)
    watching.start()
    done = scenario.ask("@agent please fix this", RESOLVER_CONFIRMATION="risky")
    ended.set()
    watching.join()
    assert done.exit_code == 0, done.stdout + done.stderr
    [answer] = [e for e in events_of(done) if e["kind"] == "confirmation_answered"]
    assert answer["approved"] is True
    assert len(scenario.bot_comments()) == 1
    [comment] = [c for c in scenario.issue.comments if c.body.startswith("@agent approve")]
    assert [r.content for r in comment.reactions] == ["+1"]
