"""Tests of handling a stored delivery under unusual conditions."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from resolver.config.settings import Settings
from resolver.entrypoints.webhook.request_runner import RequestRunner
from resolver.github.events.payloads import parse_payload
from resolver.models.run import Trigger
from resolver.runs.common import run_id, trigger_for_target
from resolver.storage.database import parse_database_url
from resolver.storage.earlier_runs import OUTCOME
from resolver.storage.run_index import RunIndex
from resolver.storage.run_store import RunStore
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.webhook.serving import Forge, started

CRASHED = "the server crashed 8 times during this run"


class Scenario:
    """A request of mona's, and what would do it. No model listens: a run would fail."""

    def __init__(self, github: GitHubServer, folder: Path) -> None:
        self.forge = Forge(github)
        self.issue: Issue = self.forge.issue(self.forge.repository("octo/calc"), "none")
        environment = {
            "LLM_MODEL": "openai/scripted",
            "GITHUB_TOKEN": self.forge.token,
            **github.addresses,
            "RESOLVER_PACE": '{"write_interval": 0}',
        }
        url = parse_database_url(f"sqlite:///{folder}/resolver.db")
        self.runs = RequestRunner(environment, {}, RunStore(MemoryStore()), RunIndex(url))

    def request(self, author: str = "mona") -> Trigger:
        found = trigger_for_target(
            Settings(), "issue_comment", self.forge.mention(self.issue, author)
        )
        assert isinstance(found, Trigger)
        return found


@pytest.fixture
def scenario(github: GitHubServer, tmp_path: Path) -> Scenario:
    return Scenario(github, tmp_path)


def test_a_run_that_crashes_the_server_each_time_is_given_up_and_reported(
    scenario: Scenario,
) -> None:
    request = scenario.request()
    done = scenario.runs.execute(started(request), CRASHED)
    assert done.state == "error"
    [comment] = scenario.forge.final_comments(scenario.issue)
    assert CRASHED in comment.body
    assert "ask again" in comment.body
    run = run_id(request.key, request.at)
    assert json.loads(scenario.runs.store.file(run, OUTCOME) or b"")["state"] == "error"


def test_a_request_that_waits_gets_a_reaction_and_no_comment(scenario: Scenario) -> None:
    for _ in range(2):  # by two processes
        scenario.runs.acknowledge(scenario.request())
    assert not scenario.forge.own_comments(scenario.issue)
    assert [reaction.content for reaction in scenario.issue.comments[0].reactions] == ["eyes"]


def test_a_stranger_who_waits_gets_no_reaction(scenario: Scenario) -> None:
    """The run will refuse the request, and that is the one comment."""
    scenario.forge.github.add_user("eve")
    scenario.runs.acknowledge(scenario.request("eve"))
    assert not scenario.forge.own_comments(scenario.issue)
    assert not scenario.issue.comments[0].reactions


def test_a_person_without_write_access_sees_no_error_of_the_server(
    scenario: Scenario,
) -> None:
    scenario.forge.github.add_user("eve")
    scenario.runs.execute(started(scenario.request("eve")), CRASHED)
    [comment] = scenario.forge.final_comments(scenario.issue)
    assert CRASHED not in comment.body and "write access" in comment.body


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to each value inside a payload."""
    inner = value.items() if isinstance(value, dict) else ()
    return [path, *(p for name, below in inner for p in places(below, (*path, name)))]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with another value at that path."""
    if not path:
        return new
    return {**value, path[0]: changed(value[path[0]], path[1:], new)}


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary().map(repr)
) | st.sampled_from(
    ["\ud800", "0001-01-01T00:00:00+14:00", 10**300, float("nan"), [], {}, "@agent \x00", "a/b"]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_payload_changed_anywhere_is_ignored_or_can_be_stored(
    webhook_examples: Mapping[str, list[dict[str, Any]]], data: st.DataObject
) -> None:
    [example] = [e for e in webhook_examples["issue_comment"][:9] if e["action"] == "created"][:1]
    payload = changed(example, ("comment", "body"), "@agent please")
    for _ in range(data.draw(st.integers(1, 3))):
        payload = changed(payload, data.draw(st.sampled_from(places(payload)[1:])), data.draw(ODD))
    arrived = parse_payload(json.dumps(payload).encode())
    assert arrived is not None
    found = trigger_for_target(Settings(), "issue_comment", arrived)
    if isinstance(found, Trigger):
        assert Trigger.model_validate_json(found.model_dump_json()) == found
        assert run_id(found.key, found.at)
    else:
        assert found.reason.encode()
