"""Ceilings, chains of bots and the dashboard, through the Action's door on the test GitHub."""

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from resolver.github.comments.markers import DASHBOARD
from resolver.github.events.quota_ledger import QuotaLedger, read_ledger
from resolver.runs.quotas.ledger_ref import DAMAGED, FILE, REF
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import Answer, ModelEndpoint, error
from tests.parts.runs import CommandLine, Ended, bash, finish
from tests.runs.test_github import FIX, REPOSITORY, SUMMARY, Scene


class GuardedScene(Scene):
    """A scene whose ledger can be looked at."""

    def __init__(self, github: GitHubServer, line: CommandLine, endpoint: ModelEndpoint) -> None:
        super().__init__(github, line, endpoint)
        line.environment |= {
            "RESOLVER_BOT_LOGIN": "resolver-bot",
            "RESOLVER_COMMENT_INTERVAL_SECONDS": "{commands: 1, writes: 0}",
            "RESOLVER_KEEP_LOG": "false",
        }

    def ledger(self) -> QuotaLedger:
        git = self.repository.git
        if not git.text("for-each-ref", REF).strip():
            return QuotaLedger()
        return read_ledger(
            git.text("cat-file", "blob", f"{REF}:{FILE}").encode(), datetime.now(UTC)
        )

    def ask(self, author: str = "mona", **environment: str) -> Ended:
        return self.action(self.github.event_issue_comment(self.mention(author)), **environment)

    def answer_once(self, *more: Any) -> None:
        self.endpoint.script(*more, finish("There is nothing to do.", completed=True))

    def dashboards(self) -> list[Issue]:
        issues = self.repository.issues.values()
        return [each for each in issues if (each.body or "").startswith(DASHBOARD)]

    def tick(
        self, words: str, sender: str = "mona", *, apart: bool = False, **environment: str
    ) -> Ended:
        """A person ticks the first box whose line holds the words. apart: the job of the tick is
        a process of its own, beside the run at work here."""
        [dashboard] = self.dashboards()
        before = dashboard.body or ""
        lines = before.splitlines()
        at = next(n for n, line in enumerate(lines) if line.startswith("- [ ]") and words in line)
        lines[at] = lines[at].replace("- [ ]", "- [x]")
        self.github.edit_issue(dashboard, body="\n".join(lines))
        event = self.github.event_issues(dashboard, "edited", sender)
        event["changes"] = {"body": {"from": before}}
        if not apart:
            return self.action(event, "issues", **environment)
        path = self.line.folder / "tick.json"
        path.write_text(json.dumps(event))
        (self.line.folder / "tick").mkdir()
        return self.line.run(
            "action",
            GITHUB_EVENT_NAME="issues",
            GITHUB_EVENT_PATH=str(path),
            GITHUB_WORKSPACE=str(self.line.folder / "tick"),
            **environment,
        )


@pytest.fixture
def scene(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[GuardedScene]:
    yield GuardedScene(github, command_line, model_endpoint)


def test_a_run_is_booked_before_its_work_and_settled_after_it(scene: GuardedScene) -> None:
    seen: list[QuotaLedger] = []
    answers = iter([FIX, finish(SUMMARY)])

    def answer(_: Any) -> Answer:
        seen.append(scene.ledger())
        return next(answers)

    scene.endpoint.answer_with(answer)
    done = scene.ask()
    assert done.exit_code == 0, done.stdout + done.stderr
    [at_work] = seen[0].runs
    assert (at_work.ending, at_work.reserved, at_work.user) == ("", 5.0, "mona")
    [run] = scene.ledger().runs
    assert run.run == done.outcome["run"]
    assert (run.ending, run.reserved, run.job) == ("pull_request", 0.0, 77)
    assert run.cost == pytest.approx(done.outcome["cost"])
    assert run.opened == done.outcome["pull_request"]["number"]
    assert run.thread == scene.issue.number
    text = scene.repository.git.text("cat-file", "blob", f"{REF}:{FILE}")
    for words in ("add add", "Make", "fix this", "canary", "octo"):
        assert words not in text, "the ledger holds no words of anybody"


def test_a_thread_that_has_had_its_runs_is_refused_once_and_then_in_silence(
    scene: GuardedScene,
) -> None:
    scene.answer_once()
    ceiling = {"RESOLVER_RUN_QUOTAS": "{thread_day: 1}"}
    assert scene.ask(**ceiling).exit_code == 3
    asked, said = len(scene.endpoint.requests), len(scene.bot_comments())
    first = scene.ask(**ceiling)
    assert first.exit_code == 5
    assert len(scene.bot_comments()) == said + 1
    told = scene.bot_comments()[-1]
    assert "this thread has had 1 run today, and the limit is 1" in told
    assert "Ask again on or after" in told
    assert "`run_quotas: {thread_day: ...}`" in told
    assert "get no reply" in told
    pushed = scene.repository.git.text("rev-parse", REF)
    for _ in range(2):
        again = scene.ask(**ceiling)
        assert again.exit_code == 5
        assert "and the limit is 1" in again.stdout  # the job's log says it all the same
    assert len(scene.bot_comments()) == said + 1
    assert scene.repository.git.text("rev-parse", REF) == pushed
    assert len(scene.endpoint.requests) == asked


def test_a_request_that_is_delivered_again_is_booked_once(scene: GuardedScene) -> None:
    event = scene.github.event_issue_comment(scene.mention())
    ceiling = {"RESOLVER_RUN_QUOTAS": "{thread_day: 1}"}
    scene.endpoint.script(error(400), finish("I can't.", completed=False))
    assert scene.action(event, **ceiling).exit_code == 1
    done = scene.action(event, **ceiling)
    assert done.exit_code != 5, done.stdout
    [run] = scene.ledger().runs
    assert run.attempts == 2


def test_what_is_left_of_the_money_bounds_the_run(scene: GuardedScene) -> None:
    scene.endpoint.script(FIX, finish(SUMMARY))
    done = scene.ask(RESOLVER_COST_QUOTAS="{user_day: 0.5}")
    assert done.exit_code == 0, done.stdout
    assert "reduced to \\$0.50" in scene.bot_comments()[-1]


def test_commands_are_neither_booked_nor_refused(scene: GuardedScene) -> None:
    comment = scene.mention(text="@agent help")
    done = scene.action(scene.github.event_issue_comment(comment))
    assert done.exit_code == 0, done.stdout + done.stderr
    assert scene.ledger() == QuotaLedger()


def test_without_ceilings_nothing_is_kept(scene: GuardedScene) -> None:
    scene.answer_once()
    none = str(dict.fromkeys((f"{whose}_day" for whose in WHOSE), 0))
    off = {
        "RESOLVER_RUN_QUOTAS": none,
        "RESOLVER_COST_QUOTAS": none,
        "RESOLVER_AUTOMATIC_RUN_LIMITS": "{bot_chain: 0}",
    }
    assert scene.ask(**off).exit_code == 3
    assert scene.ledger() == QuotaLedger()


WHOSE = ("thread", "user", "repository")


def test_a_run_that_publishes_nothing_is_not_booked(scene: GuardedScene) -> None:
    scene.answer_once()
    scene.resolve("--no-publish")
    assert scene.ledger() == QuotaLedger()
    assert scene.github.writes() == []


def test_bots_that_answer_each_other_are_stopped_and_a_person_lets_them_go_on(
    scene: GuardedScene,
) -> None:
    scene.github.add_user("ci[bot]", type="Bot")
    listened = {
        "RESOLVER_ALLOWED_USERS": "ci[bot]",
        "RESOLVER_AUTOMATIC_RUN_LIMITS": "{bot_chain: 2}",
    }
    for _ in range(2):
        scene.answer_once()
        assert scene.ask("ci[bot]", **listened).exit_code == 3
    asked = len(scene.endpoint.requests)
    stopped = scene.ask("ci[bot]", **listened)
    assert stopped.exit_code == 5
    assert len(scene.endpoint.requests) == asked
    assert "answered each other 2 times here" in scene.bot_comments()[-1]
    scene.github.advance(2)
    scene.mention("zoe", "Please go on, both of you.")
    scene.answer_once()
    assert scene.ask("ci[bot]", **listened).exit_code == 3


def test_a_token_that_may_not_push_works_with_what_it_can_read(scene: GuardedScene) -> None:
    permissions = {"metadata": "read", "contents": "read", "issues": "write"}
    token = scene.github.token_for(
        "resolver-bot", REPOSITORY, permissions={**permissions, "pull_requests": "write"}
    )
    scene.answer_once()
    done = scene.ask(GITHUB_TOKEN=token)
    assert done.exit_code == 3, done.stdout + done.stderr
    assert "the quota ledger could not be updated" in done.stderr
    assert scene.ledger() == QuotaLedger()


def spoiled(scene: GuardedScene) -> None:
    """Somebody who may push puts something else in the ledger's place."""
    git = scene.repository.git
    command = ["git", "-C", str(git.path), "update-ref", REF, git.tip("main")]
    subprocess.run(command, check=True, capture_output=True)


def test_a_spoiled_ledger_stops_bots_and_a_person_starts_it_anew(scene: GuardedScene) -> None:
    scene.github.add_user("ci[bot]", type="Bot")
    spoiled(scene)
    done = scene.ask("ci[bot]", RESOLVER_ALLOWED_USERS="ci[bot]")
    assert done.exit_code == 5
    assert "can't be read" in done.stdout
    assert not scene.endpoint.requests
    scene.answer_once()
    assert scene.ask().exit_code == 3
    assert len(scene.ledger().runs) == 1
    assert scene.repository.git.text("for-each-ref", DAMAGED).strip()


DASH = {"RESOLVER_DASHBOARD": "true"}


def test_the_dashboard_does_not_start_a_spoiled_ledger_anew_for_a_bot(scene: GuardedScene) -> None:
    scene.github.add_user("ci[bot]", type="Bot")
    spoiled(scene)
    pushed = scene.repository.git.text("rev-parse", REF)
    for _ in range(2):
        done = scene.ask("ci[bot]", RESOLVER_ALLOWED_USERS="ci[bot]", **DASH)
        assert done.exit_code == 5
    assert "can't be read" in done.stdout
    assert not scene.endpoint.requests
    assert scene.repository.git.text("rev-parse", REF) == pushed


def test_the_dashboard_is_made_once_and_written_after_each_run(scene: GuardedScene) -> None:
    scene.endpoint.script(FIX, finish(SUMMARY))
    assert scene.ask(**DASH).exit_code == 0
    [dashboard] = scene.dashboards()
    assert dashboard.author.login == "resolver-bot"
    number = scene.ledger().place.number if scene.ledger().place else 0
    assert number == dashboard.number
    body = dashboard.body or ""
    [pull] = scene.pulls()
    assert f"[#{scene.issue.number}](../issues/{scene.issue.number})" in body
    assert f"[#{pull.number}](../pull/{pull.number})" in body
    assert "[log](../actions/runs/77)" in body
    assert "✅ pull request" in body
    assert "| Today | 1 | $0.0002 | 0 |" in body
    assert "@" not in body.replace("`@agent`", "")
    scene.github.edit_issue(dashboard, body=f"{body}\n\nbuy my coins")
    scene.answer_once()
    other = scene.github.create_issue(REPOSITORY, "Another", "x", author="zoe")
    comment = scene.github.add_comment(other, "@agent fix", "mona")
    assert scene.action(scene.github.event_issue_comment(comment), **DASH).exit_code == 3
    [dashboard] = scene.dashboards()
    assert "| Today | 2 |" in (dashboard.body or "")
    assert "coins" not in (dashboard.body or ""), "what people write there is written over"


def test_a_run_at_work_is_shown_with_a_box_and_stops_when_a_person_ticks_it(
    scene: GuardedScene,
) -> None:
    shown: list[str] = []

    def answer(_: Any) -> Answer:
        if not shown:
            [dashboard] = scene.dashboards()
            shown.append(dashboard.body or "")
            shown.append(scene.tick("**Stop**", apart=True, **DASH).stdout)
        return bash("sleep 1")

    scene.endpoint.answer_with(answer)
    done = scene.ask(**DASH)
    assert "- [ ] <!-- resolver:box stop run=" in shown[0]
    assert "reads the stop request from the ledger" in shown[1]
    assert done.outcome["state"] == "stopped", done.stdout
    assert "mona" in done.outcome["reason"]
    [dashboard] = scene.dashboards()
    body = dashboard.body or ""
    assert "**Stop**" not in body
    assert "- [x]" not in body
    assert "was stopped" in body


def failed(scene: GuardedScene) -> None:
    scene.endpoint.script(error(400))
    assert scene.ask(**DASH).exit_code == 1


def test_a_failed_run_is_gone_on_with_when_a_person_ticks_its_box(scene: GuardedScene) -> None:
    failed(scene)
    scene.endpoint.script(FIX, finish(SUMMARY))
    done = scene.tick("**Continue**", **DASH)
    assert done.exit_code == 0, done.stdout + done.stderr
    [pull] = scene.pulls()
    assert pull.title == "Make add add"
    [dashboard] = scene.dashboards()
    assert "**Continue**" not in (dashboard.body or "")
    assert len(scene.ledger().runs) == 2


def test_a_box_for_work_on_our_own_pull_request_is_about_that(scene: GuardedScene) -> None:
    scene.endpoint.script(FIX, finish(SUMMARY))
    assert scene.ask(**DASH).exit_code == 0
    [pull] = scene.pulls()
    comment = scene.github.add_comment(pull, "@agent also sign it", "mona")
    scene.endpoint.script(error(400))
    assert scene.action(scene.github.event_issue_comment(comment), **DASH).exit_code == 1
    scene.answer_once()
    done = scene.tick("**Continue**", **DASH)
    assert "does not belong to the dashboard" not in done.stdout
    assert [run.thread for run in scene.ledger().runs[1:]] == [pull.number, pull.number]


def test_a_box_that_is_ticked_by_somebody_who_may_not_is_unticked_in_silence(
    scene: GuardedScene,
) -> None:
    who = "tess"
    scene.github.grant(who, REPOSITORY, "triage")
    failed(scene)
    asked, said = len(scene.endpoint.requests), len(scene.bot_comments())
    done = scene.tick("**Continue**", who, **DASH)
    assert done.exit_code == 0
    assert f"The box is not for {who}" in done.stdout
    assert len(scene.endpoint.requests) == asked
    assert len(scene.bot_comments()) == said
    [dashboard] = scene.dashboards()
    assert "- [x]" not in (dashboard.body or "")
    assert "**Continue**" in (dashboard.body or "")


def test_a_box_on_another_issue_starts_nothing(scene: GuardedScene) -> None:
    """Somebody copies the dashboard into an issue of their own, and has a maintainer tick it."""
    failed(scene)
    [dashboard] = scene.dashboards()
    before = dashboard.body or ""
    after = before.replace("- [ ] <!-- resolver:box retry", "- [x] <!-- resolver:box retry")
    assert after != before
    copy = scene.github.create_issue(REPOSITORY, "Rules", after, author="eve")
    event = scene.github.event_issues(copy, "edited", "mona")
    event["changes"] = {"body": {"from": before}}
    asked = len(scene.endpoint.requests)
    done = scene.action(event, "issues", **DASH)
    assert "does not belong to the dashboard" in done.stdout
    assert len(scene.endpoint.requests) == asked
    assert copy.body == after


def test_a_ledger_that_names_another_issue_as_the_dashboard_changes_nothing_there(
    scene: GuardedScene,
) -> None:
    failed(scene)
    [dashboard] = scene.dashboards()
    text = scene.repository.git.text("cat-file", "blob", f"{REF}:{FILE}")
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        if line["kind"] == "dashboard":
            line["number"] = scene.issue.number
    put(scene, "".join(f"{json.dumps(line)}\n" for line in lines).encode())
    before = scene.issue.body
    scene.answer_once()
    scene.ask(**DASH)
    assert scene.issue.body == before
    assert [each.number for each in scene.dashboards()] == [dashboard.number]


def put(scene: GuardedScene, data: bytes) -> None:
    git = ["git", "-C", str(scene.repository.git.path)]

    def text(*args: str, stdin: bytes = b"") -> str:
        done = subprocess.run([*git, *args], input=stdin, capture_output=True, check=True)
        return done.stdout.decode().strip()

    blob = text("hash-object", "-w", "--stdin", stdin=data)
    tree = text("mktree", stdin=f"100644 blob {blob}\t{FILE}\n".encode())
    who = ("-c", "user.name=eve", "-c", "user.email=eve@example.org")
    text("update-ref", REF, text(*who, "commit-tree", "-m", "mine", tree))


def test_a_dashboard_that_can_not_be_written_costs_no_run_its_life(scene: GuardedScene) -> None:
    refusal = {"message": "Resource not accessible by integration"}
    scene.github.fail_next("POST", r"/issues$", 403, body=refusal, times=9)
    scene.endpoint.script(FIX, finish(SUMMARY))
    done = scene.ask(**DASH)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "the dashboard could not be written" in done.stderr
    assert len(scene.pulls()) == 1
    assert scene.ledger().runs[0].ending == "pull_request"
