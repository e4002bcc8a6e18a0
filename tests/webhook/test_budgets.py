"""Runs of a server are counted, cut to what is left of the money, and refused when none is."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from resolver.cli.main import run as run_command
from resolver.config.settings import Settings
from resolver.entrypoints.webhook.request_runner import RequestRunner
from resolver.events.stream import utc_now
from resolver.git.git import Credential
from resolver.github.events.quota_ledger import LedgerRun
from resolver.models.run import Trigger
from resolver.runs.common import run_id, trigger_for_target
from resolver.storage.database import parse_database_url
from resolver.storage.issue_history import IssueHistories
from resolver.storage.ledger_ref import LedgerRef
from resolver.storage.quota_table import QuotaTable
from tests.github.events.ledgers import ended
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint, Usage
from tests.parts.runs import MODEL_KEY, finish
from tests.webhook.serving import FIX, SUMMARY, Forge, Plans, started

PRICES = "{input_cost_per_token: 0.00002, output_cost_per_token: 0}"
"""US dollars a token of input. A call has about 5,000, as the estimate before it says too."""


class Scenario:
    """A server's work without its queue: one repository, a model with a price."""

    def __init__(self, github: GitHubServer, endpoint: ModelEndpoint, folder: Path) -> None:
        self.forge = Forge(github)
        endpoint.usage = Usage(prompt=5_000, completion=10)
        self.plans = Plans(endpoint)
        self.plans.add("fix", FIX, finish(SUMMARY))
        self.folder = folder
        self.url = parse_database_url(f"sqlite:///{folder}/resolver.db")
        self.repository = self.forge.repository("octo/calc")
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "LLM_MODEL": "openai/scripted",
            "LLM_API_KEY": MODEL_KEY,
            "LLM_BASE_URL": endpoint.url,
            "GITHUB_TOKEN": self.forge.token,
            **github.addresses,
            "RESOLVER_RUNTIME": "local",
            "RESOLVER_VERIFY": "false",
            "RESOLVER_MODEL_OPTIONS": PRICES,
            "RESOLVER_COMMENT_INTERVAL_SECONDS": "{writes: 0}",
            "RESOLVER_DATABASE_URL": f"sqlite:///{folder}/resolver.db",
        }

    def runs(self, **more: str) -> RequestRunner:
        environment = {**self.environment, **more}
        return RequestRunner(
            environment,
            {},
            self.folder / "runs",
            IssueHistories(self.url),
            quota_table=QuotaTable(self.url),
        )

    def put(self, *runs: LedgerRun) -> None:
        table = QuotaTable(self.url)
        for run in runs:
            table.change(
                "octo/calc", utc_now(), lambda ledger, run=run: (ledger.with_run(run), None)
            )
        table.close()

    def issue(self, plan: str = "fix") -> Issue:
        return self.forge.issue(self.repository, plan)

    def request(self, issue: Issue, author: str = "mona") -> Trigger:
        found = trigger_for_target(Settings(), "issue_comment", self.forge.mention(issue, author))
        assert isinstance(found, Trigger)
        return found

    def log_of(self, trigger: Trigger) -> Path:
        return self.folder / "runs" / run_id(trigger.key, trigger.at) / "events.jsonl"


@pytest.fixture
def scenario(github: GitHubServer, model_endpoint: ModelEndpoint, tmp_path: Path) -> Scenario:
    return Scenario(github, model_endpoint, tmp_path)


def test_a_person_who_may_not_ask_is_refused_without_a_word_about_the_budget(
    scenario: Scenario,
) -> None:
    scenario.forge.github.add_user("eve")
    runs = scenario.runs(RESOLVER_COST_QUOTAS="{repository_day: 0.2}")
    scenario.put(ended(1, cost=0.2, at=utc_now()))
    issue = scenario.issue()
    assert runs.execute(started(scenario.request(issue, "eve"), 1)).exit_code == 5
    assert not any("$" in result.body for result in scenario.forge.final_comments(issue))


def test_a_runs_budget_is_cut_to_what_is_left(scenario: Scenario) -> None:
    """A whole run, because what the server reserves has to become the limit in the run's log."""
    runs = scenario.runs(RESOLVER_COST_QUOTAS="{repository_day: 0.55}")
    runs.execute(started(scenario.request(scenario.issue()), 1))
    scenario.plans.add("long", *[FIX] * 9, finish(SUMMARY))
    issue = scenario.issue("long")
    trigger = scenario.request(issue)
    runs.execute(started(trigger, 1))
    opening = json.loads(scenario.log_of(trigger).read_text().splitlines()[0])
    assert opening["limits"]["max_budget"] == pytest.approx(0.35)
    [comment] = scenario.forge.final_comments(issue)
    assert "The budget of this run was reduced to $0.35" in comment.body.replace("\\", "")


def test_the_costs_are_shown_and_narrowed(
    scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    before = utc_now() - timedelta(days=40)
    scenario.put(
        ended(1, cost=1.25, at=utc_now()), ended(2, cost=0.5, unpriced=1, at=before, thread=14)
    )
    environment = scenario.environment | {"RESOLVER_RUN_QUOTAS": "{user_day: 7}"}
    run_command(["costs", "Octo/Calc"], environment)
    now, then, *use = capsys.readouterr().out.splitlines()
    assert f"{utc_now():%Y-%m}  octo/calc" in now and "1 run        $1.25" in now
    assert "$0.50, and 1 reply of unknown cost" in then
    text = " ".join("\n".join(use).split())
    assert text == (
        "Used today (UTC) #12 1 of 20 runs $1.25 of $50.00 ada 1 of 7 runs $1.25 of $100.00 "
        "this repository 1 of 200 runs $1.25 of $250.00"
    )
    run_command(["costs", "--month", f"{before:%Y-%m}"], environment)
    assert "$0.50" in capsys.readouterr().out
    run_command(["costs", "octo/none"], environment)
    assert "No costs have been recorded yet" in capsys.readouterr().out


def test_without_a_server_the_costs_are_those_of_the_ledger_in_the_repository(
    scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = scenario.environment | {
        "RESOLVER_DATABASE_URL": f"sqlite:///{scenario.folder}/none.db"
    }
    server, token = scenario.forge.github.server_url, scenario.forge.token
    ledger_ref = LedgerRef(f"{server}/octo/calc.git", lambda: Credential(server, token))
    old = ended(2, cost=0.5, unpriced=2, at=utc_now() - timedelta(days=40))
    for entry in (ended(1, cost=1.25, at=utc_now()), old):
        ledger_ref.change(lambda ledger, entry=entry: (ledger.with_run(entry), None))
    assert run_command(["costs", "octo/calc", "--json"], environment) == 0
    data = json.loads(capsys.readouterr().out)
    assert [(t["month"], t["cost"], t["priced"]) for t in data["totals"]] == [
        (f"{utc_now():%Y-%m}", 1.25, 1.25),
        (f"{old.at:%Y-%m}", None, 0.5),
    ]
    assert data["today"][-1] == {
        "name": "this repository",
        "runs": 1,
        "max_runs": 200,
        "cost": 1.25,
        "max_cost": 250.0,
    }
    run_command(["costs", "octo/calc", "--month", f"{old.at:%Y-%m}"], environment)
    assert "$0.50, and 2 replies of unknown cost" in capsys.readouterr().out


def test_costs_say_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment = {"RESOLVER_DATABASE_URL": f"sqlite:///{tmp_path}/none.db"}
    assert run_command(["costs"], environment) == 2
    error = capsys.readouterr().err
    assert "there is no database" in error and "name a repository" in error
    assert not (tmp_path / "none.db").exists()
    assert run_command(["costs", "--month", "May"], environment) == 2
    assert "write it like 2026-11" in capsys.readouterr().err
