"""Tests that start programs or open sockets are skipped where they are not wanted."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

SAMPLE = """
import socket, subprocess, sys, threading
import pytest

def start():
    try:
        subprocess.run([sys.executable, "-c", ""])
    except Exception:
        pass

@pytest.fixture(scope="module")
def program():
    start()

@pytest.fixture
def left_open():
    yield
    start()

def test_a_computes(): pass
def test_b_starts_a_program(): start()
def test_c_asks_a_fixture_that_does(program): pass
def test_d_is_next_to_use_that_fixture(program): pass
def test_e_starts_one_in_a_thread():
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert False, "what the thread should have done is missing"
def test_f_listens():
    with socket.create_server(("127.0.0.1", 0)): pass
def test_g_starts_one_at_its_end(left_open): pass
def test_h_computes_too(): pass
def test_i_waits_for_one_that_a_thread_starts():
    started = threading.Event()
    threading.Thread(target=lambda: (start(), started.set())).start()
    assert started.wait(300)
"""


def run_sample(folder: Path, *options: str) -> str:
    (folder / "test_sample.py").write_text(SAMPLE)
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", folder, "-q"]
    command += ["-p", "tests.without_programs", "-p", "no:cacheprovider", *options]
    # The thread's exception is a warning.
    ran = subprocess.run(
        [*command, "-W", "ignore", folder], cwd=ROOT, capture_output=True, text=True
    )
    return ran.stdout


def test_a_test_is_skipped_when_it_starts_a_program_or_listens(tmp_path: Path) -> None:
    output = run_sample(tmp_path, "--without-programs")
    assert output.startswith(".sssss..s"), output
    assert "3 passed, 6 skipped" in output


def test_without_the_option_every_test_runs(tmp_path: Path) -> None:
    output = run_sample(tmp_path)
    assert "1 failed, 8 passed" in output
