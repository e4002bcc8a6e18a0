"""Work on the branches of pull requests: of people, of forks, of our own, over real sockets.

Whole runs, because what a run does with a branch depends on what others push while it works, and on
what GitHub allows the token.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish
from tests.runs.test_github import Scenario

UPSTREAM = "octo/calc"
FORK = "zoe/calc"
LINES = "".join(f"# line {n}\n" for n in range(1, 31))
HALF = bash("sed -i 's/x \\/\\/ 2/x \\/ 2/' half.py")
DONE = "Divide instead of rounding down\n\n`half(3)` is 1.5 now."


class PullScenario(Scenario):
    """Pull requests of `mona` (a maintainer, same repository) and `zoe` (from a fork)."""

    def __init__(self, github: GitHubServer, line: CommandLine, endpoint: ModelEndpoint) -> None:
        super().__init__(github, line, endpoint)
        self.token = github.token_for("resolver-bot")
        line.environment["GITHUB_TOKEN"] = self.token
        line.environment["RESOLVER_COMMENT_INTERVAL_SECONDS"] = "{commands: 0.2, writes: 0}"
        github.commit(UPSTREAM, "main", {"lines.py": LINES})
        self.head = github.commit(
            UPSTREAM, "half", {"half.py": "def half(x):\n    return x // 2\n"}, "Add half()", "mona"
        )
        self.pull: Issue = github.create_pull(UPSTREAM, "half", "Add half()", "", author="mona")

    def from_fork(self, editable: bool = True) -> Issue:
        self.github.create_repository(FORK, parent=UPSTREAM)
        self.github.commit(
            FORK, "half", {"half.py": "def half(x):\n    return x // 2\n"}, "Add half()", "zoe"
        )
        made = self.github.create_pull(UPSTREAM, "zoe:half", "Add half()", "", author="zoe")
        assert made.pull is not None
        made.pull.maintainer_can_modify = editable
        return made

    def ask(
        self,
        text: str = "@agent please make it divide",
        on: Issue | None = None,
        author: str = "mona",
        **environment: str,
    ) -> Ended:
        return self.action(self.event(text, on, author), **environment)

    def event(
        self, text: str = "@agent please make it divide", on: Issue | None = None, by: str = "mona"
    ) -> dict[str, Any]:
        self.github.advance(5)
        return self.github.event_issue_comment(
            self.github.add_comment(on or self.pull, text, author=by)
        )

    def own_comments(self, on: Issue | None = None) -> list[str]:
        found = (on or self.pull).comments
        return [c.body for c in found if c.author.login == "resolver-bot"]

    def tip(self, branch: str = "half", repository: str = UPSTREAM) -> str:
        tip = self.github.repository(repository).git.tip(branch)
        assert tip is not None
        return tip

    def git(self, *args: str, repository: str = UPSTREAM) -> str:
        return str(self.github.repository(repository).git.text(*args))

    @property
    def prompt(self) -> str:
        body = self.endpoint.requests[0].body
        return "\n".join(str(m["content"]) for m in body["messages"])


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[PullScenario]:
    made = PullScenario(github, command_line, model_endpoint)
    yield made
    wire = b"".join(p.read_bytes() for p in command_line.folder.rglob("*") if p.is_file())
    assert made.token.encode() not in wire, "the token was written to a file"


def right(done: Ended) -> None:
    assert done.exit_code == 0, done.stdout + done.stderr


def test_a_fix_becomes_one_commit_on_the_branch_of_the_pull_request(scenario: PullScenario) -> None:
    """A whole run: the story of a pull request, which changes a workflow itself. The same request
    again pushes nothing more."""
    scenario.head = scenario.github.commit(
        UPSTREAM, "half", {".github/workflows/ci.yml": "on: push\n"}, "ci", "mona"
    )
    scenario.endpoint.script(HALF, finish(DONE))
    event = scenario.event()
    done = scenario.action(event)
    right(done)
    tip = scenario.tip()
    assert scenario.git("rev-parse", f"{tip}^") == scenario.head
    assert scenario.git("diff", "--name-only", f"{tip}^", tip) == "half.py"
    assert scenario.git("show", f"{tip}:half.py").endswith("x / 2")
    assert "Co-authored-by: mona" in scenario.git("log", "-1", "--format=%B", tip)
    assert len(scenario.pulls()) == 1 and scenario.branches() == []
    [comment] = scenario.own_comments()
    assert tip[:12] in comment and f"/commit/{tip}" in comment and "`half`" in comment
    assert "Fixes #" not in scenario.git("log", "-1", "--format=%B", tip)
    assert done.outcome["branch"] == "half" and done.outcome["commit"] == tip
    assert "return x // 2" in scenario.prompt and "make it divide" in scenario.prompt
    assert scenario.pull.title == "Add half()"
    requests = len(scenario.endpoint.requests)
    again = scenario.action(event)
    right(again)
    assert again.outcome["repeated"] is True
    assert (scenario.tip(), len(scenario.own_comments())) == (tip, 1)
    assert len(scenario.endpoint.requests) == requests


@pytest.mark.parametrize(
    "why",
    [
        "not editable",
        pytest.param("token", marks=pytest.mark.nightly),
        pytest.param("setting", marks=pytest.mark.nightly),
    ],
)
def test_else_the_patch_is_in_the_comment(scenario: PullScenario, why: str, tmp_path: Path) -> None:
    """Whole runs, because the patch has to apply where the agent worked, and be published later."""
    pull = scenario.from_fork(editable=why != "not editable")
    before = scenario.tip(repository=FORK)
    scenario.endpoint.script(HALF, finish(DONE))
    environment = {"RESOLVER_FORK_CHANGES": "patch"} if why == "setting" else {}
    if why == "token":
        scenario.token = scenario.github.token_for("resolver-bot", UPSTREAM)
        environment["GITHUB_TOKEN"] = scenario.token
    event = scenario.event(on=pull)
    done = scenario.action(event, **environment)
    right(done)
    assert scenario.tip(repository=FORK) == before
    [comment] = scenario.own_comments(pull)
    assert "+    return x / 2" in comment and "Subject: [PATCH]" in comment and "git am" in comment
    assert "x / 2" in (done.output / "patch.diff").read_text()
    assert len(scenario.pulls()) == 2 and scenario.branches() == []
    if why != "not editable":
        return
    again = scenario.action(event, **environment)
    right(again)
    assert len(scenario.own_comments(pull)) == 1 and len(scenario.endpoint.requests) == 2
    assert "x / 2" in applied(scenario, comment, tmp_path / "work")
    assert "comment `@agent publish` to publish the change" in comment
    assert pull.pull is not None
    pull.pull.maintainer_can_modify = True
    right(scenario.ask("@agent publish", on=pull))
    assert len(scenario.endpoint.requests) == 2
    tip = scenario.tip(repository=FORK)
    assert scenario.git("rev-parse", f"{tip}^", repository=FORK) == before
    assert f"{FORK}/commit/{tip}" in scenario.own_comments(pull)[-1]


def applied(scenario: PullScenario, told: str, work: Path) -> str:
    """half.py after the patch of a comment was applied to the fork's branch."""
    patch = told.split("```diff\n")[1].split("\n```")[0] + "\n"
    git = scenario.github.repository(FORK).git
    git.git("clone", "-q", "--branch", "half", ".", str(work))
    env = {"GIT_COMMITTER_NAME": "zoe", "GIT_COMMITTER_EMAIL": "zoe@example.com"}
    git.git("-C", str(work), "am", "-q", input=patch.encode(), env=env)
    return (work / "half.py").read_text()


@pytest.mark.attack
@pytest.mark.parametrize(
    "whose",
    ["the fork's, since", pytest.param("a merge of main's", marks=pytest.mark.nightly)],
)
def test_a_fork_can_not_bring_its_workflows_into_this_repository(
    scenario: PullScenario, whose: str
) -> None:
    """A fork's pull request contains workflows: they are not pushed to this repository."""
    pull = scenario.from_fork()
    flow = {".github/workflows/ci.yml": "on: push\n"}
    if whose == "a merge of main's":
        scenario.github.commit(UPSTREAM, "main", flow, "ci", "mona")
        git = scenario.github.repository(FORK).git
        upstream = scenario.github.repository(UPSTREAM).git_dir
        git.git("fetch", "-q", str(upstream), "main:theirs")
        tree = git.text("merge-tree", "--write-tree", "half", "theirs")
        parents = ("-p", "half", "-p", "theirs")
        env = {
            f"GIT_{who}_{what}": "zoe"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        made = git.git("commit-tree", tree, *parents, "-m", "Merge main", env=env).decode().strip()
        git.git("update-ref", "refs/heads/half", made)
    else:
        scenario.github.commit(FORK, "half", flow, "ci", "zoe")
    if whose == "the fork's, since":
        scenario.github.commit(
            FORK, "half", {".github/workflows/ci.yml": "on: [push]\n"}, "ci", "zoe"
        )
    scenario.endpoint.script(HALF, finish(DONE))
    right(scenario.ask(on=pull, RESOLVER_FORK_CHANGES="branch"))
    [comment] = scenario.own_comments(pull)
    if whose == "a merge of main's":
        assert len(scenario.branches()) == 1
        return
    assert scenario.branches() == [] and len(scenario.pulls()) == 2
    assert "changes to protected files" in comment and "ci.yml" in comment
    assert "+    return x / 2" in comment and "git am" in comment


def test_a_protected_branch_gets_a_pull_request_instead_of_a_push(scenario: PullScenario) -> None:
    """A whole run: the story of a pull request that is named on the command line."""
    scenario.github.protect_branch(UPSTREAM, "half")
    scenario.endpoint.script(HALF, finish(DONE))
    right(scenario.line.call("resolve", f"{UPSTREAM}#{scenario.pull.number}"))
    assert "pull request #" in scenario.prompt
    assert scenario.tip() == scenario.head
    assert scenario.pulls()[-1].pull.base == "half"
    assert "is protected" in scenario.own_comments()[-1]


def test_a_change_of_a_workflow_is_refused_there_as_anywhere(scenario: PullScenario) -> None:
    """A whole run, because nothing else shows that the policy judges a change for a person's branch
    before it is pushed there."""
    scenario.endpoint.script(bash("mkdir -p .github/workflows; echo x > .github/workflows/a.yml"),
                          finish(DONE))  # fmt: skip
    done = scenario.ask()
    assert done.exit_code == 5
    assert scenario.tip() == scenario.head
    assert ".github/workflows/a.yml" in scenario.own_comments()[-1]


def test_a_rename_that_was_pushed_meanwhile_can_not_carry_a_change_into_a_workflow(
    scenario: PullScenario,
) -> None:
    """A whole run, because the change is in a workflow only on the branch as it is by then."""
    scenario.github.commit(UPSTREAM, "half", {"ci.txt": LINES}, "text", "mona")
    scenario.head = scenario.tip()
    event = scenario.event()
    scenario.github.commit(
        UPSTREAM, "half", {"ci.txt": None, ".github/workflows/ci.yml": LINES}, "move", "mona"
    )
    pushed_commit = scenario.tip()
    scenario.endpoint.script(bash("sed -i 's/line 3$/line three/' ci.txt"), finish(DONE))
    done = scenario.action(event)
    assert done.exit_code == 5, done.stdout
    assert scenario.tip() == pushed_commit
    assert "on top of the commits pushed during the run" in scenario.own_comments()[-1]


@pytest.mark.attack
def test_what_a_forks_owner_pushes_after_the_request_never_reaches_the_model(
    scenario: PullScenario,
) -> None:
    """A fork's owner pushes after the request: the model never sees it."""
    made = scenario.from_fork()
    seen = scenario.tip(repository=FORK)
    event = scenario.event(on=made)
    scenario.github.advance(60)
    for n in range(120):
        scenario.github.commit(FORK, "half", {"evil.py": f"EVIL = {n}\n"}, "EVIL", "zoe")
    scenario.endpoint.script(bash("cat evil.py"), finish("Nothing"))
    done = scenario.action(event)
    assert done.outcome["base"] == seen
    assert "EVIL" not in str([request.body for request in scenario.endpoint.requests])
