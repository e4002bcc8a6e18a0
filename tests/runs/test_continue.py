"""Comments that steer a run of the Action, and runs that go on from the log of an earlier one."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resolver.runs.resuming.archive import RUNS
from tests.parts.github import GitHubServer
from tests.parts.github_server.exchange import Exchange
from tests.parts.github_server.state import Comment, Issue
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish
from tests.parts.waiting import until
from tests.runs.test_github import FIX, REPOSITORY, SUMMARY, Scene

LIMIT = {"INPUT_MAX-ITERATIONS": "2"}
DOCS = bash("echo '# It adds now' > README.md")


class Continuing(Scene):
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

    def told(self, on: Issue | None = None) -> str:
        """The last comment of ours."""
        ours = [c.body for c in (on or self.issue).comments if c.author.login == "resolver-bot"]
        return ours[-1] if ours else ""

    def looks(self) -> list[Exchange]:
        """The requests with which runs looked for new comments on the issue."""
        path = f"/issues/{self.issue.number}/comments"
        found = self.github.requests
        return [each for each in found if each.path.endswith(path) and each.query.get("since")]

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
def scene(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Continuing]:
    made = Continuing(github, command_line, model_endpoint)
    yield made
    wire = b"".join(p.read_bytes() for p in command_line.folder.rglob("*") if p.is_file())
    assert made.token.encode() not in wire, "the token was written to a file"


def limited(scene: Continuing, **environment: str) -> Ended:
    """A run that has made the change and ends at its limit of two replies."""
    scene.endpoint.script(FIX, bash("echo looked"))
    done = scene.ask("@agent please fix this", **LIMIT, **environment)
    assert done.exit_code == 4, done.stdout + done.stderr
    return done


def events_of(done: Ended) -> list[dict[str, Any]]:
    lines = (done.output / "events.jsonl").read_bytes().splitlines()
    return [json.loads(line) for line in lines]


def published(scene: Continuing, **environment: str) -> Issue:
    """A run that has opened its pull request."""
    scene.endpoint.script(FIX, finish(SUMMARY))
    done = scene.ask("@agent please fix this", **environment)
    assert done.exit_code == 0, done.stdout + done.stderr
    [pull] = scene.pulls()
    return pull  # type: ignore[no-any-return]


def test_a_run_goes_on_after_its_limit_from_the_log_in_the_repository(scene: Continuing) -> None:
    """Whole runs, because the second one rebuilds its work from the archived log of the first."""
    first = limited(scene)
    assert scene.kept() == [first.outcome["run"]]
    assert "`@agent continue +50 iterations`" in scene.told()
    scene.endpoint.script(finish(SUMMARY))
    done = scene.ask("@agent continue +5 iterations, and mention the ticket", **LIMIT)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert len(scene.endpoint.requests) == 3, "a reply of the log was asked for again"
    for words in ("a - b/a + b", "looked", "mention the ticket", "2 + 2 gives 0."):
        assert words in scene.last_request, words
    events = events_of(done)
    assert [e["run"] for e in events if e["kind"] == "run_started"] == [first.outcome["run"]]
    assert [e["by"] for e in events if e["kind"] == "resumed"] == ["mona"]
    [extended] = [e["limits"] for e in events if e["kind"] == "limits_extended"]
    assert extended["max_iterations"] == 6, "beyond three times the limit of the settings"
    [pull] = scene.pulls()
    assert f"Fixes #{scene.issue.number}" in pull.body
    assert scene.git("show", f"refs/heads/{done.outcome['branch']}:calc.py").endswith("a + b")
    assert scene.kept() == sorted([first.outcome["run"], done.outcome["run"]])


def test_a_continued_pull_request_gets_one_more_commit(scene: Continuing) -> None:
    """Whole runs, because branch, text, log and comments of three runs have to agree."""
    pull = published(scene)
    branch = pull.pull.head
    before = scene.git("rev-parse", f"refs/heads/{branch}")
    scene.endpoint.script(DOCS, finish("Say so in the README\n\nIt says that it adds."))
    done = scene.ask("@agent continue, and say so in the README", on=pull)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert scene.branches() == [branch]
    assert len(scene.pulls()) == 1
    assert scene.git("rev-parse", f"refs/heads/{branch}^") == before
    assert scene.git("diff", "--name-only", before, f"refs/heads/{branch}") == "README.md"
    assert pull.title == "Say so in the README"
    assert "calc.py" in pull.body and "README.md" in pull.body
    told = scene.told(on=pull)
    assert f"Resolver added a commit to [#{pull.number}]" in told
    assert len(scene.bot_comments()) == 1, "it was told where it was not asked"
    assert "say so in the README" in scene.last_request

    scene.endpoint.script(finish("It is all there."))
    again = scene.ask("@agent continue", on=pull)
    assert again.exit_code == 3, again.stdout + again.stderr
    assert "nothing more to change" in scene.told(on=pull)
    assert again.outcome["pull_request"]["number"] == pull.number


def test_a_limit_in_between_does_not_lose_the_pull_request(scene: Continuing) -> None:
    """Whole runs, because what the first published is known only from the log of the second."""
    pull = published(scene, **LIMIT)
    scene.endpoint.script(DOCS)
    limit = scene.ask("@agent continue +1 iteration", on=pull, **LIMIT)
    assert limit.exit_code == 4, limit.stdout + limit.stderr
    scene.endpoint.script(finish(SUMMARY))
    done = scene.ask("@agent continue", **LIMIT)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert [p.number for p in scene.pulls()] == [pull.number]
    assert len(scene.branches()) == 1
    assert scene.git("rev-list", "--count", f"main..{scene.branches()[0]}") == "2"


def test_what_somebody_else_pushed_on_the_same_lines_is_left_alone(scene: Continuing) -> None:
    """Whole runs, because the change of an earlier run has to conflict with a push."""
    pull = published(scene)
    [branch] = scene.branches()
    scene.github.commit(REPOSITORY, branch, {"README.md": "# another word\n"}, "mine")
    theirs = scene.git("rev-parse", f"refs/heads/{branch}")
    scene.endpoint.script(DOCS, finish("Say so in the README"))
    done = scene.ask("@agent continue, and say so in the README", on=pull)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert scene.git("rev-parse", f"refs/heads/{branch}") == theirs
    assert len(scene.pulls()) == 2
    assert "got new commits during the run" in scene.told(on=pull)
    new = done.outcome["branch"]
    assert scene.git("diff", "--name-only", "main", f"refs/heads/{new}").split() == [
        "README.md",
        "calc.py",
    ]


def test_without_a_log_a_pull_request_of_ours_is_worked_on_as_any(scene: Continuing) -> None:
    """Whole runs, because the first must leave no log."""
    off = {"RESOLVER_KEEP_LOG": "false"}
    pull = published(scene, **off)
    before = scene.git("rev-parse", f"refs/heads/{pull.pull.head}")
    scene.endpoint.script(DOCS, finish("Say so in the README"))
    done = scene.ask("@agent continue, and say so in the README", on=pull, **off)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert scene.git("rev-parse", f"refs/heads/{pull.pull.head}^") == before
    assert len(scene.pulls()) == 1
    assert "no log of an earlier run" in scene.told(on=pull)


def test_a_fix_on_a_pull_request_of_ours_is_a_commit_there_and_is_gone_on_from(
    scene: Continuing,
) -> None:
    pull = published(scene)
    branch = pull.pull.head
    title = pull.title
    scene.endpoint.script(DOCS, finish("Say so in the README"))
    assert scene.ask("@agent say so in the README", on=pull).exit_code == 0
    first = scene.git("rev-parse", f"refs/heads/{branch}")
    scene.endpoint.script(bash("echo more >> README.md"), finish("Say more"))
    done = scene.ask("@agent continue, and say more", on=pull)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert scene.git("rev-parse", f"refs/heads/{branch}^") == first
    assert "say so in the README" in scene.last_request, "it went on from another log"
    assert len(scene.pulls()) == 1 and pull.title == title


def test_a_closed_pull_request_is_followed_by_a_new_one(scene: Continuing) -> None:
    """Whole runs, because the second proposes the change of the first again."""
    pull = published(scene)
    pull.state = "closed"
    scene.endpoint.script(DOCS, finish("Say so in the README"))
    done = scene.ask("@agent continue, and say so in the README")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert len(scene.pulls()) == 2
    assert "is merged or closed" in scene.told()


def test_without_a_log_it_starts_over_and_says_so(scene: Continuing) -> None:
    """Whole runs, because the first must leave no log."""
    limited(scene, RESOLVER_KEEP_LOG="false")
    assert scene.kept() == []
    assert "continue" not in scene.told()
    scene.endpoint.script(FIX, finish(SUMMARY))
    done = scene.ask("@agent continue, and be quick", RESOLVER_KEEP_LOG="false")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "no log of an earlier run" in scene.told()
    assert "be quick" in scene.last_request
    assert scene.kept() == []


def test_a_log_that_cannot_be_pushed_is_a_warning(scene: Continuing) -> None:
    """A whole run, because its result must stay what it is."""
    scene.endpoint.script(finish("add is fine."))
    scene.github.fail_next("*", r"git-receive-pack", 403, times=9)
    done = scene.ask("@agent please fix this")
    assert done.exit_code == 3, done.stdout + done.stderr
    assert "the log could not be stored" in done.stderr
    assert "add is fine" in scene.told()


def test_a_planted_log_is_not_believed(scene: Continuing) -> None:
    """A whole run, because the new run has to start over and say why. `test_continuation.py` has
    the ways in which a log can be wrong."""
    first = limited(scene)
    tree = scene.git("ls-tree", "--name-only", f"{RUNS}/{scene.issue.number}/{scene.kept()[0]}")
    assert tree.split() == ["events.jsonl", "outcome.json"]
    ref = f"{RUNS}/{scene.issue.number}/{first.outcome['run']}"
    log = (first.output / "events.jsonl").read_bytes()
    plant(scene, ref, log.replace(b"/octo/calc.git", b"/evil/calc.git", 1))
    scene.endpoint.script(FIX, finish(SUMMARY))
    done = scene.ask("@agent continue")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "can't be used" in scene.told() and "another server" in scene.told()
    assert "started over" in scene.told()


def plant(scene: Continuing, ref: str, log: bytes) -> None:
    git = scene.repository.git
    blob = git.git("hash-object", "-w", "--stdin", input=log).decode().strip()
    tree = git.git("mktree", input=f"100644 blob {blob}\tevents.jsonl\n".encode())
    who = {f"GIT_{n}_{k}": "eve@x" for n in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}
    commit = git.git("commit-tree", "-m", "x", tree.decode().strip(), env=who)
    git.git("update-ref", ref, commit.decode().strip())


def test_a_stranger_continues_nothing(scene: Continuing) -> None:
    scene.github.add_user("eve")
    done = scene.ask("@agent continue +50 iterations", author="eve")
    assert done.exit_code == 5
    assert not scene.work_done()
    assert "write access" in scene.told()


def test_a_stop_comment_ends_the_command_that_runs(scene: Continuing) -> None:
    """A whole run, because a comment has to interrupt a command in its sandbox."""
    said: list[Comment] = []
    scene.while_at_work(
        1,
        bash("echo begun; sleep 1200", timeout=3000),
        lambda: said.append(scene.mention(text="@agent stop: wrong file")),
    )
    done = scene.ask("@agent please fix this")
    assert done.exit_code == 1
    assert done.outcome["state"] == "stopped"
    assert "mona" in scene.told()
    assert "`@agent continue`" in scene.told()
    assert [r.content for r in said[0].reactions] == ["+1"]

    comments = len(scene.issue.comments)
    job = scene.action(scene.github.event_issue_comment(said[0]))
    assert job.exit_code == 0
    assert scene.outputs() == {"state": "taken"}
    assert len(scene.issue.comments) == comments


def wait_for_look(scene: Continuing) -> None:
    """Until the run at work has read all comments that there are now."""
    before = len(scene.github.requests)

    def looks() -> int:
        return sum("/comments" in asked.path for asked in scene.github.requests[before:])

    until(lambda: looks() > 1)  # one may have been on its way


def test_a_stranger_stops_nothing_and_the_requester_does(scene: Continuing) -> None:
    """A whole run, because the comments have to come while it works."""
    scene.github.add_user("eve")

    def both() -> None:
        scene.mention("eve", "@agent stop")
        scene.wait_for_look()
        scene.github.grant("mona", REPOSITORY, "read")
        scene.mention("mona", "@agent stop")

    scene.while_at_work(1, bash("sleep 120", timeout=300), both)
    done = scene.ask("@agent please fix this")
    assert done.outcome["state"] == "stopped"
    by_eve, by_mona = (c for c in scene.issue.comments if c.body == "@agent stop")
    assert [r.content for r in by_eve.reactions] == []
    assert [r.content for r in by_mona.reactions] == ["+1"]


def test_a_run_at_work_pauses_and_is_granted_more(scene: Continuing) -> None:
    """A whole run, because the comments have to come while it works."""

    def steer() -> None:
        scene.mention(text="@agent pause")
        scene.wait_for_look()
        scene.mention(text="@agent continue +5 iterations, and use pytest -x")

    def answered(body: dict[str, Any]) -> Answer:
        if len(scene.endpoint.requests) == 1:
            threading.Timer(0.1, steer).start()
            return bash("sleep 0.8; sed -i 's/a - b/a + b/' calc.py")
        if "pytest -x" in json.dumps(body):
            return finish(SUMMARY)
        return bash(f"sleep 0.5; echo {len(scene.endpoint.requests)}")

    scene.endpoint.answer_with(answered)
    done = scene.ask("@agent please fix this", **{"INPUT_MAX-ITERATIONS": "9"})
    assert done.exit_code == 0, done.stdout + done.stderr
    events = events_of(done)
    states = [e["state"] for e in events if e["kind"] == "agent_state_changed"]
    assert "paused" in states
    [extended] = [e["limits"] for e in events if e["kind"] == "limits_extended"]
    assert extended["max_iterations"] == 14


def test_stop_with_nothing_at_work_is_answered_once(scene: Continuing) -> None:
    comment = scene.mention(text="@agent stop")
    for _ in range(2):
        job = scene.action(scene.github.event_issue_comment(comment))
        assert job.exit_code == 0
    assert scene.outputs() == {"state": "nothing"}
    [told] = scene.bot_comments()
    assert "No run is in progress" in told
    assert [r.content for r in comment.reactions] == ["eyes"]
    assert not scene.work_done()


def test_looking_for_comments_costs_little(scene: Continuing) -> None:
    """A whole run, because its requests are counted."""
    scene.endpoint.script(bash("sleep 2"), finish("add is fine."))
    scene.ask("@agent please fix this")
    known = [r for r in scene.looks() if r.status == 304]
    assert len(known) >= 4
