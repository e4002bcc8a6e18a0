"""`resolver trace`: the same log in four forms."""

import json
from pathlib import Path

import pytest

from resolver.cli.main import run
from resolver.events.schema import log_schema
from resolver.storage.run_store import open_run_store
from tests.parts.s3 import BUCKET, S3Server

RECORDING = Path(__file__).parents[2] / "resolver" / "demo" / "recording.jsonl"


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json"])
def test_a_file_gets_what_would_be_printed(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trace"
    assert run(["trace", str(RECORDING), "--format", form], {}) == 0
    printed = capsys.readouterr().out
    assert run(["trace", str(RECORDING), "--format", form, "--output", str(file)], {}) == 0
    assert capsys.readouterr().out == ""
    assert file.read_text() == printed
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_schema_is_printed_without_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "--schema"], {}) == 0
    assert json.loads(capsys.readouterr().out) == log_schema()


RUN = "20260101-000001-abcdef"


def test_a_run_in_a_store_is_as_good_as_a_file(
    tmp_path: Path,
    s3: S3Server,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = RECORDING.read_bytes().splitlines(keepends=True)
    for number, address in enumerate((str(tmp_path / "runs"), f"s3://{BUCKET}/trace")):
        store = open_run_store(address, tmp_path, s3.environment)
        store.open_writer(RUN, tmp_path / f"{number}").open(lines)
        assert run(["trace", f"{address}/{RUN}", "--format", "json"], s3.environment) == 0
        assert json.loads(capsys.readouterr().out) == [json.loads(line) for line in lines]
        for other in (f"{address}/20260101-000002-abcdef", f"{address}/other", address):
            assert run(["trace", other], s3.environment) == 2
            assert "contains no run" in capsys.readouterr().err


def damaged(folder: Path) -> Path:
    path = folder / "events.jsonl"
    lines = RECORDING.read_bytes().splitlines(keepends=True)
    lines[5] = lines[5][:40] + b"\n"
    path.write_bytes(b"".join(lines))
    return path


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json"])
def test_a_damaged_log_is_shown_up_to_the_damage_which_is_named(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = damaged(tmp_path)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    assert run(["trace", str(path), "--format", form], {}) == 0
    shown = capsys.readouterr()
    assert "damaged, and ends here after 5 events" in shown.err
    assert "line 6: not a line of JSON" in shown.err
    assert "Splitting a bill" in shown.out
    if form in {"markdown", "html"}:
        assert "ends here after 5 events" in shown.out
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


@pytest.mark.parametrize("command", [["trace"], ["replay"], ["publish"], ["resolve", "--resume"]])
def test_a_missing_run_is_a_usage_error_of_every_command(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in (tmp_path / "none", tmp_path):
        assert run([*command, str(place)], {}) == 2
        assert f"{place} contains no run" in capsys.readouterr().err


DIFF = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+the new line\n"


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_the_change_in_the_folder_of_the_log_is_shown_and_a_missing_one_is_named(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events.jsonl").write_text(RECORDING.read_text())
    notice = "there is no patch.diff next to the log"
    assert run(["trace", str(tmp_path), "--format", form], {}) == 0
    assert notice in capsys.readouterr().out
    (tmp_path / "patch.diff").write_text(DIFF)
    assert run(["trace", str(tmp_path), "--format", form], {}) == 0
    shown = capsys.readouterr().out
    assert "the new line" in shown and notice not in shown
