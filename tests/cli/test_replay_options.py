"""Tests of the options of `resolver replay` that are refused before anything is executed."""

import os
from pathlib import Path

import pytest

from resolver.cli.main import run

LOG = Path(__file__).parent.parent / "events" / "golden-1.jsonl"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--say", "x"], "add --fork ID"),
        (["--publish"], "add --fork ID"),
        (["--output", "fork"], "add --fork ID"),
        (["--fork", "999"], "the log ends with event "),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_options_that_do_not_fit_are_refused(
    options: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    assert run(["replay", str(LOG), *options], environment) == 2
    assert says in capsys.readouterr().err
