"""Tests of removing Resolver's own secrets from the patch that is kept."""

from pathlib import Path

import pytest

from resolver.git.policy import withhold_secrets
from resolver.models.run import Patch
from resolver.security.redaction import MARK, Redactor
from tests.git.scene import Scene, copy_scene, make_repository, open_scene, write
from tests.parts.templates import Templates

SECRET = "sk-test-0123456789abcdefghij"
LARGE = 1_000_000
BINARY = bytes(range(256)) * 20


def build_scene(place: Path) -> Scene:
    files: dict[str | bytes, bytes | str] = {
        "README.md": "hello\n",
        "settings.py": f"password = {SECRET!r}\n",
        "picture.bin": BINARY,
    }
    return open_scene(make_repository(place / "source", files), place)


@pytest.fixture
def scene(templates: Templates, tmp_path: Path) -> Scene:
    return copy_scene(templates, build_scene, tmp_path)


def withhold(scene: Scene, max_bytes: int = LARGE) -> tuple[Patch, Patch, tuple[str, ...]]:
    """Return the exported patch, the same without secrets, and the names of the leaking files."""
    exported = scene.export()
    kept, leaking = withhold_secrets(scene.workspace, exported, Redactor([SECRET]), max_bytes)
    assert SECRET not in kept.model_dump_json() + kept.diff.decode("latin-1")
    return exported, kept, leaking


def test_a_patch_without_secrets_is_kept_unchanged(scene: Scene) -> None:
    write(scene.root, "README.md", "hello there\n")
    write(scene.root, "picture.bin", BINARY + b"\0")
    exported, kept, leaking = withhold(scene)
    assert (kept, leaking) == (exported, ())
    assert b"GIT binary patch" in kept.diff


def test_an_added_secret_is_replaced_and_its_files_are_named_in_order(scene: Scene) -> None:
    write(scene.root, "z.env", f"KEY={SECRET}\n")
    write(scene.root, "README.md", f"hello\n\nuse {SECRET}\n")
    write(scene.root, "other.txt", "nothing\n")
    exported, kept, leaking = withhold(scene)
    assert leaking == ("README.md", "z.env")
    assert kept.diff == exported.diff.replace(SECRET.encode(), MARK.encode())
    assert kept.files == exported.files


def test_binary_content_is_left_out_if_a_file_leaks_a_secret(scene: Scene) -> None:
    write(scene.root, "picture.bin", BINARY[5:] + SECRET.encode())
    write(scene.root, "wide.txt", f"key {SECRET}\n".encode("utf-16"))
    write(scene.root, "z.txt", "the last file\n")
    exported, kept, leaking = withhold(scene)
    assert leaking == ("picture.bin", "wide.txt")
    assert exported.diff.count(b"GIT binary patch") == 2
    assert b"GIT binary patch" not in kept.diff
    assert kept.diff.count(b"Binary content left out\n") == 2
    assert b"+the last file\n" in kept.diff
    # Nothing of the compressed content is left, in either direction.
    assert not any(line.startswith((b"literal", b"delta")) for line in kept.diff.splitlines())


def test_a_secret_in_a_file_name_is_replaced_wherever_the_name_is(scene: Scene) -> None:
    write(scene.root, f"notes-{SECRET}.txt", "x\n")
    write(scene.root, "README.md", "hello there\n")
    _, kept, leaking = withhold(scene)
    assert leaking == (f"notes-{MARK}.txt",)
    assert [file.path for file in kept.files] == ["README.md", f"notes-{MARK}.txt"]


def test_a_file_that_had_a_secret_leaks_only_if_the_change_adds_one(scene: Scene) -> None:
    write(scene.root, "settings.py", f"# edited\npassword = {SECRET!r}\n")
    assert withhold(scene)[2] == ()
    write(scene.root, "settings.py", f"password = {SECRET!r}\nagain = {SECRET!r}\n")
    assert withhold(scene)[2] == ("settings.py",)
    write(scene.root, "settings.py", "password = ''\n")
    assert withhold(scene)[2] == ()


def test_a_binary_copy_of_a_secret_leaks_although_no_line_is_added(scene: Scene) -> None:
    write(scene.root, "copy.bin", BINARY + SECRET.encode())
    assert withhold(scene)[2] == ("copy.bin",)


def test_content_is_searched_up_to_the_limit_and_binary_left_out_beyond(scene: Scene) -> None:
    content = f"KEY={SECRET}\n".encode()
    write(scene.root, "new.env", content)
    assert withhold(scene, max_bytes=len(content))[2] == ("new.env",)
    write(scene.root, "new.bin", BINARY)
    size = len(content) + len(BINARY)
    assert withhold(scene, max_bytes=size)[2] == ("new.env",)
    _, kept, leaking = withhold(scene, max_bytes=size - 1)
    assert leaking == ()
    assert b"Binary content left out" in kept.diff and MARK.encode() in kept.diff
