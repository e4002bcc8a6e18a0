"""Tests of which request `--resume` and `resolver publish` continue, from the files of a run."""

from dataclasses import replace
from pathlib import Path

import pytest

from resolver.cli.resolve import resumed_request
from resolver.config.settings import load_settings
from resolver.errors import LogError, UsageError
from resolver.events.log import dump_line
from resolver.events.observations import AgentStateChanged
from resolver.models.run import RunState
from resolver.runs.output import Output, StoredRequest
from resolver.runs.pipeline import _write_request
from resolver.storage.earlier_runs import EVENTS
from tests.github import reports
from tests.runs.plain_values import run_request
from tests.trace import sample

TORN = '{"kind": "run_st'
REQUEST = StoredRequest(run="run-7", trigger=reports.trigger(), publish=False)


def log(*states: RunState) -> str:
    """The log of a run that has had these states."""
    changes = [AgentStateChanged(state=state) for state in states]
    events = sample.numbered([sample.started(), *changes])
    return "".join(f"{dump_line(event)}\n" for event in events)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The output folder of a run whose request was stored."""
    output = Output(tmp_path / "output")
    output.write_request(REQUEST)
    output.close()
    return output.folder


def test_a_run_killed_before_its_first_event_has_its_stored_request(folder: Path) -> None:
    (folder / EVENTS).write_text(TORN)
    output, request = resumed_request(folder)
    assert request == REQUEST and not output.has_events


def test_the_options_of_a_run_are_stored_without_secrets_and_replaced_by_those_given_now(
    tmp_path: Path,
) -> None:
    options = {"image": "a:1", "egress": ("a.example",), "base_url": "https://x?key=mk-canary-17"}
    settings = {**options, "api_key": "mk-canary-17"}
    request = replace(
        run_request(tmp_path), options=options, load_settings=lambda _: load_settings(settings, {})
    )
    _write_request(request, request.load_settings({}))
    request.output.close()
    assert "mk-canary" not in (request.output.folder / "request.json").read_text()
    _, found = resumed_request(request.output.folder)
    assert found.settings_options({"image": None}) == {"image": "a:1", "egress": ["a.example"]}
    assert found.settings_options({"image": "b:2"})["image"] == "b:2"


def test_a_log_without_a_stored_request_is_enough(folder: Path) -> None:
    (folder / "request.json").unlink()
    (folder / EVENTS).write_text(log() + TORN)
    output, request = resumed_request(folder)
    assert request.run == sample.started().run and output.has_events


def test_a_run_of_which_nothing_was_recorded_can_not_be_resumed(folder: Path) -> None:
    (folder / "request.json").unlink()
    (folder / EVENTS).write_text(TORN)
    with pytest.raises(UsageError, match="was interrupted before it was recorded"):
        resumed_request(folder)


def test_a_folder_that_another_process_uses_is_refused(folder: Path) -> None:
    held = Output(folder, resume=True)
    with pytest.raises(UsageError, match="another process is already using"):
        resumed_request(folder)
    held.close()


def test_a_log_of_another_version_can_not_be_continued_and_stays_as_it_is(folder: Path) -> None:
    newer = log(RunState.ERROR).replace('"schema_version":1', '"schema_version":9')
    (folder / EVENTS).write_text(newer)
    with pytest.raises(LogError, match="version 9"):
        resumed_request(folder)
    assert (folder / EVENTS).read_text() == newer
