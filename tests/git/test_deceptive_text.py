"""Added lines that look different from what they are are found, and bidi controls are refused."""

import pytest

from resolver.errors import PolicyViolation
from resolver.git.deceptive_text import MAX_FOUND_PLACES, find_deceptive_text
from resolver.git.policy import enforce_policy
from resolver.git.tree import read_changes
from resolver.git.workspace import Workspace
from tests.git.test_policy import PROTECTED
from tests.git.trees import Changes, patch_of, write_base

BASE: Changes = {"old.py": "x = 1  # \u202e\n", "README.md": "hello\n"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return write_base(tmp_path_factory.mktemp("deceptive") / "base.git", BASE)


def found(workspace: Workspace, changes: Changes) -> list[str]:
    patch = patch_of(workspace, changes)
    changed = read_changes(workspace.git, patch.base, patch.tree)
    return [str(place) for place in find_deceptive_text(workspace.git, changed)]


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
    workspace: Workspace, path: str, text: str, places: list[str]
) -> None:
    """Added lines contain bidirectional or invisible characters or homoglyphs: each is reported
    with file and line."""
    assert found(workspace, {path: text}) == places


def test_names_are_searched_and_the_number_of_places_is_bounded(workspace: Workspace) -> None:
    [named] = found(workspace, {"a\u202ecod.exe": "x\n"})
    assert named.startswith("the name of ")
    many = found(workspace, {"a.py": "\u200b\n" * (2 * MAX_FOUND_PLACES)})
    assert len(many) == MAX_FOUND_PLACES


@pytest.mark.attack
def test_bidi_controls_in_code_are_refused(workspace: Workspace) -> None:
    """Added code contains bidirectional controls: refused."""
    refused = patch_of(workspace, {"a.py": "access = 'user\u202e \u2066# admin\u2069'\n"})
    with pytest.raises(PolicyViolation, match=r"a\.py line 1: U\+202E"):
        enforce_policy(workspace, refused, PROTECTED)
    allowed = patch_of(workspace, {"a.py": "fine = '\u200b'\n", "fa.md": "\u2067\n"})
    enforce_policy(workspace, allowed, PROTECTED)
