"""Tests of loading litellm in the background."""

import subprocess
import sys

import pytest

LOADED_AT_ONCE = """
import threading
from resolver.llm.library import litellm, preload_litellm

found = []
loading = preload_litellm()
users = [threading.Thread(target=lambda: found.append(litellm().client_session)) for _ in range(3)]
for thread in users:
    thread.start()
for thread in [loading, *users]:
    thread.join()
print(len(found), all(session is found[0] for session in found), loading.daemon)
"""


def test_users_wait_for_litellm_while_it_is_preloaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED_AT_ONCE], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["3 True True"], done.stderr


ENDS_MEANWHILE = """
import sys, time
from resolver.llm.library import preload_litellm

preload_litellm()
time.sleep(float(sys.argv[1]))
print("ended")
sys.exit(3)
"""


@pytest.mark.parametrize("seconds", ["0", "0.3"])
def test_a_process_can_end_while_litellm_is_loaded(seconds: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDS_MEANWHILE, seconds], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "ended\n", "")
