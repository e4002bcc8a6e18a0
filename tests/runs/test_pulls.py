"""Work on the branches of pull requests: of people, of forks, of our own, over real sockets."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish
from tests.runs.test_github import Scene

UPSTREAM = "octo/calc"
FORK = "zoe/calc"
LINES = "".join(f"# line {n}\n" for n in range(1, 31))
HALF = bash("sed -i 's/x \\/\\/ 2/x \\/ 2/' half.py")
DONE = "Divide instead of rounding down\n\n`half(3)` is 1.5 now."


class PullScene(Scene):
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

    def told(self, on: Issue | None = None) -> list[str]:
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
def scene(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[PullScene]:
    made = PullScene(github, command_line, model_endpoint)
    yield made
    wire = b"".join(p.read_bytes() for p in command_line.folder.rglob("*") if p.is_file())
    assert made.token.encode() not in wire, "the token was written to a file"


def right(done: Ended) -> None:
    assert done.exit_code == 0, done.stdout + done.stderr


def test_a_fix_becomes_one_commit_on_the_branch_of_the_pull_request(scene: PullScene) -> None:
    scene.endpoint.script(HALF, finish(DONE))
    done = scene.ask()
    right(done)
    tip = scene.tip()
    assert scene.git("rev-parse", f"{tip}^") == scene.head
    assert scene.git("show", f"{tip}:half.py").endswith("x / 2")
    assert "Co-authored-by: mona" in scene.git("log", "-1", "--format=%B", tip)
    assert len(scene.pulls()) == 1 and scene.branches() == []
    [told] = scene.told()
    assert tip[:12] in told and f"/commit/{tip}" in told and "`half`" in told
    assert "Fixes #" not in scene.git("log", "-1", "--format=%B", tip)
    assert done.outcome["branch"] == "half" and done.outcome["commit"] == tip
    assert "return x // 2" in scene.prompt and "make it divide" in scene.prompt
    assert scene.pull.title == "Add half()"


def test_the_same_request_again_pushes_nothing_more(scene: PullScene) -> None:
    scene.endpoint.script(HALF, finish(DONE))
    event = scene.event()
    right(scene.action(event))
    tip, asked = scene.tip(), len(scene.endpoint.requests)
    again = scene.action(event)
    right(again)
    assert again.outcome["repeated"] is True
    assert (scene.tip(), len(scene.endpoint.requests), len(scene.told())) == (tip, asked, 1)


def test_a_run_that_died_after_its_push_finds_its_commit(scene: PullScene) -> None:
    scene.endpoint.script(HALF, finish(DONE))
    event = scene.event()
    scene.github.fail_next("PATCH", r"/issues/comments/\d+$", 422, times=99)
    scene.github.fail_next("POST", rf"/issues/{scene.pull.number}/comments$", 422, times=99)
    assert scene.action(event).exit_code == 1
    tip = scene.tip()
    assert tip != scene.head
    scene.github.app.faults = type(scene.github.app.faults)()
    again = scene.action(event)
    right(again)
    assert scene.tip() == tip and len(scene.endpoint.requests) == 2
    assert tip[:12] in scene.told()[-1]


def test_a_commit_that_only_says_it_is_ours_is_not_taken_for_it(scene: PullScene) -> None:
    scene.endpoint.script(HALF, finish(DONE))
    event = scene.event()
    scene.github.fail_next("POST", r"git-receive-pack", 403, times=9)
    failed = scene.action(event)
    assert failed.exit_code == 1
    scene.github.app.faults = type(scene.github.app.faults)()
    run = failed.outcome["run"]
    scene.github.commit(UPSTREAM, "half", {"evil.py": "1\n"}, f"x\n\nResolver-Run: {run}", "eve")
    scene.endpoint.script(HALF, finish(DONE))
    right(scene.action(event))
    assert scene.git("log", "-1", "--format=%an", scene.tip()) == "resolver-bot"


def test_what_was_pushed_meanwhile_stays_and_the_commit_goes_on_top(scene: PullScene) -> None:
    event = scene.event()
    theirs = scene.github.commit(UPSTREAM, "half", {"more.py": "x = 1\n"}, "more", "mona")
    scene.endpoint.script(HALF, finish(DONE))
    right(scene.action(event))
    tip = scene.tip()
    assert scene.git("rev-parse", f"{tip}^") == theirs
    assert scene.git("diff", "--name-only", theirs, tip) == "half.py"
    assert "more.py" not in json.dumps([r.body for r in scene.endpoint.requests])


def test_what_was_pushed_meanwhile_can_be_merged_with_by_setting(scene: PullScene) -> None:
    event = scene.event()
    theirs = scene.github.commit(UPSTREAM, "half", {"more.py": "x = 1\n"}, "more", "mona")
    scene.endpoint.script(HALF, finish(DONE))
    right(scene.action(event, RESOLVER_BASE_MOVED="merge"))
    parents = scene.git("log", "-1", "--format=%P", scene.tip()).split()
    assert parents[0] == theirs and len(parents) == 2
    assert scene.git("rev-parse", f"{parents[1]}^") == scene.head


def test_a_push_that_is_in_conflict_leads_to_a_pull_request_beside(scene: PullScene) -> None:
    event = scene.event()
    theirs = scene.github.commit(UPSTREAM, "half", {"half.py": "def half(x):\n    return x >> 1\n"})
    scene.endpoint.script(HALF, finish(DONE))
    right(scene.action(event))
    assert scene.tip() == theirs
    beside = scene.pulls()[-1]
    assert beside.pull.base == "half" and beside.pull.head.startswith("agent/")
    assert f"#{scene.pull.number}" in beside.body and "somebody pushed" in beside.body
    assert f"[#{beside.number}]" in scene.told()[-1]


def test_a_rewritten_branch_is_left_alone(scene: PullScene) -> None:
    event = scene.event()
    start = scene.tip("main")
    scene.github.force_push(UPSTREAM, "half", start)
    theirs = scene.github.commit(UPSTREAM, "half", {"other.py": "1\n"}, "anew", "mona")
    scene.endpoint.script(HALF, finish(DONE))
    right(scene.action(event))
    assert scene.tip() == theirs
    assert scene.pulls()[-1].pull.base == "half"


def test_a_fork_whose_author_lets_maintainers_edit_is_pushed_to(scene: PullScene) -> None:
    pull = scene.from_fork()
    before = scene.tip(repository=FORK)
    scene.endpoint.script(HALF, finish(DONE))
    right(scene.ask(on=pull))
    tip = scene.tip(repository=FORK)
    assert scene.git("rev-parse", f"{tip}^", repository=FORK) == before
    [told] = scene.told(pull)
    assert f"{FORK}/commit/{tip}" in told
    assert scene.branches() == []


@pytest.mark.parametrize("why", ["not editable", "token", "setting"])
def test_else_the_patch_is_in_the_comment(scene: PullScene, why: str, tmp_path: Path) -> None:
    """Whole runs, because the patch has to apply where the agent worked, and be published later."""
    pull = scene.from_fork(editable=why != "not editable")
    before = scene.tip(repository=FORK)
    scene.endpoint.script(HALF, finish(DONE))
    environment = {"RESOLVER_FORK_CHANGES": "patch"} if why == "setting" else {}
    if why == "token":
        scene.token = scene.github.token_for("resolver-bot", UPSTREAM)
        environment["GITHUB_TOKEN"] = scene.token
    event = scene.event(on=pull)
    done = scene.action(event, **environment)
    right(done)
    assert scene.tip(repository=FORK) == before
    [told] = scene.told(pull)
    assert "+    return x / 2" in told and "Subject: [PATCH]" in told and "git am" in told
    assert "x / 2" in (done.output / "patch.diff").read_text()
    assert len(scene.pulls()) == 2 and scene.branches() == []
    if why != "not editable":
        return
    again = scene.action(event, **environment)
    right(again)
    assert len(scene.told(pull)) == 1 and len(scene.endpoint.requests) == 2
    assert "x / 2" in applied(scene, told, tmp_path / "work")
    assert "comment `@agent publish` to publish the change" in told
    assert pull.pull is not None
    pull.pull.maintainer_can_modify = True
    right(scene.ask("@agent publish", on=pull))
    assert len(scene.endpoint.requests) == 2
    tip = scene.tip(repository=FORK)
    assert scene.git("rev-parse", f"{tip}^", repository=FORK) == before
    assert f"{FORK}/commit/{tip}" in scene.told(pull)[-1]


def applied(scene: PullScene, told: str, work: Path) -> str:
    """half.py after the patch of a comment was applied to the fork's branch."""
    patch = told.split("```diff\n")[1].split("\n```")[0] + "\n"
    git = scene.github.repository(FORK).git
    git.git("clone", "-q", "--branch", "half", ".", str(work))
    env = {"GIT_COMMITTER_NAME": "zoe", "GIT_COMMITTER_EMAIL": "zoe@example.com"}
    git.git("-C", str(work), "am", "-q", input=patch.encode(), env=env)
    return (work / "half.py").read_text()


def test_a_branch_of_its_own_holds_the_forks_commits_by_setting(scene: PullScene) -> None:
    pull = scene.from_fork()
    before = scene.tip(repository=FORK)
    scene.endpoint.script(HALF, finish(DONE))
    right(scene.ask(on=pull, RESOLVER_FORK_CHANGES="branch"))
    assert scene.tip(repository=FORK) == before
    beside = scene.pulls()[-1]
    assert beside.pull.base == "main"
    assert scene.git("rev-parse", f"{beside.pull.head}^") == before
    assert f"#{pull.number}" in beside.body


@pytest.mark.parametrize("head", ["main", "develop"])
def test_the_branch_that_work_is_merged_into_gets_a_pull_request_instead_of_a_push(
    scene: PullScene, head: str
) -> None:
    scene.github.commit(UPSTREAM, "release", {"r.py": "1\n"})
    half = {"half.py": "def half(x):\n    return x // 2\n"}
    before = scene.github.commit(UPSTREAM, head, half, "Add half()", "mona")
    pull = scene.github.create_pull(UPSTREAM, head, "Release it", "", author="mona", base="release")
    scene.endpoint.script(HALF, finish(DONE))
    right(scene.ask(on=pull, RESOLVER_BASE_BRANCH="develop"))
    assert scene.tip(head) == before
    beside = scene.pulls()[-1]
    assert beside.pull.base == head and beside.pull.head.startswith("agent/")
    assert scene.git("rev-parse", f"{beside.pull.head}^") == before
    assert f"[#{beside.number}]" in scene.told(pull)[-1]
    assert "and Resolver never pushes there" in scene.told(pull)[-1]


@pytest.mark.parametrize("whose", ["the fork's, since", "a merge of main's"])
def test_a_fork_can_not_bring_its_workflows_into_this_repository(
    scene: PullScene, whose: str
) -> None:
    pull = scene.from_fork()
    flow = {".github/workflows/ci.yml": "on: push\n"}
    if whose == "a merge of main's":
        scene.github.commit(UPSTREAM, "main", flow, "ci", "mona")
        git = scene.github.repository(FORK).git
        upstream = scene.github.repository(UPSTREAM).git_dir
        git.git("fetch", "-q", str(upstream), "main:theirs")
        tree = git.text("merge-tree", "--write-tree", "half", "theirs")
        both = ("-p", "half", "-p", "theirs")
        env = {
            f"GIT_{who}_{what}": "zoe"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        made = git.git("commit-tree", tree, *both, "-m", "Merge main", env=env).decode().strip()
        git.git("update-ref", "refs/heads/half", made)
    else:
        scene.github.commit(FORK, "half", flow, "ci", "zoe")
    if whose == "the fork's, since":
        scene.github.commit(FORK, "half", {".github/workflows/ci.yml": "on: [push]\n"}, "ci", "zoe")
    scene.endpoint.script(HALF, finish(DONE))
    right(scene.ask(on=pull, RESOLVER_FORK_CHANGES="branch"))
    [told] = scene.told(pull)
    if whose == "a merge of main's":
        assert len(scene.branches()) == 1
        return
    assert scene.branches() == [] and len(scene.pulls()) == 2
    assert "changes to protected files" in told and "ci.yml" in told
    assert "+    return x / 2" in told and "git am" in told


def test_a_protected_branch_gets_a_pull_request_instead_of_a_push(scene: PullScene) -> None:
    scene.github.protect_branch(UPSTREAM, "half")
    scene.endpoint.script(HALF, finish(DONE))
    right(scene.ask())
    assert scene.tip() == scene.head
    assert scene.pulls()[-1].pull.base == "half"
    assert "is protected" in scene.told()[-1]


def test_a_pull_request_that_touches_workflows_itself_can_be_worked_on(scene: PullScene) -> None:
    scene.github.commit(UPSTREAM, "half", {".github/workflows/ci.yml": "on: push\n"}, "ci", "mona")
    scene.endpoint.script(HALF, finish(DONE))
    right(scene.ask())
    assert scene.git("diff", "--name-only", "half^", "half") == "half.py"


def test_a_change_of_a_workflow_is_refused_there_as_anywhere(scene: PullScene) -> None:
    scene.endpoint.script(bash("mkdir -p .github/workflows; echo x > .github/workflows/a.yml"),
                          finish(DONE))  # fmt: skip
    done = scene.ask()
    assert done.exit_code == 5
    assert scene.tip() == scene.head
    assert ".github/workflows/a.yml" in scene.told()[-1]


def test_a_rename_that_was_pushed_meanwhile_can_not_carry_a_change_into_a_workflow(
    scene: PullScene,
) -> None:
    scene.github.commit(UPSTREAM, "half", {"ci.txt": LINES}, "text", "mona")
    scene.head = scene.tip()
    event = scene.event()
    scene.github.commit(
        UPSTREAM, "half", {"ci.txt": None, ".github/workflows/ci.yml": LINES}, "move", "mona"
    )
    theirs = scene.tip()
    scene.endpoint.script(bash("sed -i 's/line 3$/line three/' ci.txt"), finish(DONE))
    done = scene.action(event)
    assert done.exit_code == 5, done.stdout
    assert scene.tip() == theirs
    assert "on top of the commits pushed during the run" in scene.told()[-1]


def test_the_command_line_works_on_a_pull_request_by_its_number(scene: PullScene) -> None:
    scene.endpoint.script(HALF, finish(DONE))
    done = scene.line.call("resolve", f"{UPSTREAM}#{scene.pull.number}")
    right(done)
    assert scene.git("rev-parse", "half^") == scene.head
    assert "pull request #" in scene.prompt


def test_a_token_that_may_not_change_workflows_is_told_of(scene: PullScene) -> None:
    bot = scene.github.add_user("app[bot]", "Bot")
    scene.token = scene.github.token_for(bot.login, UPSTREAM)
    scene.endpoint.script(
        bash("mkdir -p .github/workflows; echo 'on: push' > .github/workflows/a.yml"), finish(DONE)
    )
    done = scene.ask(GITHUB_TOKEN=scene.token, RESOLVER_PROTECTED_PATHS="nothing")
    assert done.exit_code == 1
    assert scene.tip() == scene.head
    told = [c.body for c in scene.pull.comments if c.author.login == "app[bot]"]
    assert "workflow file" in told[-1] and "workflows: write" in told[-1]


def test_a_change_that_somebody_else_has_made_meanwhile_is_theirs(scene: PullScene) -> None:
    event = scene.event()
    divides = {"half.py": "def half(x):\n    return x / 2\n"}
    theirs = scene.github.commit(UPSTREAM, "half", divides, "divide", "mona")
    scene.endpoint.script(HALF, finish(DONE))
    done = scene.action(event)
    assert done.exit_code == 3, done.stdout
    assert scene.tip() == theirs
    assert (
        "nothing more to change" in scene.told()[-1] and "Resolver pushed" not in scene.told()[-1]
    )


def test_a_branch_name_that_can_not_be_pushed_to_costs_no_work(scene: PullScene) -> None:
    name = "half\u200b"
    scene.github.commit(UPSTREAM, name, {"half.py": "x = 1\n"}, "Add half()", "mona")
    pull = scene.github.create_pull(UPSTREAM, name, "Add half()", "", author="mona")
    done = scene.ask(on=pull)
    assert done.exit_code == 1 and scene.endpoint.requests == []
    assert "not a valid branch name" in scene.told(pull)[-1]


def test_what_a_forks_owner_pushes_after_the_request_never_reaches_the_model(
    scene: PullScene,
) -> None:
    """A whole run, because all requests to the model are searched. A page holds 100 pushes."""
    made = scene.from_fork()
    seen = scene.tip(repository=FORK)
    event = scene.event(on=made)
    scene.github.advance(60)
    for n in range(120):
        scene.github.commit(FORK, "half", {"evil.py": f"EVIL = {n}\n"}, "EVIL", "zoe")
    scene.endpoint.script(bash("cat evil.py"), finish("Nothing"))
    done = scene.action(event)
    assert done.outcome["base"] == seen
    assert "EVIL" not in str([each.body for each in scene.endpoint.requests])


def test_where_a_forks_pushes_can_not_be_seen_the_answer_is_one_refusal(scene: PullScene) -> None:
    made = scene.from_fork()
    event = scene.event(on=made)
    scene.github.advance(60)
    scene.github.commit(FORK, "half", {"evil.py": "EVIL = 1\n"}, "EVIL", "zoe")
    scene.github.fail_next("GET", "/activity$", 404, times=99)
    done = scene.action(event)
    assert done.exit_code == 5
    assert not scene.endpoint.requests
    [told] = scene.told(made)
    assert "not known which commit" in told
    assert "ask in a review of it" in told
