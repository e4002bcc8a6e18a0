"""`@agent update`: a pull request is brought up to date with its base, over real sockets.

Whole runs, because the merge that is begun on the host, resolved in the sandbox and judged on the
host again has to be one merge on the branch.
"""

from collections.abc import Iterator

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish
from tests.runs.test_pulls import FORK, LINES, UPSTREAM, PullScenario, right

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


@pytest.mark.nightly
def test_the_same_update_again_is_not_done_again(scenario: UpdateScenario) -> None:
    scenario.github.commit(UPSTREAM, "main", {"new.py": "x = 1\n"})
    event = scenario.event("@agent update")
    scenario.github.fail_next("PATCH", r"/issues/comments/\d+$", 422, times=99)
    scenario.github.fail_next("POST", rf"/issues/{scenario.pull.number}/comments$", 422, times=99)
    assert scenario.action(event).exit_code == 1
    tip = scenario.tip()
    scenario.github.app.faults = type(scenario.github.app.faults)()
    scenario.github.commit(UPSTREAM, "main", {"newer.py": "x = 1\n"})
    right(scenario.action(event))
    assert scenario.tip() == tip and tip[:12] in scenario.own_comments()[-1]


@pytest.mark.nightly
def test_a_clean_update_of_what_was_pushed_meanwhile_holds_that_too(
    scenario: UpdateScenario,
) -> None:
    event = scenario.event("@agent update")
    pushed_commit = scenario.github.commit(UPSTREAM, "half", {"more.py": "1\n"}, "more", "mona")
    main = scenario.github.commit(UPSTREAM, "main", {"new.py": "x = 1\n"})
    right(scenario.action(event))
    assert scenario.parents() == [pushed_commit, main]


def test_conflicts_are_resolved_and_become_a_merge_commit(scenario: UpdateScenario) -> None:
    """A whole run: the story of conflicts. The one in a workflow is resolved with the base's own
    file, which is the one way that the policy allows, and a file without a conflict is changed."""
    scenario.github.commit(UPSTREAM, "half", {WORKFLOW: "on: pull_request\n"}, "ci", "mona")
    head, main = scenario.conflict()
    scenario.endpoint.script(
        bash("git log --format=%s HEAD^2 -1; git status --short; cat lines.py | sed -n 8,16p"),
        bash(f"{BOTH}; git checkout HEAD^2 -- {WORKFLOW}; echo '# more' >> half.py"),
        RESOLVED,
    )
    right(scenario.ask("@agent resolve the merge conflicts"))
    assert scenario.parents() == [head, main]
    text = scenario.git("show", "half:lines.py")
    assert "as the pull request says\n# ten, as main says" in text and "<<<<" not in text
    assert scenario.git("show", f"half:{WORKFLOW}") == "on: push"
    assert "half.py" in scenario.git("ls-tree", "--name-only", "half")
    for words in ("lines.py", "CONFLICT (content)", main, "Bring pull request"):
        assert words in scenario.prompt, words
    seen = str(scenario.endpoint.requests[1].body)
    assert "ten of main" in seen and f"<<<<<<< {head}" in seen
    [comment] = scenario.own_comments()
    assert "- `lines.py`: merged by the agent\n" in comment and "Keep both words" in comment
    assert "left as git merged it" not in comment
    assert f"- `{WORKFLOW}`: the version of `main`\n" in comment
    assert "Resolving the conflicts also changed files that had none: half.py" in comment


@pytest.mark.nightly
def test_a_marker_that_is_left_stops_the_merge(scenario: UpdateScenario) -> None:
    head, _ = scenario.conflict()
    scenario.endpoint.script(bash("echo looked"), RESOLVED)
    done = scenario.ask("@agent update")
    assert done.exit_code == 5, done.stdout
    assert scenario.tip() == head
    assert "unresolved conflicts are left in lines.py" in scenario.own_comments()[-1]


@pytest.mark.nightly
def test_an_untouched_binary_conflict_is_reported(scenario: UpdateScenario) -> None:
    scenario.github.commit(UPSTREAM, "half", {"logo.bin": b"\x00ours\xff"}, "logo", "mona")
    scenario.github.commit(UPSTREAM, "main", {"logo.bin": b"\x00theirs\xfe"}, "logo of main")
    scenario.endpoint.script(finish("Take it\n\nDone."))
    right(scenario.ask("@agent update"))
    comments = scenario.own_comments()[-1]
    assert "- `logo.bin`: **left as git merged it**, the version of `half`. The agent" in comments
    assert "not verified:** it contains a conflict that the agent did not edit." in comments
    assert "resolved them" not in comments


@pytest.mark.nightly
def test_what_the_agent_calls_unfinished_is_not_merged(scenario: UpdateScenario) -> None:
    head, _ = scenario.conflict()
    scenario.endpoint.script(
        bash(BOTH), finish("I can't tell which one is right.", completed=False)
    )
    done = scenario.ask("@agent update")
    assert done.exit_code == 5, done.stdout
    assert scenario.tip() == head


@pytest.mark.nightly
def test_the_resolution_of_a_conflict_can_be_to_leave_what_is_there(
    scenario: UpdateScenario,
) -> None:
    scenario.github.commit(UPSTREAM, "half", {"lines.py": OURS}, "ten")
    scenario.github.commit(UPSTREAM, "main", {"lines.py": None}, "gone")
    scenario.endpoint.script(finish("The file is still needed."))
    right(scenario.ask("@agent update"))
    assert len(scenario.parents()) == 2 and "as the pull" in scenario.git("show", "half:lines.py")


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


def in_workflow(scenario: UpdateScenario) -> tuple[str, str]:
    scenario.github.commit(UPSTREAM, "main", {WORKFLOW: LINES})
    scenario.github.commit(UPSTREAM, "half", {WORKFLOW: OURS}, "ci", "mona")
    head = scenario.tip()
    return head, scenario.github.commit(UPSTREAM, "main", {WORKFLOW: THEIRS}, "ci of main")


@pytest.mark.nightly
def test_a_conflict_in_a_workflow_may_be_ended_with_the_bases_own_file(
    scenario: UpdateScenario,
) -> None:
    head, main = in_workflow(scenario)
    scenario.endpoint.script(bash(f"git checkout HEAD^2 -- {WORKFLOW}"), RESOLVED)
    right(scenario.ask("@agent update"))
    assert scenario.parents() == [head, main]
    assert scenario.git("show", f"half:{WORKFLOW}") == THEIRS.strip()


@pytest.mark.nightly
def test_a_conflict_in_a_workflow_is_ended_no_other_way(scenario: UpdateScenario) -> None:
    """A whole run, because the policy has to know how the merge was made; test_update_branch.py has
    what counts as the base's own file."""
    head, _ = in_workflow(scenario)
    scenario.endpoint.script(bash(f"git checkout HEAD^1 -- {WORKFLOW}"), RESOLVED)
    done = scenario.ask("@agent update")
    assert done.exit_code == 5, done.stdout
    assert scenario.tip() == head and WORKFLOW in scenario.own_comments()[-1]


@pytest.mark.nightly
def test_a_change_outside_the_conflicts_is_reported(scenario: UpdateScenario) -> None:
    scenario.conflict()
    scenario.endpoint.script(bash(f"{BOTH}; echo '# more' >> half.py"), RESOLVED)
    right(scenario.ask("@agent update"))
    assert (
        "Resolving the conflicts also changed files that had none: half.py"
        in scenario.own_comments()[-1]
    )


@pytest.mark.nightly
def test_a_push_during_the_resolution_leads_to_a_pull_request_into_the_branch(
    scenario: UpdateScenario,
) -> None:
    scenario.conflict()
    event = scenario.event("@agent update")
    pushed_commit = scenario.github.commit(UPSTREAM, "half", {"more.py": "1\n"}, "more", "mona")
    scenario.endpoint.script(bash(BOTH), RESOLVED)
    right(scenario.action(event))
    assert scenario.tip() == pushed_commit
    beside = scenario.pulls()[-1]
    assert beside.pull.base == "half"
    assert len(scenario.parents(beside.pull.head)) == 2
    assert f"/pull/{beside.number}" in scenario.own_comments()[-1]


@pytest.mark.nightly
def test_a_forks_pull_request_is_brought_up_to_date_there(scenario: UpdateScenario) -> None:
    """The merge holds what was pushed to the fork after the request, too."""
    pull = scenario.from_fork()
    event = scenario.event("@agent update", on=pull)
    pushed_commit = scenario.github.commit(FORK, "half", {"more.py": "1\n"}, "more", "zoe")
    main = scenario.github.commit(UPSTREAM, "main", {"new.py": "x = 1\n"})
    right(scenario.action(event))
    assert scenario.parents(repository=FORK) == [pushed_commit, main]


@pytest.mark.nightly
def test_a_fork_that_can_not_be_pushed_to_costs_no_work(scenario: UpdateScenario) -> None:
    pull = scenario.from_fork(editable=False)
    before, _ = scenario.conflict(repository=FORK)
    done = scenario.ask("@agent update", on=pull)
    assert done.exit_code == 5
    assert scenario.endpoint.requests == [] and scenario.tip(repository=FORK) == before
    assert "does not let maintainers edit" in scenario.own_comments(pull)[-1]


@pytest.mark.nightly
def test_an_issue_can_not_be_updated(scenario: UpdateScenario) -> None:
    done = scenario.ask("@agent /update", on=scenario.issue)
    assert done.exit_code == 5
    assert "only a pull request can be updated" in scenario.own_comments(scenario.issue)[-1]


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


@pytest.mark.nightly
def test_an_update_that_ended_at_a_limit_continues_from_its_log(scenario: UpdateScenario) -> None:
    head, main = scenario.conflict()
    scenario.endpoint.script(bash("echo looked"))
    limit = scenario.ask("@agent update", **{"INPUT_MAX-ITERATIONS": "1"})
    assert limit.exit_code == 4 and scenario.tip() == head
    scenario.github.commit(UPSTREAM, "main", {"later.py": "x = 1\n"})
    scenario.endpoint.script(bash(BOTH), RESOLVED)
    right(scenario.ask("@agent continue +5 iterations"))
    assert scenario.parents() == [head, main]
    assert len(scenario.endpoint.requests) == 3


@pytest.mark.nightly
def test_a_fork_that_the_token_can_not_push_to_costs_no_work(scenario: UpdateScenario) -> None:
    pull = scenario.from_fork()
    before, _ = scenario.conflict(repository=FORK)
    scenario.token = scenario.github.token_for("resolver-bot", UPSTREAM)
    done = scenario.ask("@agent update", on=pull, GITHUB_TOKEN=scenario.token)
    assert done.exit_code == 5, done.stdout
    assert scenario.endpoint.requests == [] and scenario.tip(repository=FORK) == before
    assert "the token may not push there" in scenario.own_comments(pull)[-1]


@pytest.mark.nightly
def test_a_merge_that_somebody_else_made_meanwhile_is_not_reported_as_ours(
    scenario: UpdateScenario,
) -> None:
    """A whole run, because the branch has to move between the request and the merge."""
    event = scenario.event("@agent update")
    main = scenario.github.commit(UPSTREAM, "main", {"new.py": "x = 1\n"})
    scenario.github.force_push(UPSTREAM, "half", main)
    merged_commit = scenario.github.commit(
        UPSTREAM, "half", {"half.py": "x = 1\n"}, "on main", "mona"
    )
    done = scenario.action(event)
    assert done.exit_code == 3, done.stdout
    assert scenario.tip() == merged_commit and "Resolver merged" not in scenario.own_comments()[-1]


@pytest.mark.nightly
def test_a_merge_notifies_nobody_whom_a_branch_is_named_for(scenario: UpdateScenario) -> None:
    name = "@zoe/fix-#1"
    scenario.github.commit(UPSTREAM, name, {"half.py": "x = 1\n"}, "Add half()", "mona")
    pull = scenario.github.create_pull(UPSTREAM, name, "Add half()", "", author="mona")
    scenario.github.commit(UPSTREAM, "main", {"new.py": "x = 1\n"})
    right(scenario.ask("@agent update", on=pull))
    subject = scenario.git("log", "-1", "--format=%s", f"refs/heads/{name}")
    assert subject.startswith("Merge branch 'main' into ")
    assert "@zoe" not in subject and "#1" not in subject
