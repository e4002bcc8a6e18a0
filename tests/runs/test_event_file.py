"""Tests of reading the event of a job of GitHub Actions."""

from pathlib import Path

import pytest

from resolver.entrypoints.action import read_event
from resolver.errors import UsageError


def read(path: object) -> object:
    return read_event({"GITHUB_EVENT_NAME": "issues", "GITHUB_EVENT_PATH": str(path)})


def test_characters_that_can_not_be_stored_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    path.write_text(r'{"action": "\ud800", "title": "a\u0000"}')
    assert read(path) == ("issues", {"action": "\ufffd", "title": "a\ufffd"})


@pytest.mark.parametrize("text", ["", "{", "[1]", "7", '{"a":' * 100_000])
def test_a_file_that_is_no_event_is_refused_with_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "event.json"
    path.write_text(text)
    with pytest.raises(UsageError) as raised:
        read(path)
    assert f"the event {path} is not a JSON object" in raised.value.what


def test_a_file_that_is_missing_and_a_place_outside_of_a_job_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", "a\0b"):
        with pytest.raises(UsageError, match="can't be read"):
            read(path)
    with pytest.raises(UsageError, match="GITHUB_EVENT_PATH are not set"):
        read_event({})
