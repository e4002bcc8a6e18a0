"""Added lines that look different from what they are are found, and bidi controls are refused."""

from pathlib import Path

import pytest

from resolver.errors import PolicyViolation
from resolver.git.deceptive_text import MAX_FOUND_PLACES, find_deceptive_text
from resolver.git.policy import enforce_policy
from resolver.git.tree import read_changes
from tests.git.scenario import Scenario, make_repository, open_scenario, write
from tests.git.test_policy import POLICY

BASE: dict[str | bytes, bytes | str] = {"old.py": "x = 1  # \u202e\n", "README.md": "hello\n"}


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return open_scenario(make_repository(tmp_path / "source", BASE), tmp_path)


def found(scenario: Scenario) -> list[str]:
    patch = scenario.export()
    changes = read_changes(scenario.workspace.git, patch.base, patch.tree)
    return [str(place) for place in find_deceptive_text(scenario.workspace.git, changes)]


@pytest.mark.attack
@pytest.mark.parametrize(
    ("path", "text", "places"),
    [
        ("a.py", "x\ny = '\u202e'\n", ["a.py line 2: U+202E (right-to-left override)"]),
        ("a.py", "y\u200b = 1\n", ["a.py line 1: U+200B (zero width space)"]),
        (
            "a.py",
            "\nis_\u0430dmin = 1\n",
            ["a.py line 2: is_\u0430dmin mixes Latin letters with similar ones (U+0430)"],
        ),
        ("a.py", "\u043f\u0440\u0438\u0432\u0435\u0442 = '\u00e9t\u00e9 \U0001f44d\ufe0f'\n", []),
        ("a.py", "# \U0001f468\u200d\U0001f469\n", []),
        ("a.py", "\ufeffx = 1\n", []),
        ("a.bin", "\0\u202e", []),
        ("fa.md", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645\n", []),
        ("fa.md", "\u202e\n", ["fa.md line 1: U+202E (right-to-left override)"]),
        ("old.py", "y = 2\nx = 1  # \u202e\n", []),
        (
            "old.py",
            "x = 1  # \u202e\nx = 1  # \u202e\n",
            ["old.py line 2: U+202E (right-to-left override)"],
        ),
    ],
)
def test_added_lines_are_searched(
    scenario: Scenario, path: str, text: str, places: list[str]
) -> None:
    """Added lines contain bidirectional or invisible characters or homoglyphs: each is reported
    with file and line."""
    write(scenario.root, path, text)
    assert found(scenario) == places


def test_names_of_new_files_are_searched(scenario: Scenario) -> None:
    write(scenario.root, "a\u202ecod.exe", "x\n")
    assert len(found(scenario)) == 1 and found(scenario)[0].startswith("the name of ")


def test_the_number_of_places_is_bounded(scenario: Scenario) -> None:
    write(scenario.root, "a.py", "\u200b\n" * (2 * MAX_FOUND_PLACES))
    assert len(found(scenario)) == MAX_FOUND_PLACES


@pytest.mark.attack
def test_bidi_controls_in_code_are_refused(scenario: Scenario) -> None:
    """Added code contains bidirectional controls: refused."""
    write(scenario.root, "a.py", "access = 'user\u202e \u2066# admin\u2069'\n")
    with pytest.raises(PolicyViolation, match=r"a\.py line 1: U\+202E"):
        enforce_policy(scenario.workspace, scenario.export(), POLICY)
    write(scenario.root, "a.py", "fine = '\u200b'\n")
    write(scenario.root, "fa.md", "\u2067\n")
    enforce_policy(scenario.workspace, scenario.export(), POLICY)
