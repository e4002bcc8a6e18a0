"""`@agent update`: a pull request is brought up to date with its base, over real sockets.

Whole runs, because the merge that is begun on the host, resolved in the sandbox and judged on the
host again has to be one merge on the branch.
"""

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish
from tests.runs.scenario import Scenario

UPSTREAM = "octo/calc"
LINES = "".join(f"# line {n}\n" for n in range(1, 31))


OURS = LINES.replace("# line 10\n", "# ten, as the pull request says\n")
THEIRS = LINES.replace("# line 10\n", "# ten, as main says\n")
BOTH = "sed -i -e '/^<<<<<<</d' -e '/^=======$/d' -e '/^>>>>>>>/d' lines.py"
RESOLVED = finish("Keep both words\n\nBoth lines stay.")
WORKFLOW = ".github/workflows/ci.yml"


class UpdateScenario(Scenario):
    """A pull request of `mona` from a branch of the repository, which main conflicts with."""

    def __init__(self, github: GitHubServer, line: CommandLine, endpoint: ModelEndpoint) -> None:
        super().__init__(github, line, endpoint)
        self.token = line.environment["GITHUB_TOKEN"] = github.token_for("resolver-bot")
        github.commit(UPSTREAM, "main", {"lines.py": LINES})
        half = "def half(x):\n    return x // 2\n"
        github.commit(UPSTREAM, "half", {"half.py": half}, "Add half()", "mona")
        self.pull: Issue = github.create_pull(UPSTREAM, "half", "Add half()", "", author="mona")

    def ask(self, text: str, **environment: str) -> Ended:
        self.github.advance(5)
        comment = self.github.add_comment(self.pull, text, "mona")
        return self.action(self.github.event_issue_comment(comment), **environment)

    def git(self, *args: str) -> str:
        return str(self.repository.git.text(*args)).strip()


SCENARIO = UpdateScenario


def test_conflicts_are_resolved_and_become_a_merge_commit(scenario: UpdateScenario) -> None:
    """A whole run: the story of conflicts. The one in a workflow is resolved with the base's own
    file, which is the one way that the policy allows, and a file without a conflict is changed. At
    first the merge can't be pushed, and a later command has only what the failed run has stored."""
    scenario.github.commit(UPSTREAM, "half", {WORKFLOW: "on: pull_request\n"}, "ci", "mona")
    head = scenario.github.commit(UPSTREAM, "half", {"lines.py": OURS}, "ten")
    files = {"lines.py": THEIRS, WORKFLOW: "on: push\n"}
    main = scenario.github.commit(UPSTREAM, "main", files, "ten of main")
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
    assert failed.exit_code == 1 and scenario.git("rev-parse", "refs/heads/half") == head
    messages = scenario.endpoint.requests[0].body["messages"]
    prompt = "\n".join(str(message["content"]) for message in messages)
    for words in ("lines.py", "CONFLICT (content)", main, "Bring pull request"):
        assert words in prompt, words
    seen = str(scenario.endpoint.requests[1].body)
    assert "ten of main" in seen and f"<<<<<<< {head}" in seen

    scenario.github.app.faults = type(scenario.github.app.faults)()
    scenario.github.commit(UPSTREAM, "main", {"later.py": "x = 1\n"})
    published = scenario.line.call("publish", failed.output)
    assert published.exit_code == 0, published.stdout + published.stderr
    assert (
        len(scenario.endpoint.requests) == 3
        and scenario.git("log", "-1", "--format=%P", "half") == f"{head} {main}"
    )
    text = scenario.git("show", "half:lines.py")
    assert "as the pull request says\n# ten, as main says" in text and "<<<<" not in text
    assert scenario.git("show", f"half:{WORKFLOW}") == "on: push"
    assert "half.py" in scenario.git("ls-tree", "--name-only", "half")
    comment = scenario.pull.comments[-1].body
    assert "- `lines.py`: merged by the agent\n" in comment and "Both lines stay." in comment
    assert "left as git merged it" not in comment
    assert f"- `{WORKFLOW}`: the version of `main`\n" in comment
    assert "Resolving the conflicts also changed files that had none: half.py" in comment
