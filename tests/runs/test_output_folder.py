"""Where a run writes its files, and what becomes of those of an earlier run."""

import os
import signal
from pathlib import Path

import pytest

from resolver.errors import RunStopped
from resolver.runs.common import stop_on_signals
from resolver.runs.output import Output
from tests.parts.waiting import until


def test_an_earlier_run_is_kept_in_a_folder_of_its_own(tmp_path: Path) -> None:
    for text in ("first", "second", "third"):
        output = Output(tmp_path)
        output.write_issue(text)
        output.write_patch(text.encode())
        output.close()
    assert (tmp_path / "patch.diff").read_text() == "third"
    for number, text in ((1, "first"), (2, "second")):
        assert (tmp_path / f"earlier-{number}" / "patch.diff").read_text() == text


def test_a_resumed_run_keeps_its_files_where_they_are(tmp_path: Path) -> None:
    output = Output(tmp_path)
    output.write_patch(b"first")
    output.close()
    Output(tmp_path, resume=True).close()
    assert [path.name for path in tmp_path.iterdir()] == ["patch.diff"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_run_where_it_is(number: signal.Signals) -> None:
    with stop_on_signals() as stopping, pytest.raises(RunStopped, match=number.name):
        os.kill(os.getpid(), number)
        until(lambda: False)
    assert stopping.is_set()
