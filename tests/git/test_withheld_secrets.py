"""Tests of removing Resolver's own secrets from the patch that is kept."""

from pathlib import Path

import pytest

from resolver.git.policy import withhold_secrets
from resolver.models.run import Patch
from resolver.security.redaction import MARK, Redactor
from tests.git.scenario import Scenario, copy_scenario, make_repository, open_scenario, write
from tests.parts.templates import Templates

SECRET = "sk-test-0123456789abcdefghij"
LARGE = 1_000_000
BINARY = bytes(range(256)) * 20


def build_scenario(place: Path) -> Scenario:
    files: dict[str | bytes, bytes | str] = {
        "README.md": "hello\n",
        "settings.py": f"password = {SECRET!r}\n",
        "picture.bin": BINARY,
    }
    return open_scenario(make_repository(place / "source", files), place)


@pytest.fixture
def scenario(templates: Templates, tmp_path: Path) -> Scenario:
    return copy_scenario(templates, build_scenario, tmp_path)


def withhold(scenario: Scenario, max_bytes: int = LARGE) -> tuple[Patch, Patch, tuple[str, ...]]:
    """Return the exported patch, the same without secrets, and the names of the leaking files."""
    exported = scenario.export()
    kept, leaking = withhold_secrets(scenario.workspace, exported, Redactor([SECRET]), max_bytes)
    assert SECRET not in kept.model_dump_json() + kept.diff.decode("latin-1")
    return exported, kept, leaking


def test_a_patch_without_secrets_is_kept_unchanged(scenario: Scenario) -> None:
    write(scenario.root, "README.md", "hello there\n")
    write(scenario.root, "picture.bin", BINARY + b"\0")
    exported, kept, leaking = withhold(scenario)
    assert (kept, leaking) == (exported, ())
    assert b"GIT binary patch" in kept.diff


def test_an_added_secret_is_replaced_and_its_files_are_named_in_order(scenario: Scenario) -> None:
    write(scenario.root, "z.env", f"KEY={SECRET}\n")
    write(scenario.root, "README.md", f"hello\n\nuse {SECRET}\n")
    write(scenario.root, "other.txt", "nothing\n")
    exported, kept, leaking = withhold(scenario)
    assert leaking == ("README.md", "z.env")
    assert kept.diff == exported.diff.replace(SECRET.encode(), MARK.encode())
    assert kept.files == exported.files


def test_binary_content_is_left_out_if_a_file_leaks_a_secret(scenario: Scenario) -> None:
    write(scenario.root, "picture.bin", BINARY[5:] + SECRET.encode())
    write(scenario.root, "wide.txt", f"key {SECRET}\n".encode("utf-16"))
    write(scenario.root, "z.txt", "the last file\n")
    exported, kept, leaking = withhold(scenario)
    assert leaking == ("picture.bin", "wide.txt")
    assert exported.diff.count(b"GIT binary patch") == 2
    assert b"GIT binary patch" not in kept.diff
    assert kept.diff.count(b"Binary content left out\n") == 2
    assert b"+the last file\n" in kept.diff
    # Nothing of the compressed content is left, in either direction.
    assert not any(line.startswith((b"literal", b"delta")) for line in kept.diff.splitlines())


def test_a_secret_in_a_file_name_is_replaced_wherever_the_name_is(scenario: Scenario) -> None:
    write(scenario.root, f"notes-{SECRET}.txt", "x\n")
    write(scenario.root, "README.md", "hello there\n")
    _, kept, leaking = withhold(scenario)
    assert leaking == (f"notes-{MARK}.txt",)
    assert [file.path for file in kept.files] == ["README.md", f"notes-{MARK}.txt"]


def test_a_file_that_had_a_secret_leaks_only_if_the_change_adds_one(scenario: Scenario) -> None:
    write(scenario.root, "settings.py", f"# edited\npassword = {SECRET!r}\n")
    assert withhold(scenario)[2] == ()
    write(scenario.root, "settings.py", f"password = {SECRET!r}\nagain = {SECRET!r}\n")
    assert withhold(scenario)[2] == ("settings.py",)
    write(scenario.root, "settings.py", "password = ''\n")
    assert withhold(scenario)[2] == ()


def test_content_is_searched_up_to_the_limit_and_binary_left_out_beyond(scenario: Scenario) -> None:
    content = f"KEY={SECRET}\n".encode()
    write(scenario.root, "new.env", content)
    assert withhold(scenario, max_bytes=len(content))[2] == ("new.env",)
    write(scenario.root, "new.bin", BINARY)
    size = len(content) + len(BINARY)
    assert withhold(scenario, max_bytes=size)[2] == ("new.env",)
    _, kept, leaking = withhold(scenario, max_bytes=size - 1)
    assert leaking == ()
    assert b"Binary content left out" in kept.diff and MARK.encode() in kept.diff
