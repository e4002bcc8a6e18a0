"""Tests of loading litellm in the background."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest

from resolver.llm import library
from tests.parts.waiting import until


def test_users_wait_for_litellm_while_it_is_preloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    loading, may_end, loaded = threading.Event(), threading.Event(), list[object]()

    @cache
    def load() -> object:
        loading.set()
        may_end.wait(60)
        loaded.append(object())
        return loaded[0]

    monkeypatch.setattr(library, "_load_litellm", load)
    preloading = library.preload_litellm()
    assert loading.wait(60) and preloading.daemon
    with ThreadPoolExecutor(3) as users:
        found = [users.submit(library.litellm) for _ in range(3)]
        until(lambda: all(future.running() for future in found))
        may_end.set()
        assert {future.result(60) for future in found} == set(loaded)
    preloading.join()
    assert len(loaded) == 1


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
