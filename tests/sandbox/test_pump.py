"""Tests of the threads that read the output of a process."""

import os
import subprocess
from pathlib import Path

from resolver.sandbox.pump import Pump
from resolver.sandbox.spool import Spool


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
