"""`resolver trace`: the same log in four forms."""

import json
from pathlib import Path

import pytest

from resolver.cli.main import run
from resolver.events.schema import log_schema
from resolver.storage.database import parse_database_url
from resolver.storage.run_archive import LogLine, LogPosition, RunArchive, RunClaim
from tests.parts.postgres import PASSWORD, Postgres

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


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_run_in_a_database_is_as_good_as_a_file(
    database: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if database == "sqlite":
        url = f"sqlite:///{tmp_path}/runs.db"
    else:
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.url
    archive, claim = RunArchive(parse_database_url(url)), RunClaim(1, 1)
    archive.record_claim("trace/run 1", claim)
    recorded = RECORDING.read_text().splitlines()
    stored = [LogLine(json.loads(line)["kind"], line) for line in recorded]
    archive.append("trace/run 1", claim, LogPosition(), stored)
    archive.close()
    assert run(["trace", f"{url}#trace/run 1", "--format", "json"], {}) == 0
    lines = RECORDING.read_text().splitlines()
    assert json.loads(capsys.readouterr().out) == [json.loads(line) for line in lines]
    assert run(["trace", f"{url}#another"], {}) == 2
    stderr = capsys.readouterr().err
    assert "has no events of a run 'another'" in stderr
    if database == "sqlite":  # the other one has runs of other tests, and not all are named
        assert "trace/run 1" in stderr
    assert PASSWORD not in stderr


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("sqlite:///none.db#r", "none.db is not a file"),
        ("sqlite://#r", "in memory keeps nothing"),
        ("sqlite:///x.db", "no run in it"),
        ("mysql://u:s3cret@h/d#r", "not kept in mysql"),
        ("postgresql://u:s3cret@127.0.0.1:1/d#r", "onnection refused"),
        ("://#r", "address can't be read"),
    ],
)
def test_a_database_that_can_not_be_read_is_reported_in_words(
    location: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", location], {}) == (1 if "refused" in says else 2)
    stderr = capsys.readouterr().err
    assert says in stderr
    assert "s3cret" not in stderr


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


def test_an_incomplete_last_line_is_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(RECORDING.read_bytes() + b'{"id":44,"kin')
    assert run(["trace", str(path)], {}) == 0
    shown = capsys.readouterr()
    assert "The last line of this log is incomplete" in shown.err
    path.write_bytes(RECORDING.read_bytes())
    assert run(["trace", str(path)], {}) == 0
    assert capsys.readouterr() == (shown.out, "")


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
