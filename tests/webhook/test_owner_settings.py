"""Settings of the server for individual owners."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import Settings, load_settings
from resolver.entrypoints.webhook.owner_settings import (
    OwnerSettings,
    choose_settings,
    read_owner_settings,
)
from resolver.entrypoints.webhook.request_runner import RequestRunner
from resolver.errors import UsageError
from resolver.github.forge import Forge as ForgeInterface
from resolver.runs.common import trigger_for_target
from resolver.runs.stages import RunRequest, RunResult
from resolver.storage.database import parse_database_url
from resolver.storage.issue_history import IssueHistories
from tests.parts.github import GitHubServer
from tests.webhook.serving import Forge, started

SERVER_KEY, OCTO_KEY, OTHER_KEY = "key-of-the-server", "canary-key-of-octo", "canary-key-of-other"
ENVIRONMENT = {
    "LLM_MODEL": "openai/common",
    "LLM_API_KEY": SERVER_KEY,
    "RESOLVER_COST_QUOTAS": "{server_day: 50, repository_month: 10}",
}
FILE = f"""
Octo:
  model: anthropic/theirs
  api_key: {OCTO_KEY}
  max_budget: 1.5
  cost_quotas: {{repository_month: 300}}
other: {{api_key: {OTHER_KEY}, mention: "@helper"}}
quiet: {{}}
"""


def key_of(settings: Settings) -> str:
    return settings.api_key.get_secret_value() if settings.api_key else ""


def written(folder: Path, content: str) -> str:
    file = folder / "owners.yml"
    file.write_text(content)
    return str(file)


@pytest.fixture
def owners(tmp_path: Path) -> OwnerSettings:
    return read_owner_settings(written(tmp_path, FILE))


def test_settings_of_an_owner_come_first_and_all_others_are_those_of_the_server(
    owners: OwnerSettings,
) -> None:
    loaded = owners.load_all({"model": None, "max_iterations": 7}, ENVIRONMENT)
    octo = loaded["octo"]
    assert (octo.model, key_of(octo), octo.max_budget) == ("anthropic/theirs", OCTO_KEY, 1.5)
    assert octo.max_iterations == 7
    assert (octo.cost_quotas.repository_month, octo.cost_quotas.server_day) == (300, 50)
    assert loaded["other"].model == "openai/common"
    assert loaded["quiet"] == load_settings({"max_iterations": 7}, ENVIRONMENT)


@pytest.mark.attack
@pytest.mark.parametrize(
    ("repository", "key"),
    [
        ("octo/calc", OCTO_KEY),
        ("OCTO/calc", OCTO_KEY),
        ("other/octo", OTHER_KEY),
        ("octo-2/calc", SERVER_KEY),
        ("oct/o", SERVER_KEY),
        ("octo", OCTO_KEY),
        ("x/octo/calc", SERVER_KEY),
        ("", SERVER_KEY),
    ],
)
def test_no_run_gets_the_key_of_another_owner(
    owners: OwnerSettings, repository: str, key: str
) -> None:
    """A repository with a similar name asks for work: it gets the model key of its own owner."""
    assert key_of(load_settings(owners.options_for(repository, {}), ENVIRONMENT)) == key
    loaded = owners.load_all({}, ENVIRONMENT)
    assert key_of(choose_settings(load_settings({}, ENVIRONMENT), loaded, repository)) == key


def test_no_file_changes_nothing(tmp_path: Path) -> None:
    for none in (read_owner_settings(""), read_owner_settings(written(tmp_path, ""))):
        assert none.load_all({}, ENVIRONMENT) == {}
        assert none.options_for("octo/calc", {"model": "a/b"}) == {"model": "a/b"}


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("- octo", "it has no settings by owner"),
        ("octo: secret-canary", "it has no settings by owner"),
        ("octo: {api_key: secret-canary", "line 1: not YAML"),
        ("octo/calc: {}", "'octo/calc' is no login"),
        ("octo: {modell: a/b}", "octo: 'modell' can't be set there (did you mean 'model'?)"),
        ("octo: {app_private_key: secret-canary}", "'app_private_key' can't be set there"),
        ("octo: {server: {public_url: x}}", "'server' can't be set there"),
        ("octo: {max_runs_per_user_day: 3}", "write 'run_quotas.user_day' in place of"),
        ("octo: {run_quotas: {user_active: 1}}", "'user_active' is a limit of all owners together"),
        ("octo: {cost_quotas: {server_day: 1}}", "'server_day' is a limit of all owners together"),
        ("octo: {base_url: 'http://x'}", "'base_url' needs an 'api_key' of its own"),
    ],
)
def test_what_is_wrong_is_named_and_no_key_is_quoted(
    tmp_path: Path, content: str, fault: str
) -> None:
    with pytest.raises(UsageError) as refused:
        read_owner_settings(written(tmp_path, content))
    assert fault in refused.value.what
    assert "secret-canary" not in f"{refused.value} {refused.value.next_step}"


def test_a_wrong_value_names_the_owner(tmp_path: Path) -> None:
    owners = read_owner_settings(written(tmp_path, "octo: {max_budget: much, api_key: canary}"))
    with pytest.raises(UsageError, match="the settings of octo: --max-budget") as refused:
        owners.load_all({}, ENVIRONMENT)
    assert "canary" not in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"owners\.yml: No such file"):
        read_owner_settings(str(tmp_path / "owners.yml"))


class PipelineReached(Exception):
    """Ends a run where its pipeline would begin."""


def test_a_run_is_executed_with_the_settings_of_its_owner(
    github: GitHubServer, tmp_path: Path, owners: OwnerSettings
) -> None:
    requests: list[RunRequest] = []

    def pipeline(request: RunRequest, _: ForgeInterface) -> RunResult:
        requests.append(request)
        raise PipelineReached

    forge = Forge(github)
    environment: dict[str, Any] = ENVIRONMENT | {
        "GITHUB_TOKEN": forge.token,
        "GITHUB_API_URL": github.api_url,
        "GITHUB_SERVER_URL": github.server_url,
    }
    histories = IssueHistories(parse_database_url(f"sqlite:///{tmp_path}/resolver.db"))
    runs = RequestRunner(environment, {}, tmp_path, histories, pipeline=pipeline)
    for repository in ("octo/calc", "alone/calc"):
        issue = forge.issue(forge.repository(repository), "none")
        trigger = trigger_for_target(Settings(), "issue_comment", forge.mention(issue))
        with pytest.raises(PipelineReached):
            replace(runs, owners=lambda: owners).execute(started(trigger))
    loaded = [request.load_settings({"max_budget": 4}) for request in requests]
    assert [key_of(settings) for settings in loaded] == [OCTO_KEY, SERVER_KEY]
    assert [settings.max_budget for settings in loaded] == [1.5, 4], "the owner's comes first"
