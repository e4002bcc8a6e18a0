"""Tests of the lock of the server's data folder."""

import os
import threading
from pathlib import Path

from resolver.entrypoints.webhook.data_folder import DataFolder, lock_file
from tests.parts.waiting import is_inside, until


def test_a_lock_that_a_killed_server_leaves_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    held = lock_file(tmp_path / ".lock")
    opened: list[DataFolder] = []
    starting = threading.Thread(target=lambda: opened.append(DataFolder(tmp_path)))
    starting.start()
    until(lambda: is_inside(starting, "lock_file"), pause=0.01)
    os.close(held)
    starting.join(60)
    [folder] = opened
    folder.close()
