"""The stand-in for the `resolver` script outlives clients that end at any moment."""

import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.parts import prefork_client
from tests.parts.prefork import preforked_script
from tests.parts.runs import INSTALLED_RESOLVER


def version(script: Path) -> str:
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    return done.stdout


def test_a_client_that_ends_at_any_moment_costs_others_nothing() -> None:
    script = preforked_script(INSTALLED_RESOLVER)
    expected = version(script)
    chance = random.Random(5)
    for number in (signal.SIGTERM, signal.SIGKILL) * 20:
        client = subprocess.Popen(
            [script, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(chance.random() * 0.05)
        client.send_signal(number)
        client.wait()
    assert version(script) == expected


@pytest.mark.parametrize(
    "begun", [b"", b"\x0f", b"\x00\x00\x01", b"\x00\x00\x00\x04junk", b"\xff" * 9]
)
def test_a_request_that_is_no_request_costs_others_nothing(begun: bytes) -> None:
    script = preforked_script(INSTALLED_RESOLVER)
    expected = version(script)
    folder, owner = script.parent.parent, os.getpid()
    connection = prefork_client.connect(str(folder), str(INSTALLED_RESOLVER), owner)
    connection.sendall(begun)
    connection.close()
    assert version(script) == expected


def test_a_server_that_has_ended_is_started_again() -> None:
    script = preforked_script(INSTALLED_RESOLVER)
    expected = version(script)
    folder = script.parent.parent
    listening = socket.socket(socket.AF_UNIX)
    (folder / "socket").unlink()
    listening.bind(str(folder / "socket"))
    listening.close()  # what a server that was killed leaves behind
    assert version(script) == expected
