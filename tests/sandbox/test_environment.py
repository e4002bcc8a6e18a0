"""Tests of the environment variables of the agent's programs."""

from pathlib import Path

import pytest

from resolver.sandbox.environment import PLAIN_TERMINAL, shell_environment

OWN = {
    "PATH": "/image/bin",
    "HOME": "/usr",
    "LANG": "de_DE.UTF-8",
    "KEY": "secret",
    "TMPDIR": "/no",
}


def test_only_known_variables_are_passed_unless_all_are_requested() -> None:
    few = shell_environment(OWN, False, None, {}, "/b/bash")
    assert "KEY" not in few and few["SHELL"] == "/b/bash"
    assert shell_environment(OWN, True, None, {}, "/b/bash")["KEY"] == "secret"


def test_the_tools_come_after_the_images_own() -> None:
    assert shell_environment(OWN, False, "/t/bin", {}, "b")["PATH"] == "/image/bin:/t/bin"
    assert shell_environment({}, False, "/t/bin", {}, "b")["PATH"].endswith("/bin:/t/bin")


def test_given_variables_win() -> None:
    assert shell_environment(OWN, True, None, {"PAGER": "less"}, "b")["PAGER"] == "less"


@pytest.mark.parametrize("keep", [True, False])
def test_the_terminal_is_plain_and_folders_exist(keep: bool) -> None:
    made = shell_environment(OWN, keep, None, {}, "b")
    assert made.items() >= PLAIN_TERMINAL.items()
    assert (made["HOME"], made["LANG"], made["TMPDIR"]) == ("/usr", "de_DE.UTF-8", "/tmp")


def test_a_home_that_does_not_exist_is_replaced(tmp_path: Path) -> None:
    own = {"HOME": str(tmp_path / "missing")}
    assert shell_environment(own, True, None, {}, "b")["HOME"] == "/tmp"
