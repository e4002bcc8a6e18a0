"""Tests of the threads that read the output of a process."""

import os
import subprocess
import threading
from pathlib import Path
from typing import Any

from resolver.sandbox.pump import Pump
from resolver.sandbox.spool import Spool
from tests.parts.waiting import is_inside, until


class UnnoticedEnd:
    """A process whose end is noted by the thread that waits for it once `noticed` is set."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid
        self.noticed = threading.Event()

    def wait(self) -> int:
        assert self.noticed.wait(60)
        return self._process.wait()


def test_the_end_of_a_process_is_known_before_its_thread_has_run(tmp_path: Path) -> None:
    real = subprocess.Popen(["true"])
    os.waitid(os.P_PID, real.pid, os.WEXITED | os.WNOWAIT)
    process: Any = UnnoticedEnd(real)
    control, other_end = os.pipe()
    pump = Pump(process, [], control, lambda: Spool(str(tmp_path)))
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(pump.ended))
    thread.start()
    until(lambda: is_inside(thread, "wait_for") or not thread.is_alive())
    process.noticed.set()
    thread.join()
    assert found == [True] and pump.ended
    os.close(other_end)
    pump.close()


def test_a_process_at_work_has_not_ended(tmp_path: Path) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        control, other_end = os.pipe()
        pump = Pump(process, [], control, lambda: Spool(str(tmp_path)))
        assert not pump.ended
        process.communicate()
        assert pump.wait(60) == "ended" and pump.ended
    os.close(other_end)
    pump.close()


def test_output_written_before_a_request_is_known_to_be_from_before(tmp_path: Path) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        control, other_end = os.pipe()
        output, writer = os.pipe()
        os.set_blocking(output, False)
        pump = Pump(process, [output], control, lambda: Spool(str(tmp_path)))
        for _ in range(200):  # the reading thread has hardly ever run in between
            os.write(writer, b"late\n")
            assert pump.expect(b"end")
            assert pump.take().excerpt().text == "late\n"
            assert not pump.expect(b"end")
        process.communicate()
        assert pump.wait(60) == "ended"
    os.close(other_end)
    os.close(writer)
    pump.close()
    os.close(output)
