"""Tests of `resolver costs`, from a server's database and from the ledger in a repository."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from resolver.cli.main import run as run_command
from resolver.events.stream import utc_now
from resolver.git.git import Credential
from resolver.github.events.quota_ledger import LedgerRun
from resolver.storage.database import parse_database_url
from resolver.storage.ledger_ref import LedgerRef
from resolver.storage.quota_table import QuotaTable
from tests.github.events.ledgers import ended
from tests.parts.github import GitHubServer
from tests.webhook.serving import Forge


class Scenario:
    """A repository, and the costs of its runs in the database of a server."""

    def __init__(self, github: GitHubServer, folder: Path) -> None:
        self.forge = Forge(github)
        self.folder = folder
        self.url = parse_database_url(f"sqlite:///{folder}/resolver.db")
        self.forge.repository("octo/calc")
        self.environment = {
            "HOME": str(folder),
            "GITHUB_TOKEN": self.forge.token,
            **github.addresses,
            "RESOLVER_DATABASE_URL": f"sqlite:///{folder}/resolver.db",
        }

    def put(self, *runs: LedgerRun) -> None:
        table = QuotaTable(self.url)
        for run in runs:
            table.change(
                "octo/calc", utc_now(), lambda ledger, run=run: (ledger.with_run(run), None)
            )
        table.close()


@pytest.fixture
def scenario(github: GitHubServer, tmp_path: Path) -> Scenario:
    return Scenario(github, tmp_path)


def test_the_costs_are_shown_and_narrowed(
    scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    before = utc_now() - timedelta(days=40)
    scenario.put(
        ended(1, cost=1.25, at=utc_now()), ended(2, cost=0.5, unpriced=1, at=before, thread=14)
    )
    environment = scenario.environment
    run_command(["costs", "Octo/Calc"], environment)
    now, then, *use = capsys.readouterr().out.splitlines()
    assert f"{utc_now():%Y-%m}  octo/calc" in now and "1 run        $1.25" in now
    assert "$0.50, and 1 reply of unknown cost" in then
    text = " ".join("\n".join(use).split())
    assert text == (
        "Used today (UTC) #12 1 of 20 runs $1.25 of $50.00 ada 1 of 50 runs $1.25 of $100.00 "
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
        "ceiling": "repository",
        "name": "this repository",
        "runs": 1,
        "max_runs": 200,
        "cost": 1.25,
        "max_cost": 250.0,
        "reserved": 0.0,
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
