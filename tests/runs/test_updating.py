"""`@agent update`: a pull request is brought up to date with its base, over real sockets.

Whole runs, because the merge that is begun on the host, resolved in the sandbox and judged on the
host again has to be one merge on the branch.
"""

from tests.parts.runs import bash, finish
from tests.runs.test_pulls import LINES, UPSTREAM, PullScenario, right

OURS = LINES.replace("# line 10\n", "# ten, as the pull request says\n")
THEIRS = LINES.replace("# line 10\n", "# ten, as main says\n")
BOTH = "sed -i -e '/^<<<<<<</d' -e '/^=======$/d' -e '/^>>>>>>>/d' lines.py"
RESOLVED = finish("Keep both words\n\nBoth lines stay.")
WORKFLOW = ".github/workflows/ci.yml"


class UpdateScenario(PullScenario):
    """The pull request and main have gone on."""

    def conflict(self) -> tuple[str, str]:
        """Heads of the pull request and of main, which are in conflict in lines.py."""
        head = self.github.commit(UPSTREAM, "half", {"lines.py": OURS}, "ten")
        main = self.github.commit(
            UPSTREAM, "main", {"lines.py": THEIRS, WORKFLOW: "on: push\n"}, "ten of main"
        )
        return head, main

    def parents(self) -> list[str]:
        return self.git("log", "-1", "--format=%P", "half").split()

    def merge_tree(self, *commits: str) -> str:
        return self.git("merge-tree", "--write-tree", *commits)


SCENARIO = UpdateScenario


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
        "RESOLVER_PACE": '{"write_interval": 0, "github_writes": 0, "first_wait": 0.05}',
    }
    failed = scenario.ask("@agent update", **settings)
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
    assert "- `lines.py`: merged by the agent\n" in comment and "Both lines stay." in comment
    assert "left as git merged it" not in comment
    assert f"- `{WORKFLOW}`: the version of `main`\n" in comment
    assert "Resolving the conflicts also changed files that had none: half.py" in comment
