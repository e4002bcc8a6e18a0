"""`resolver outcomes` on a repository with real git, whose pull requests ended in every way."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from resolver.cli.main import run
from resolver.github.comments.markers import run_marker
from resolver.github.comments.report import Ending
from resolver.storage.ledger_ref import REF
from tests.outcomes.scenario import BOT, DAYS, PERSON, REPOSITORY, Scenario, source
from tests.parts.github import GitHubServer

HOSTILE = "Add \x1b]0;owned\x07\x1b[2Jsplit ::error::x"


def populate(scenario: Scenario) -> None:
    github = scenario.github
    for name in ("merge", "squash", "rebase", "rewritten", "half", "updated", "reverted", "again"):
        scenario.open(name, labels=("bug 🐛",) if name == "merge" else ())
    scenario.open("closed")
    scenario.open("replaced")
    scenario.open("split", title=HOSTILE)
    scenario.record(*(scenario.entry(name, 0.5) for name in ("merge", "half", "rewritten")),
                 scenario.entry("closed", 1.5, "not_verified"))  # fmt: skip
    github.advance(3600)
    scenario.commit("main", "other", "by a person", by=PERSON)
    github.add_review(scenario.pulls["half"], "Please", PERSON, "CHANGES_REQUESTED")
    github.add_review(scenario.pulls["half"], "A bot", "lint[bot]", "COMMENTED")
    github.advance(3600)
    scenario.commit(scenario.head_branch("half"), "half", "one", "two", "3", "4", by=PERSON)
    # a second commit of ours, so that squash and rebase differ
    for name in ("squash", "rebase"):
        lines = ("one", "two", "three", "four", "five")
        scenario.commit(scenario.head_branch(name), name, *lines, run="20261001-130000-abcdef")
    # a force push that has the same lines in another commit
    git = github.repository(REPOSITORY).git
    git.git("update-ref", "refs/heads/rebuilt", git.tip("main") or "")
    moved = scenario.commit("rebuilt", "rewritten", "one", "two", "three", "four", by=PERSON)
    github.force_push(REPOSITORY, scenario.head_branch("rewritten"), moved)
    # "Update branch"
    head = git.tip(scenario.head_branch("updated")) or ""
    merged = git.merge(
        head, git.tip("main") or "", "merge", "Merge main", PERSON, github.world.now()
    )
    github.force_push(REPOSITORY, scenario.head_branch("updated"), merged)
    github.advance(3600)
    for name in ("merge", "half", "updated", "reverted"):
        github.merge_pull(scenario.pulls[name])
    for name in ("squash", "rewritten", "again"):
        github.merge_pull(scenario.pulls[name], "squash")
    github.merge_pull(scenario.pulls["rebase"], "rebase")
    github.close_pull(scenario.pulls["closed"])
    github.close_pull(scenario.pulls["replaced"])
    later(scenario)


def later(scenario: Scenario) -> None:
    github = scenario.github
    github.advance(DAYS)
    issue = scenario.pulls["replaced"].body.rpartition("#")[2]  # type: ignore[union-attr]
    scenario.commit("fix", "fixed", "by a person", by=PERSON)
    github.merge_pull(github.create_pull(REPOSITORY, "fix", "Mine", f"Fixes #{issue}", PERSON))
    github.commit(REPOSITORY, "main", {"reverted.py": None}, "Undo this", PERSON)
    scenario.commit("main", "again", "one", "2", "three", "four", by=PERSON)
    scenario.commit("main", "squash", "one", "2", "three", "four", "five", by="dependabot[bot]")
    github.advance(20 * DAYS)
    scenario.commit("main", "merge", "long after the window", by=PERSON)
    scenario.open("new")
    # strangers: our marker in a person's text, and a bot's branch that is not ours
    body = scenario.pulls["closed"].body
    scenario.commit("agent/issue-1-mine", "mine", "x", by="eve")
    github.create_pull(REPOSITORY, "agent/issue-1-mine", "Eve's", body, author="eve")
    scenario.commit("chore/bump", "bump", "x")
    github.create_pull(REPOSITORY, "chore/bump", "Bump", body, author=BOT)
    scenario.commit("agent/unmarked", "unmarked", "x")
    github.create_pull(REPOSITORY, "agent/unmarked", "Unmarked", "", author=BOT)


def outcomes(scenario: Scenario, capsys: pytest.CaptureFixture[str], *options: str) -> Any:
    assert run(["outcomes", REPOSITORY, "--json", *options], scenario.environment) == 0
    return json.loads(capsys.readouterr().out)


def test_each_pull_request_has_its_outcome(
    github: GitHubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = Scenario(github)
    populate(scenario)
    before = len(github.requests)
    data = outcomes(scenario, capsys, "--save")
    requests = Counter(request.kind for request in github.requests[before:])
    by_number = {pull["number"]: pull for pull in data["pull_requests"]}
    found = {
        name: (pull["outcome"], pull["survived"], pull["durability"])
        for name, number in ((name, issue.number) for name, issue in scenario.pulls.items())
        for pull in [by_number.pop(number)]
    }
    assert by_number == {}, "only Resolver's own pull requests count"
    assert found == {
        "merge": ("merged", 1.0, "held"),
        "squash": ("merged", 1.0, "held"),
        "rebase": ("merged", 1.0, "held"),
        "rewritten": ("merged", 1.0, "held"),
        "updated": ("merged", 1.0, "held"),
        "half": ("merged_with_edits", 0.5, "held"),
        "reverted": ("merged", 1.0, "reverted"),
        "again": ("merged", 1.0, "changed"),
        "closed": ("closed", None, ""),
        "replaced": ("superseded", None, ""),
        "split": ("ignored", None, ""),
        "new": ("open", None, ""),
    }
    half = next(p for p in data["pull_requests"] if p["number"] == scenario.pulls["half"].number)
    assert (half["rounds"], half["cost"]) == (1, 0.5)
    assert half["seconds_to_merge"] >= 3 * 3600
    summary = data["summary"]
    assert summary["acceptance"]["count"] == 8 and summary["acceptance"]["total"] == 10
    assert summary["held"] == {**summary["held"], "count": 6, "total": 8}
    assert summary["cost_per_merged"] == pytest.approx(1.0)
    verdicts = {row["name"]: row["acceptance"]["share"] for row in data["by_verdict"]}
    assert verdicts["verified"] == 1.0 and verdicts["not_verified"] == 0.0
    assert requests["rest"] == 1 and requests["graphql"] == 2
    assert requests["git"] <= 20


def test_lines_are_followed_where_git_can_and_unknown_elsewhere(
    github: GitHubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = Scenario(github)
    for name in ("gone", "renamed", "rewritten"):
        scenario.open(name)
    git = github.repository(REPOSITORY).git
    git.git("update-ref", "refs/heads/release", git.tip("main") or "")
    scenario.open("lost")
    lost = scenario.pulls["lost"].pull
    assert lost is not None
    lost.base = "release"
    gone = scenario.entry("gone", 0.5).model_copy(update={"head": "f" * 40})
    scenario.record(gone)
    github.advance(3600)
    for pull in scenario.pulls.values():
        github.merge_pull(pull, "squash")
    github.advance(3600)
    lines = {"renamed.py": None, "moved.py": source("one", "two", "three", "four")}
    github.commit(REPOSITORY, "main", lines, "Move it", PERSON)
    scenario.commit("main", "moved", "zero", "one", "two", "three", "four", by=PERSON)
    scenario.commit("main", "rewritten", "one", by=PERSON)
    git.git("update-ref", "-d", "refs/heads/release")
    found = {
        pull["title"]: (
            pull["outcome"],
            pull["survived"],
            pull["durability"],
            pull["changed_lines"],
        )
        for pull in outcomes(scenario, capsys)["pull_requests"]
    }
    assert found == {
        "Add gone": ("merged_with_edits", None, "held", 0),
        "Add renamed": ("merged", 1.0, "held", 0),
        "Add rewritten": ("merged", 1.0, "changed", 3),
        "Add lost": ("merged", 1.0, "unknown", 0),
    }


def test_final_outcomes_are_not_looked_up_again(
    github: GitHubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = Scenario(github)
    scenario.open("closed")
    github.close_pull(scenario.pulls["closed"])
    first = outcomes(scenario, capsys, "--save")
    before = len(github.requests)
    assert outcomes(scenario, capsys) == first
    assert [request.kind for request in github.requests[before:] if request.kind != "git"] == [
        "rest"
    ]


@pytest.mark.attack
def test_a_spoiled_ledger_is_not_replaced(
    github: GitHubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody destroys the quota ledger: recording outcomes does not start it anew for bots."""
    scenario = Scenario(github)
    scenario.open("closed")
    github.close_pull(scenario.pulls["closed"])
    git = github.repository(REPOSITORY).git
    spoiled = git.tip("main") or ""
    git.git("update-ref", REF, spoiled)
    assert outcomes(scenario, capsys, "--save")["summary"]["acceptance"]["total"] == 1
    assert git.ref(REF) == spoiled


@pytest.mark.attack
def test_a_strangers_pull_request_with_our_marker_does_not_count(
    github: GitHubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody copies Resolver's hidden marker into a pull request: it is none of Resolver's."""
    scenario = Scenario(github)
    marker = run_marker("k", Ending.PULL_REQUEST, 1, "20261001-120000-abcdef")
    scenario.commit("agent/issue-1-mine", "mine", "x", run="20261001-120000-abcdef", by="eve")
    github.create_pull(REPOSITORY, "agent/issue-1-mine", "Eve's", marker, author="eve")
    data = outcomes(scenario, capsys, "--save")
    assert data["pull_requests"] == [] and data["summary"]["acceptance"]["share"] is None
    assert scenario.ledger_ref.read().pull_requests == ()


@pytest.mark.attack
def test_the_table_is_safe_to_print(
    github: GitHubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The title of a pull request controls the terminal: the table of outcomes shows its text."""
    scenario = Scenario(github)
    scenario.open("split", title=HOSTILE)
    assert run(["outcomes", REPOSITORY], scenario.environment) == 0
    text = capsys.readouterr().out
    assert "no acceptance rate" in text and "ignored" in text and "Add split" in text
    assert "\x1b" not in text and "\x07" not in text


def test_a_sweep_records_outcomes_and_shows_them_on_the_dashboard(
    github: GitHubServer, tmp_path: Path
) -> None:
    scenario = Scenario(github)
    scenario.open("closed")
    github.close_pull(scenario.pulls["closed"])
    model = {"LLM_MODEL": "openai/scripted", "LLM_API_KEY": "k", "RESOLVER_DASHBOARD": "true"}
    assert run(["sweep", REPOSITORY, "--output", str(tmp_path)], scenario.environment | model) == 0
    assert [pull.outcome for pull in scenario.ledger_ref.read().pull_requests] == ["closed"]
    issues = github.repository(REPOSITORY).issues.values()
    (dashboard,) = [issue for issue in issues if issue.title == "Resolver's dashboard"]
    assert "**0%** accepted: 0 of 1 merged or closed" in (dashboard.body or "")
