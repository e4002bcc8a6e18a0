"""`resolver outcomes` on a repository with real git, whose pull requests ended in every way."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from resolver.cli.main import run
from resolver.github.comments.markers import run_marker
from resolver.github.comments.report import Ending
from resolver.runs.quotas.ledger_ref import REF
from tests.outcomes.scene import BOT, DAYS, PERSON, REPOSITORY, Scene, source
from tests.parts.github import GitHubServer

HOSTILE = "Add \x1b]0;owned\x07\x1b[2Jsplit ::error::x"


def populate(scene: Scene) -> None:
    github = scene.github
    for name in ("merge", "squash", "rebase", "rewritten", "half", "updated", "reverted", "again"):
        scene.open(name, labels=("bug 🐛",) if name == "merge" else ())
    scene.open("closed")
    scene.open("replaced")
    scene.open("split", title=HOSTILE)
    scene.record(*(scene.entry(name, 0.5) for name in ("merge", "half", "rewritten")),
                 scene.entry("closed", 1.5, "not_verified"))  # fmt: skip
    github.advance(3600)
    scene.commit("main", "other", "by a person", by=PERSON)
    github.add_review(scene.pulls["half"], "Please", PERSON, "CHANGES_REQUESTED")
    github.add_review(scene.pulls["half"], "A bot", "lint[bot]", "COMMENTED")
    github.advance(3600)
    scene.commit(scene.head_branch("half"), "half", "one", "two", "3", "4", by=PERSON)
    # a second commit of ours, so that squash and rebase differ
    for name in ("squash", "rebase"):
        lines = ("one", "two", "three", "four", "five")
        scene.commit(scene.head_branch(name), name, *lines, run="20261001-130000-abcdef")
    # a force push that has the same lines in another commit
    git = github.repository(REPOSITORY).git
    git.git("update-ref", "refs/heads/rebuilt", git.tip("main") or "")
    moved = scene.commit("rebuilt", "rewritten", "one", "two", "three", "four", by=PERSON)
    github.force_push(REPOSITORY, scene.head_branch("rewritten"), moved)
    # "Update branch"
    head = git.tip(scene.head_branch("updated")) or ""
    merged = git.merge(
        head, git.tip("main") or "", "merge", "Merge main", PERSON, github.world.now()
    )
    github.force_push(REPOSITORY, scene.head_branch("updated"), merged)
    github.advance(3600)
    for name in ("merge", "half", "updated", "reverted"):
        github.merge_pull(scene.pulls[name])
    for name in ("squash", "rewritten", "again"):
        github.merge_pull(scene.pulls[name], "squash")
    github.merge_pull(scene.pulls["rebase"], "rebase")
    github.close_pull(scene.pulls["closed"])
    github.close_pull(scene.pulls["replaced"])
    later(scene)


def later(scene: Scene) -> None:
    github = scene.github
    github.advance(DAYS)
    issue = scene.pulls["replaced"].body.rpartition("#")[2]  # type: ignore[union-attr]
    scene.commit("fix", "fixed", "by a person", by=PERSON)
    github.merge_pull(github.create_pull(REPOSITORY, "fix", "Mine", f"Fixes #{issue}", PERSON))
    github.commit(REPOSITORY, "main", {"reverted.py": None}, "Undo this", PERSON)
    scene.commit("main", "again", "one", "2", "three", "four", by=PERSON)
    scene.commit("main", "squash", "one", "2", "three", "four", "five", by="dependabot[bot]")
    github.advance(20 * DAYS)
    scene.commit("main", "merge", "long after the window", by=PERSON)
    scene.open("new")
    # strangers: our marker in a person's text, and a bot's branch that is not ours
    ours = scene.pulls["closed"].body
    scene.commit("agent/issue-1-mine", "mine", "x", by="eve")
    github.create_pull(REPOSITORY, "agent/issue-1-mine", "Eve's", ours, author="eve")
    scene.commit("chore/bump", "bump", "x")
    github.create_pull(REPOSITORY, "chore/bump", "Bump", ours, author=BOT)
    scene.commit("agent/unmarked", "unmarked", "x")
    github.create_pull(REPOSITORY, "agent/unmarked", "Unmarked", "", author=BOT)


def outcomes(scene: Scene, capsys: pytest.CaptureFixture[str], *options: str) -> Any:
    assert run(["outcomes", REPOSITORY, "--json", *options], scene.environment) == 0
    return json.loads(capsys.readouterr().out)


def test_each_pull_request_has_its_outcome(
    github: GitHubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = Scene(github)
    populate(scene)
    before = len(github.requests)
    data = outcomes(scene, capsys, "--save")
    requests = Counter(each.kind for each in github.requests[before:])
    by_number = {pull["number"]: pull for pull in data["pull_requests"]}
    found = {
        name: (pull["outcome"], pull["survived"], pull["durability"])
        for name, number in ((name, issue.number) for name, issue in scene.pulls.items())
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
    half = next(p for p in data["pull_requests"] if p["number"] == scene.pulls["half"].number)
    assert (half["rounds"], half["cost"]) == (1, 0.5)
    assert half["seconds_to_merge"] >= 3 * 3600
    summary = data["summary"]
    assert summary["acceptance"]["count"] == 8 and summary["acceptance"]["total"] == 10
    assert summary["held"] == {**summary["held"], "count": 6, "total": 8}
    assert summary["cost_per_merged"] == pytest.approx(1.0)
    verdicts = {each["name"]: each["acceptance"]["share"] for each in data["by_verdict"]}
    assert verdicts["verified"] == 1.0 and verdicts["not_verified"] == 0.0
    assert requests["rest"] == 1 and requests["graphql"] == 2
    assert requests["git"] <= 20


def test_lines_are_followed_where_git_can_and_unknown_elsewhere(
    github: GitHubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = Scene(github)
    for name in ("gone", "renamed", "rewritten"):
        scene.open(name)
    git = github.repository(REPOSITORY).git
    git.git("update-ref", "refs/heads/release", git.tip("main") or "")
    scene.open("lost")
    lost = scene.pulls["lost"].pull
    assert lost is not None
    lost.base = "release"
    gone = scene.entry("gone", 0.5).model_copy(update={"head": "f" * 40})
    scene.record(gone)
    github.advance(3600)
    for pull in scene.pulls.values():
        github.merge_pull(pull, "squash")
    github.advance(3600)
    lines = {"renamed.py": None, "moved.py": source("one", "two", "three", "four")}
    github.commit(REPOSITORY, "main", lines, "Move it", PERSON)
    scene.commit("main", "moved", "zero", "one", "two", "three", "four", by=PERSON)
    scene.commit("main", "rewritten", "one", by=PERSON)
    git.git("update-ref", "-d", "refs/heads/release")
    found = {
        pull["title"]: (
            pull["outcome"],
            pull["survived"],
            pull["durability"],
            pull["changed_lines"],
        )
        for pull in outcomes(scene, capsys)["pull_requests"]
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
    scene = Scene(github)
    scene.open("closed")
    github.close_pull(scene.pulls["closed"])
    first = outcomes(scene, capsys, "--save")
    before = len(github.requests)
    assert outcomes(scene, capsys) == first
    assert [each.kind for each in github.requests[before:] if each.kind != "git"] == ["rest"]


@pytest.mark.attack
def test_a_spoiled_ledger_is_not_replaced(
    github: GitHubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody destroys the quota ledger: recording outcomes does not start it anew for bots."""
    scene = Scene(github)
    scene.open("closed")
    github.close_pull(scene.pulls["closed"])
    git = github.repository(REPOSITORY).git
    spoiled = git.tip("main") or ""
    git.git("update-ref", REF, spoiled)
    assert outcomes(scene, capsys, "--save")["summary"]["acceptance"]["total"] == 1
    assert git.ref(REF) == spoiled


@pytest.mark.attack
def test_a_strangers_pull_request_with_our_marker_does_not_count(
    github: GitHubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody copies Resolver's hidden marker into a pull request: it is none of Resolver's."""
    scene = Scene(github)
    marker = run_marker("k", Ending.PULL_REQUEST, 1, "20261001-120000-abcdef")
    scene.commit("agent/issue-1-mine", "mine", "x", run="20261001-120000-abcdef", by="eve")
    github.create_pull(REPOSITORY, "agent/issue-1-mine", "Eve's", marker, author="eve")
    data = outcomes(scene, capsys, "--save")
    assert data["pull_requests"] == [] and data["summary"]["acceptance"]["share"] is None
    assert scene.ledger_ref.read().pull_requests == ()


@pytest.mark.attack
def test_the_table_is_safe_to_print(
    github: GitHubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The title of a pull request controls the terminal: the table of outcomes shows its text."""
    scene = Scene(github)
    scene.open("split", title=HOSTILE)
    assert run(["outcomes", REPOSITORY], scene.environment) == 0
    text = capsys.readouterr().out
    assert "no acceptance rate" in text and "ignored" in text and "Add split" in text
    assert "\x1b" not in text and "\x07" not in text


def test_a_sweep_records_outcomes_and_shows_them_on_the_dashboard(
    github: GitHubServer, tmp_path: Path
) -> None:
    scene = Scene(github)
    scene.open("closed")
    github.close_pull(scene.pulls["closed"])
    model = {"LLM_MODEL": "openai/scripted", "LLM_API_KEY": "k", "RESOLVER_DASHBOARD": "true"}
    assert run(["sweep", REPOSITORY, "--output", str(tmp_path)], scene.environment | model) == 0
    assert [pull.outcome for pull in scene.ledger_ref.read().pull_requests] == ["closed"]
    issues = github.repository(REPOSITORY).issues.values()
    (dashboard,) = [issue for issue in issues if issue.title == "Resolver's dashboard"]
    assert "**0%** accepted: 0 of 1 merged or closed" in (dashboard.body or "")
