"""`@agent update`: a pull request is brought up to date with its base, over real sockets.

Whole runs, because the merge that is begun on the host, resolved in the sandbox and judged on the
host again has to be one merge on the branch.
"""

from collections.abc import Iterator

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish
from tests.runs.test_pulls import LINES, UPSTREAM, PullScenario, right

OURS = LINES.replace("# line 10\n", "# ten, as the pull request says\n")
THEIRS = LINES.replace("# line 10\n", "# ten, as main says\n")
BOTH = "sed -i -e '/^<<<<<<</d' -e '/^=======$/d' -e '/^>>>>>>>/d' lines.py"
RESOLVED = finish("Keep both words\n\nBoth lines stay.")
WORKFLOW = ".github/workflows/ci.yml"


class UpdateScenario(PullScenario):
    """The pull request and main have gone on."""

    def conflict(self, branch: str = "half", repository: str = UPSTREAM) -> tuple[str, str]:
        """Heads of the pull request and of main, which are in conflict in lines.py."""
        head = self.github.commit(repository, branch, {"lines.py": OURS}, "ten")
        main = self.github.commit(
            UPSTREAM, "main", {"lines.py": THEIRS, WORKFLOW: "on: push\n"}, "ten of main"
        )
        return head, main

    def parents(self, branch: str = "half", repository: str = UPSTREAM) -> list[str]:
        return self.git("log", "-1", "--format=%P", branch, repository=repository).split()

    def merge_tree(self, *commits: str) -> str:
        return self.git("merge-tree", "--write-tree", *commits)


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[UpdateScenario]:
    yield UpdateScenario(github, command_line, model_endpoint)


def test_a_clean_merge_is_done_without_a_model(scenario: UpdateScenario) -> None:
    """A whole run, because no model may be asked; test_commands.py has the other requests."""
    main = scenario.github.commit(UPSTREAM, "main", {"new.py": "x = 1\n", WORKFLOW: "on: push\n"})
    right(scenario.ask("@agent update"))
    assert scenario.parents() == [scenario.head, main]
    assert scenario.git("rev-parse", "half^{tree}") == scenario.merge_tree(scenario.head, main)
    assert scenario.endpoint.requests == []
    [comment] = scenario.own_comments()
    assert "Resolver merged `main` into `half`" in comment and "no conflict" in comment
    assert scenario.git("log", "-1", "--format=%s", "half") == "Merge branch 'main' into half"
    tip = scenario.tip()
    again = scenario.ask("@agent update")
    assert again.exit_code == 3
    assert scenario.tip() == tip and "nothing to merge" in scenario.own_comments()[-1]


def test_conflicts_are_resolved_and_become_a_merge_commit(scenario: UpdateScenario) -> None:
    """A whole run: the story of conflicts. The one in a workflow is resolved with the base's own
    file, which is the one way that the policy allows, and a file without a conflict is changed. At
    first the merge can't be pushed, and a later command has only what the failed run has stored."""
    scenario.github.commit(UPSTREAM, "half", {WORKFLOW: "on: pull_request\n"}, "ci", "mona")
    head, main = scenario.conflict()
    scenario.github.fail_next("*", r"git-receive-pack", 500, times=99)
    scenario.endpoint.script(
        bash("git log --format=%s HEAD^2 -1; git status --short; cat lines.py | sed -n 8,16p"),
        bash(f"{BOTH}; git checkout HEAD^2 -- {WORKFLOW}; echo '# more' >> half.py"),
        RESOLVED,
    )
    settings = {
        "RESOLVER_KEEP_LOG": "false",
        "RESOLVER_RETRY_SECONDS": "{github_writes: 0, first_wait: 0.05}",
    }
    failed = scenario.ask("@agent resolve the merge conflicts", **settings)
    assert failed.exit_code == 1 and scenario.tip() == head
    for words in ("lines.py", "CONFLICT (content)", main, "Bring pull request"):
        assert words in scenario.prompt, words
    seen = str(scenario.endpoint.requests[1].body)
    assert "ten of main" in seen and f"<<<<<<< {head}" in seen

    scenario.github.app.faults = type(scenario.github.app.faults)()
    scenario.github.commit(UPSTREAM, "main", {"later.py": "x = 1\n"})
    right(scenario.line.call("publish", failed.output))
    assert len(scenario.endpoint.requests) == 3 and scenario.parents() == [head, main]
    text = scenario.git("show", "half:lines.py")
    assert "as the pull request says\n# ten, as main says" in text and "<<<<" not in text
    assert scenario.git("show", f"half:{WORKFLOW}") == "on: push"
    assert "half.py" in scenario.git("ls-tree", "--name-only", "half")
    comment = scenario.own_comments()[-1]
    assert "- `lines.py`: merged by the agent\n" in comment and "Keep both words" in comment
    assert "left as git merged it" not in comment
    assert f"- `{WORKFLOW}`: the version of `main`\n" in comment
    assert "Resolving the conflicts also changed files that had none: half.py" in comment


def test_a_merge_does_not_carry_an_edit_of_a_workflow_whatever_the_sandboxs_history_says(
    scenario: UpdateScenario,
) -> None:
    """A whole run, because the sandbox's history is rewritten; tests/git/test_policy.py has the
    other ways to change a workflow."""
    head, _ = scenario.conflict()
    amend = (
        f"echo 'run: evil' >> {WORKFLOW}; git -c user.name=x -c user.email=x@x commit -qam evil; "
        "git update-ref HEAD HEAD^1; rm -rf .git/hooks"
    )
    scenario.endpoint.script(bash(BOTH), bash(amend), RESOLVED)
    done = scenario.ask("@agent update")
    assert done.exit_code == 5, done.stdout
    assert scenario.tip() == head
    comment = scenario.own_comments()[-1]
    assert WORKFLOW in comment and "protected" in comment


def test_a_resolved_merge_that_could_not_be_pushed_is_published_later(
    scenario: UpdateScenario,
) -> None:
    """A whole run, because the later command has only what the failed run has stored."""
    head, main = scenario.conflict()
    scenario.github.fail_next("*", r"git-receive-pack", 500, times=99)
    scenario.endpoint.script(bash(BOTH), RESOLVED)
    failed = scenario.ask(
        "@agent update",
        RESOLVER_KEEP_LOG="false",
        RESOLVER_RETRY_SECONDS="{github_writes: 0, first_wait: 0.05}",
    )
    assert failed.exit_code == 1 and scenario.tip() == head
    scenario.github.app.faults = type(scenario.github.app.faults)()
    scenario.github.commit(UPSTREAM, "main", {"later.py": "x = 1\n"})
    done = scenario.line.call("publish", failed.output)
    assert done.exit_code == 0, done.stderr
    assert scenario.parents() == [head, main]
    assert len(scenario.endpoint.requests) == 2


def test_a_signed_merge_whose_answer_was_lost_is_recognized(scenario: UpdateScenario) -> None:
    """A whole run, because the second attempt starts from what the first one has stored."""
    head, main = scenario.conflict()
    scenario.line.environment["RESOLVER_SIGNED_COMMITS"] = "true"
    scenario.github.cut_next("PATCH", r"/git/refs/heads/", times=99, after=True)
    scenario.endpoint.script(bash(BOTH), RESOLVED)
    settings = {
        "RESOLVER_KEEP_LOG": "false",
        "RESOLVER_RETRY_SECONDS": "{github_writes: 0, first_wait: 0.05}",
    }
    failed = scenario.ask("@agent update", **settings)
    assert failed.exit_code == 1 and scenario.parents() == [head, main]
    tip = scenario.tip()
    scenario.github.app.faults = type(scenario.github.app.faults)()
    done = scenario.line.call("publish", failed.output)
    assert done.exit_code == 0, done.stderr
    assert scenario.tip() == tip
    assert not any(branch.startswith("agent/") for branch in scenario.git("branch").split())
