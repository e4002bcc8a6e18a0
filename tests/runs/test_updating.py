"""`@agent update`: a pull request is brought up to date with its base, over real sockets."""

from collections.abc import Iterator

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish
from tests.runs.test_pulls import FORK, LINES, UPSTREAM, PullScene, right

OURS = LINES.replace("# line 10\n", "# ten, as the pull request says\n")
THEIRS = LINES.replace("# line 10\n", "# ten, as main says\n")
BOTH = "sed -i -e '/^<<<<<<</d' -e '/^=======$/d' -e '/^>>>>>>>/d' lines.py"
RESOLVED = finish("Keep both words\n\nBoth lines stay.")
WORKFLOW = ".github/workflows/ci.yml"


class UpdateScene(PullScene):
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
def scene(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[UpdateScene]:
    yield UpdateScene(github, command_line, model_endpoint)


def test_a_clean_merge_is_done_without_a_model(scene: UpdateScene) -> None:
    """A whole run, because no model may be asked; test_commands.py has the other requests."""
    main = scene.github.commit(UPSTREAM, "main", {"new.py": "x = 1\n", WORKFLOW: "on: push\n"})
    right(scene.ask("@agent update"))
    assert scene.parents() == [scene.head, main]
    assert scene.git("rev-parse", "half^{tree}") == scene.merge_tree(scene.head, main)
    assert scene.endpoint.requests == []
    [told] = scene.told()
    assert "Resolver merged `main` into `half`" in told and "no conflict" in told
    assert scene.git("log", "-1", "--format=%s", "half") == "Merge branch 'main' into half"


def test_what_is_up_to_date_stays_as_it_is(scene: UpdateScene) -> None:
    scene.ask("@agent update")
    tip = scene.tip()
    done = scene.ask("@agent update")
    assert done.exit_code == 3
    assert scene.tip() == tip and "nothing to merge" in scene.told()[-1]


def test_the_same_update_again_is_not_done_again(scene: UpdateScene) -> None:
    scene.github.commit(UPSTREAM, "main", {"new.py": "x = 1\n"})
    event = scene.event("@agent update")
    scene.github.fail_next("PATCH", r"/issues/comments/\d+$", 422, times=99)
    scene.github.fail_next("POST", rf"/issues/{scene.pull.number}/comments$", 422, times=99)
    assert scene.action(event).exit_code == 1
    tip = scene.tip()
    scene.github.app.faults = type(scene.github.app.faults)()
    scene.github.commit(UPSTREAM, "main", {"newer.py": "x = 1\n"})
    right(scene.action(event))
    assert scene.tip() == tip and tip[:12] in scene.told()[-1]


def test_a_clean_update_of_what_was_pushed_meanwhile_holds_that_too(scene: UpdateScene) -> None:
    event = scene.event("@agent update")
    theirs = scene.github.commit(UPSTREAM, "half", {"more.py": "1\n"}, "more", "mona")
    main = scene.github.commit(UPSTREAM, "main", {"new.py": "x = 1\n"})
    right(scene.action(event))
    assert scene.parents() == [theirs, main]


def test_conflicts_are_resolved_and_become_a_merge_commit(scene: UpdateScene) -> None:
    head, main = scene.conflict()
    scene.endpoint.script(
        bash("git log --format=%s HEAD^2 -1; git status --short; cat lines.py | sed -n 8,16p"),
        bash(BOTH),
        RESOLVED,
    )
    right(scene.ask("@agent resolve the merge conflicts"))
    assert scene.parents() == [head, main]
    text = scene.git("show", "half:lines.py")
    assert "as the pull request says\n# ten, as main says" in text and "<<<<" not in text
    assert scene.git("show", f"half:{WORKFLOW}") == "on: push"
    assert "half.py" in scene.git("ls-tree", "--name-only", "half")
    for words in ("lines.py", "CONFLICT (content)", main, "Bring pull request"):
        assert words in scene.prompt, words
    seen = str(scene.endpoint.requests[1].body)
    assert "ten of main" in seen and f"<<<<<<< {head}" in seen
    [told] = scene.told()
    assert "- `lines.py`: merged by the agent\n" in told and "Keep both words" in told
    assert "left as git merged it" not in told


def test_a_marker_that_is_left_stops_the_merge(scene: UpdateScene) -> None:
    head, _ = scene.conflict()
    scene.endpoint.script(bash("echo looked"), RESOLVED)
    done = scene.ask("@agent update")
    assert done.exit_code == 5, done.stdout
    assert scene.tip() == head
    assert "unresolved conflicts are left in lines.py" in scene.told()[-1]


def test_a_binary_conflict_that_nobody_touched_is_told_so(scene: UpdateScene) -> None:
    scene.github.commit(UPSTREAM, "half", {"logo.bin": b"\x00ours\xff"}, "logo", "mona")
    scene.github.commit(UPSTREAM, "main", {"logo.bin": b"\x00theirs\xfe"}, "logo of main")
    scene.endpoint.script(finish("Take it\n\nDone."))
    right(scene.ask("@agent update"))
    told = scene.told()[-1]
    assert "- `logo.bin`: **left as git merged it**, the version of `half`. The agent" in told
    assert "not verified:** it contains a conflict that the agent did not edit." in told
    assert "resolved them" not in told


def test_what_the_agent_calls_unfinished_is_not_merged(scene: UpdateScene) -> None:
    head, _ = scene.conflict()
    scene.endpoint.script(bash(BOTH), finish("I can't tell which one is right.", completed=False))
    done = scene.ask("@agent update")
    assert done.exit_code == 5, done.stdout
    assert scene.tip() == head


def test_the_resolution_of_a_conflict_can_be_to_leave_what_is_there(scene: UpdateScene) -> None:
    scene.github.commit(UPSTREAM, "half", {"lines.py": OURS}, "ten")
    scene.github.commit(UPSTREAM, "main", {"lines.py": None}, "gone")
    scene.endpoint.script(finish("The file is still needed."))
    right(scene.ask("@agent update"))
    assert len(scene.parents()) == 2 and "as the pull" in scene.git("show", "half:lines.py")


def smuggled(scene: UpdateScene, *answers: Answer) -> str:
    head, _ = scene.conflict()
    scene.endpoint.script(bash(BOTH), *answers, RESOLVED)
    done = scene.ask("@agent update")
    assert done.exit_code == 5, done.stdout
    assert scene.tip() == head
    return scene.told()[-1]


def test_a_merge_does_not_carry_an_edit_of_a_workflow(scene: UpdateScene) -> None:
    told = smuggled(scene, bash(f"echo 'run: evil' >> {WORKFLOW}"))
    assert WORKFLOW in told and "protected" in told


def test_a_merge_does_not_take_a_workflow_of_the_base_away(scene: UpdateScene) -> None:
    assert WORKFLOW in smuggled(scene, bash(f"rm {WORKFLOW}"))


def test_a_merge_does_not_put_a_link_in_the_place_of_the_workflows(scene: UpdateScene) -> None:
    link = (
        "mkdir w; mv .github/workflows/* w; rmdir .github/workflows; ln -s ../w .github/workflows"
    )
    assert "protected" in smuggled(scene, bash(link))


def test_rewriting_the_sandboxs_history_does_not_change_what_is_judged(scene: UpdateScene) -> None:
    amend = (
        f"echo evil >> {WORKFLOW}; git -c user.name=x -c user.email=x@x commit -qam evil; "
        "git update-ref HEAD HEAD^1; rm -rf .git/hooks"
    )
    assert WORKFLOW in smuggled(scene, bash(amend))


def in_workflow(scene: UpdateScene) -> tuple[str, str]:
    scene.github.commit(UPSTREAM, "main", {WORKFLOW: LINES})
    scene.github.commit(UPSTREAM, "half", {WORKFLOW: OURS}, "ci", "mona")
    head = scene.tip()
    return head, scene.github.commit(UPSTREAM, "main", {WORKFLOW: THEIRS}, "ci of main")


def test_a_conflict_in_a_workflow_may_be_ended_with_the_bases_own_file(scene: UpdateScene) -> None:
    head, main = in_workflow(scene)
    scene.endpoint.script(bash(f"git checkout HEAD^2 -- {WORKFLOW}"), RESOLVED)
    right(scene.ask("@agent update"))
    assert scene.parents() == [head, main]
    assert scene.git("show", f"half:{WORKFLOW}") == THEIRS.strip()


def test_a_conflict_in_a_workflow_is_ended_no_other_way(scene: UpdateScene) -> None:
    """A whole run, because the policy has to know how the merge was made; test_merging.py has what
    counts as the base's own file."""
    head, _ = in_workflow(scene)
    scene.endpoint.script(bash(f"git checkout HEAD^1 -- {WORKFLOW}"), RESOLVED)
    done = scene.ask("@agent update")
    assert done.exit_code == 5, done.stdout
    assert scene.tip() == head and WORKFLOW in scene.told()[-1]


def test_a_change_beside_the_conflicts_is_told(scene: UpdateScene) -> None:
    scene.conflict()
    scene.endpoint.script(bash(f"{BOTH}; echo '# more' >> half.py"), RESOLVED)
    right(scene.ask("@agent update"))
    assert "Resolving the conflicts also changed files that had none: half.py" in scene.told()[-1]


def test_a_push_during_the_resolution_leads_to_a_pull_request_into_the_branch(
    scene: UpdateScene,
) -> None:
    scene.conflict()
    event = scene.event("@agent update")
    theirs = scene.github.commit(UPSTREAM, "half", {"more.py": "1\n"}, "more", "mona")
    scene.endpoint.script(bash(BOTH), RESOLVED)
    right(scene.action(event))
    assert scene.tip() == theirs
    beside = scene.pulls()[-1]
    assert beside.pull.base == "half"
    assert len(scene.parents(beside.pull.head)) == 2


def test_a_forks_pull_request_is_brought_up_to_date_there(scene: UpdateScene) -> None:
    pull = scene.from_fork()
    before = scene.tip(repository=FORK)
    main = scene.github.commit(UPSTREAM, "main", {"new.py": "x = 1\n"})
    right(scene.ask("@agent update", on=pull))
    assert scene.parents(repository=FORK) == [before, main]


def test_a_fork_that_can_not_be_pushed_to_costs_no_work(scene: UpdateScene) -> None:
    pull = scene.from_fork(editable=False)
    before, _ = scene.conflict(repository=FORK)
    done = scene.ask("@agent update", on=pull)
    assert done.exit_code == 5
    assert scene.endpoint.requests == [] and scene.tip(repository=FORK) == before
    assert "does not let maintainers edit" in scene.told(pull)[-1]


def test_an_issue_can_not_be_updated(scene: UpdateScene) -> None:
    done = scene.ask("@agent /update", on=scene.issue)
    assert done.exit_code == 5
    assert "only a pull request can be updated" in scene.told(scene.issue)[-1]


def test_a_resolved_merge_that_could_not_be_pushed_is_published_later(scene: UpdateScene) -> None:
    head, main = scene.conflict()
    scene.github.fail_next("*", r"git-receive-pack", 500, times=99)
    scene.endpoint.script(bash(BOTH), RESOLVED)
    failed = scene.ask(
        "@agent update", RESOLVER_KEEP_LOG="false", RESOLVER_RETRY_SECONDS="{github_writes: 0}"
    )
    assert failed.exit_code == 1 and scene.tip() == head
    scene.github.app.faults = type(scene.github.app.faults)()
    scene.github.commit(UPSTREAM, "main", {"later.py": "x = 1\n"})
    done = scene.line.call("publish", failed.output)
    assert done.exit_code == 0, done.stderr
    assert scene.parents() == [head, main]
    assert len(scene.endpoint.requests) == 2


def test_an_update_that_ended_at_a_limit_goes_on_from_its_log(scene: UpdateScene) -> None:
    head, main = scene.conflict()
    scene.endpoint.script(bash("echo looked"))
    limit = scene.ask("@agent update", **{"INPUT_MAX-ITERATIONS": "1"})
    assert limit.exit_code == 4 and scene.tip() == head
    scene.github.commit(UPSTREAM, "main", {"later.py": "x = 1\n"})
    scene.endpoint.script(bash(BOTH), RESOLVED)
    right(scene.ask("@agent continue +5 iterations"))
    assert scene.parents() == [head, main]
    assert len(scene.endpoint.requests) == 3


def test_a_fork_that_the_token_can_not_push_to_costs_no_work(scene: UpdateScene) -> None:
    pull = scene.from_fork()
    before, _ = scene.conflict(repository=FORK)
    scene.token = scene.github.token_for("resolver-bot", UPSTREAM)
    done = scene.ask("@agent update", on=pull, GITHUB_TOKEN=scene.token)
    assert done.exit_code == 5, done.stdout
    assert scene.endpoint.requests == [] and scene.tip(repository=FORK) == before
    assert "the token may not push there" in scene.told(pull)[-1]


def test_what_somebody_else_has_merged_meanwhile_is_not_told_as_ours(scene: UpdateScene) -> None:
    event = scene.event("@agent update")
    main = scene.github.commit(UPSTREAM, "main", {"new.py": "x = 1\n"})
    scene.github.force_push(UPSTREAM, "half", main)
    theirs = scene.github.commit(UPSTREAM, "half", {"half.py": "x = 1\n"}, "on main", "mona")
    done = scene.action(event)
    assert done.exit_code == 3, done.stdout
    assert scene.tip() == theirs and "Resolver merged" not in scene.told()[-1]


def test_a_merge_notifies_nobody_whom_a_branch_is_named_for(scene: UpdateScene) -> None:
    name = "@zoe/fix-#1"
    scene.github.commit(UPSTREAM, name, {"half.py": "x = 1\n"}, "Add half()", "mona")
    pull = scene.github.create_pull(UPSTREAM, name, "Add half()", "", author="mona")
    scene.github.commit(UPSTREAM, "main", {"new.py": "x = 1\n"})
    right(scene.ask("@agent update", on=pull))
    subject = scene.git("log", "-1", "--format=%s", f"refs/heads/{name}")
    assert subject.startswith("Merge branch 'main' into ")
    assert "@zoe" not in subject and "#1" not in subject
