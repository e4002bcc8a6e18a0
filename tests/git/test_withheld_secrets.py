"""Tests of removing Resolver's own secrets from the patch that is kept."""

from base64 import b64encode

import pytest

from resolver.git.policy import withhold_secrets
from resolver.git.workspace import Workspace
from resolver.models.run import Patch
from resolver.security.redaction import MARK, Redactor
from tests.git.trees import Changes, Link, patch_of, write_base

SECRET = "sk-test-0123456789abcdefghij"
KEPT = f"password = {SECRET!r}\n"
BINARY = bytes(range(256)) * 20
BASE: Changes = {"README.md": "hello\n", "settings.py": KEPT, "picture.bin": BINARY}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return write_base(tmp_path_factory.mktemp("secrets") / "base.git", BASE)


def withhold(
    workspace: Workspace, changes: Changes, max_bytes: int = 1_000_000
) -> tuple[Patch, Patch, tuple[str, ...]]:
    """Return the exported patch, the same without secrets, and the names of the leaking files."""
    exported = patch_of(workspace, changes)
    kept, leaking = withhold_secrets(workspace, exported, Redactor([SECRET]), max_bytes)
    assert SECRET not in kept.model_dump_json() + kept.diff.decode("latin-1")
    return exported, kept, leaking


@pytest.mark.parametrize(
    ("changes", "leaking"),
    [
        ({"README.md": "hello there\n", "picture.bin": BINARY + b"\0"}, ()),
        ({"z.env": f"KEY={SECRET}\n", "README.md": f"hello\n\nuse {SECRET}\n", "other.txt": "n\n"},
         ("README.md", "z.env")),
        ({f"notes-{SECRET}.txt": "x\n"}, (f"notes-{MARK}.txt",)),
        # A file that had a secret leaks only if the change adds one.
        ({"settings.py": f"# edited\n{KEPT}"}, ()),
        ({"settings.py": KEPT * 2}, ("settings.py",)),
        ({"settings.py": "password = ''\n"}, ()),
    ],
)  # fmt: skip
def test_files_with_an_added_secret_are_named_in_order(
    workspace: Workspace, changes: Changes, leaking: tuple[str, ...]
) -> None:
    exported, kept, found = withhold(workspace, changes)
    assert found == leaking
    assert kept.diff == exported.diff.replace(SECRET.encode(), MARK.encode())
    assert [f.path for f in kept.files] == [f.path.replace(SECRET, MARK) for f in exported.files]


@pytest.mark.attack
@pytest.mark.parametrize(
    "changes",
    [
        {"leak.txt": SECRET},
        {"leak.bin": b"\0\1" + SECRET.encode()},
        {"leak.txt": SECRET.encode("utf-16")},
        {"leak.txt": b64encode(b"x" + SECRET.encode())},
        {"leak": Link(SECRET)},
        {f"x{SECRET}": ""},
    ],
    ids=["text", "binary", "UTF-16", "base64", "link", "name"],
)
def test_a_secret_is_found_in_every_form(workspace: Workspace, changes: Changes) -> None:
    """A change hides a secret in text, binary data, UTF-16, base64, a link or a name: it is found,
    and the kept patch lacks it."""
    _, kept, leaking = withhold(workspace, changes)
    assert len(leaking) == 1
    assert b64encode(b"x" + SECRET.encode()) not in kept.diff


def test_binary_content_is_left_out_if_a_file_leaks_a_secret(workspace: Workspace) -> None:
    changes: Changes = {
        "picture.bin": BINARY[5:] + SECRET.encode(),
        "wide.txt": f"key {SECRET}\n".encode("utf-16"),
        "z.txt": "the last file\n",
    }
    exported, kept, leaking = withhold(workspace, changes)
    assert leaking == ("picture.bin", "wide.txt")
    assert exported.diff.count(b"GIT binary patch") == 2
    assert b"GIT binary patch" not in kept.diff
    assert kept.diff.count(b"Binary content left out\n") == 2
    assert b"+the last file\n" in kept.diff
    # Nothing of the compressed content is left, in either direction.
    assert not any(line.startswith((b"literal", b"delta")) for line in kept.diff.splitlines())


def test_content_is_searched_up_to_the_limit_and_binary_left_out_beyond(
    workspace: Workspace,
) -> None:
    content = f"KEY={SECRET}\n".encode()
    changes: Changes = {"new.env": content, "new.bin": BINARY}
    size = len(content) + len(BINARY)
    assert withhold(workspace, changes, size)[2] == ("new.env",)
    _, kept, leaking = withhold(workspace, changes, size - 1)
    assert leaking == ()
    assert b"Binary content left out" in kept.diff and MARK.encode() in kept.diff
