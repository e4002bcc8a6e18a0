"""What one run asks of GitHub, request by request."""

import re
from collections import Counter

from scripts.structure import ProcessRecorder
from tests.git.scenario import plain_git
from tests.parts.github_server.exchange import Exchange
from tests.parts.runs import bash, finish
from tests.runs.test_github import FIX, SUMMARY, Scenario, scenario

__all__ = ["scenario"]

SELDOM = {"RESOLVER_COMMENT_INTERVAL_SECONDS": "{commands: 600, progress: 600, writes: 0}"}
"""Looks for comments and reports of progress are as many as the run is long: none are counted."""

API = (
    (r"GET /user$", "who we are", 1),
    (r"GET /repos/octo/calc/pulls\?.*state=all", "pull requests of an earlier attempt", 1),
    (r"GET .*/issues/1/comments\?.*since=", "our comment of an earlier attempt", 1),
    (r"GET .*/collaborators/mona/permission$", "whether the requester may do so, and still may", 2),
    (r"POST .*/reactions$", "the sign that the request was seen", 1),
    (r"GET /repos/octo/calc$", "the repository and its default branch", 1),
    (r"GET .*/issues/1$", "the issue", 1),
    (
        r"GET .*/issues/1/comments\?per_page=100$",
        "its comments; comments of this and of dead runs",
        2,
    ),
    (r"POST /graphql", "refs and the owner's repositories; references; the request again", 3),
    (r"POST .*/issues/1/comments$", "the run's comment", 1),
    (r"GET .*/matching-refs/heads/agent/issue-1-$", "open work on the issue", 1),
    (r"GET .*/matching-refs/heads/agent/issue-1-add-", "names of branches that are taken", 1),
    (r"GET /repos/octo/.github$", "the owner's pull request template", 1),
    (r"GET .*/pulls\?.*head=", "a pull request of the branch", 1),
    (r"POST .*/pulls$", "the pull request", 1),
    (r"PATCH .*/issues/comments/\d+$", "how the run ended", 1),
)
GIT = (
    (r"calc\.git/info/refs\?service=git-upload-pack", "the commits", 1),
    (r"calc\.git/git-upload-pack", "their objects", 1),
    (r"calc\.git/info/refs\?service=git-receive-pack", "ledger, branch, ledger with log", 3),
    (r"calc\.git/git-receive-pack", "what is pushed", 3),
)
MOST_PROCESSES = 35
"""Processes on the host. One is the action execution server, the others are git."""

Table = tuple[tuple[str, str, int], ...]


def shown(made: Exchange) -> str:
    path = "/graphql" if made.kind == "graphql" else made.path
    query = "&".join(f"{name}={value}" for name, value in sorted(made.query.items()))
    return f"{made.method} {path}" + (f"?{query}" if query else "")


def purposes(made: list[str], table: Table) -> Counter[str]:
    """How many requests are for what; one that is for nothing known stands for itself."""
    return Counter(
        next((what for pattern, what, _ in table if re.search(pattern, each)), each)
        for each in made
    )


def test_a_mention_becomes_a_pull_request_with_few_requests_and_processes(
    scenario: Scenario,
) -> None:
    scenario.endpoint.script(bash("cat calc.py"), FIX, bash("python3 calc.py"), finish(SUMMARY))
    recorder = ProcessRecorder()
    recorder.start()
    done = scenario.action(scenario.github.event_issue_comment(scenario.mention()), **SELDOM)
    recorder.stop()
    assert done.exit_code == 0, done.stdout + done.stderr
    api = [shown(each) for each in scenario.github.requests if each.kind in {"rest", "graphql"}]
    git = [shown(each) for each in scenario.github.requests if each.kind == "git"]
    assert purposes(api, API) == {what: many for _, what, many in API}
    assert purposes(git, GIT) == {what: many for _, what, many in GIT}
    assert len(api) <= 20
    assert len(git) <= 10
    programs = Counter(recorder.processes)
    assert programs["git"] > 0
    assert len(recorder.processes) <= MOST_PROCESSES, programs


def test_the_commit_graph_is_fetched_if_the_history_has_merges(scenario: Scenario) -> None:
    """A whole run, because the history is read by one stage and used by another."""
    path = scenario.github.repository("octo/calc").git.path
    tree = "main^{tree}"
    side = plain_git(path, "commit-tree", tree, "-p", "main", "-m", "Work")
    merge = plain_git(path, "commit-tree", tree, "-p", "main", "-p", side, "-m", "Merge")
    plain_git(path, "update-ref", "refs/heads/main", merge)
    scenario.endpoint.script(bash("cat calc.py"), FIX, finish(SUMMARY))
    done = scenario.action(scenario.github.event_issue_comment(scenario.mention()), **SELDOM)
    assert done.exit_code == 0, done.stdout + done.stderr
    requests = [shown(made) for made in scenario.github.requests if made.kind == "git"]
    assert sum("git-upload-pack" in request for request in requests) == 4
    assert len(requests) <= 10


def test_later_runs_of_a_repository_take_as_few_requests_of_git(scenario: Scenario) -> None:
    for _ in range(2):
        scenario.issue = scenario.github.create_issue(
            "octo/calc", "2 + 2", "It gives 0.", author="zoe"
        )
        scenario.endpoint.script(bash("cat calc.py"), FIX, finish(SUMMARY))
        before = len(scenario.github.requests)
        done = scenario.action(scenario.github.event_issue_comment(scenario.mention()), **SELDOM)
        assert done.exit_code == 0, done.stdout + done.stderr
    git = [shown(each) for each in scenario.github.requests[before:] if each.kind == "git"]
    assert purposes(git, GIT) == {what: many for _, what, many in GIT}
    refs = scenario.github.repository("octo/calc").git.refs("refs/resolver/")
    assert len([name for name in refs if name.startswith("refs/resolver/runs/")]) == 2
