"""`resolver trace`: the same log in four forms."""

import json
from pathlib import Path

import pytest

from resolver.cli import run

RECORDING = Path(__file__).parents[2] / "resolver" / "demo" / "recording.jsonl"


@pytest.mark.parametrize(
    ("form", "has"),
    [
        ("text", "Splitting a bill loses a cent"),
        ("markdown", "Splitting a bill loses a cent"),
        ("html", "<!doctype html>"),
        ("json", '"kind":"run_started"'),
    ],
)
def test_each_form_shows_the_run(form: str, has: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", str(RECORDING), "--format", form], {}) == 0
    assert has.lower() in capsys.readouterr().out.lower()


def test_json_is_the_log_as_an_array(capsys: pytest.CaptureFixture[str]) -> None:
    run(["trace", str(RECORDING), "--format", "json"], {})
    lines = RECORDING.read_text().splitlines()
    assert json.loads(capsys.readouterr().out) == [json.loads(line) for line in lines]


def test_an_output_folder_is_as_good_as_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events.jsonl").write_text(RECORDING.read_text())
    assert run(["trace", str(tmp_path)], {}) == 0
    assert "Splitting a bill" in capsys.readouterr().out
