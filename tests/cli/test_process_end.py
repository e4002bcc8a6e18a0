"""Tests of how the process of a command ends: with its exit code and its whole output."""

import subprocess
import sys

CALL = """
import sys
from resolver.cli.main import main
sys.argv = ["resolver", *sys.argv[1:]]
main()
"""


def call(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CALL, *args], capture_output=True, text=True, check=False
    )


def test_a_reader_that_has_gone_is_no_traceback() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CALL, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 1
    assert b"Traceback" not in said
