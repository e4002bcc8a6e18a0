"""Tests of the start of the action execution server, which every run waits for."""

import subprocess
import sys
from pathlib import Path

MAIN = Path(__file__).parents[2] / "resolver" / "sandbox" / "__main__.py"

LOADED_LATER = {
    "dataclasses",  # and inspect, which it imports
    "inspect",
    "ast",  # the editor's parsers
    "tomllib",
    "difflib",
    "asyncio",  # the proxy
    "urllib.parse",  # the browser
    "resolver.sandbox.editor",
    "resolver.sandbox.browser",
    "resolver.sandbox.chromium",
    "resolver.sandbox.proxy",
}

LOAD = """
import runpy, sys
load = runpy.run_path(sys.argv[1], run_name="loaded")["load"]
for module in ("shell", "actions", "processes", "server"):
    load(module)
print(*sys.modules, sep="\\n")
"""
"""Imports what `_serve` imports before it reads the first request."""


def test_what_few_actions_need_is_not_loaded_before_the_first_one(programs: None) -> None:
    command = [sys.executable, "-I", "-S", "-c", LOAD, str(MAIN)]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "resolver.sandbox.server" in loaded
    assert not LOADED_LATER & set(loaded)
