"""Which files an action has changed, reported by a real server on a real repository."""

import subprocess
from pathlib import Path

import pytest

from resolver.sandbox import setup_files
from resolver.sandbox.changed_paths import TreeComparison
from tests.parts.work import executed_lines
from tests.sandbox.connection import Connection

IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.com")


def git(folder: Path, *args: str) -> str:
    command = ["git", "-C", str(folder), *IDENTITY, *args]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(server: Connection, root: Path, tmp_path: Path) -> Connection:
    """A server with a checkout whose changes are reported."""
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "--quiet")
    for name, text in (
        ("a.py", "a = 1\n"),
        ("src/b.py", "b = 1\n"),
        (".gitignore", "build/\n"),
        ("lib/deep/c.py", "c = 1\n"),
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    git(source, "add", "--all")
    git(source, "commit", "--quiet", "--message", "First")
    copy = tmp_path / "copy.git"
    git(source, "clone", "--quiet", "--bare", str(source), str(copy))
    git(copy, "config", "core.bare", "false")
    commit = git(source, "rev-parse", "HEAD")
    server.call("checkout", git_dir=str(copy), commit=commit, branch="main")
    server.call("report_changes")
    return server


def changed(server: Connection, command: str) -> list[str]:
    result = server.shell(command)
    assert len(result["changed"]) == result["changed_count"], result
    return result["changed"]


def test_nothing_is_known_before_reports_are_requested(server: Connection) -> None:
    result = server.shell("echo a >new")
    assert result["changed"] is None and result["changed_count"] == 0


CHANGES: list[tuple[str, list[str]]] = [
    ("cat a.py; git status; ls -la src", []),
    ("echo x >>a.py", ["a.py"]),
    ("sed -i s/1/2/ src/b.py lib/deep/c.py", ["lib/deep/c.py", "src/b.py"]),
    ("mkdir -p new/er; cd new/er; echo x >f", ["new/er/f"]),
    ("git mv a.py src/a.py", ["a.py", "src/a.py"]),
    ("rm -r lib", ["lib/deep/c.py"]),
    ("chmod +x a.py", ["a.py"]),
    ("ln -s a.py link", ["link"]),
    ("mv src moved", ["moved/b.py", "src/b.py"]),
    ("python3 -c \"open('a.py', 'r+b').write(b'z')\"", ["a.py"]),
    ("echo x >/tmp/outside-$$; rm /tmp/outside-$$", []),
    ("mkdir build __pycache__; echo x >build/x; echo x >__pycache__/x.pyc", []),
    ("touch a.py; cp a.py b; mv b a.py", []),
    ("echo x >f; rm f", []),
    ("git commit --quiet --allow-empty -m x 2>&1; git branch other", []),
]


def test_a_command_reports_what_it_changed(repository: Connection) -> None:
    for command, paths in CHANGES:
        assert changed(repository, command) == paths, command
        assert changed(repository, "true") == [], command
        repository.shell("cd $(git rev-parse --show-toplevel); git reset --quiet --hard HEAD")
        repository.shell("git clean -dfxq")


def test_each_action_reports_its_own_changes(repository: Connection) -> None:
    assert changed(repository, "mkdir made") == []
    assert changed(repository, "echo 1 >made/one; echo 1 >a.py") == ["a.py", "made/one"]
    assert changed(repository, "echo 2 >made/one") == ["made/one"]
    assert changed(repository, "mv made moved") == ["made/one", "moved/one"]
    assert changed(repository, "echo 3 >moved/two") == ["moved/two"]
    assert changed(repository, "git checkout --quiet a.py") == ["a.py"]
    assert changed(repository, "mkdir -p build/x __pycache__") == []
    assert changed(repository, "echo x >build/x/y") == []
    assert repository.shell("true")["differing"] == 2


def test_edits_and_cells_report_their_changes(repository: Connection) -> None:
    made = repository.call("create", path="src/new.py", file_text="x = 1\n")
    assert made["changed"] == ["src/new.py"]
    edit = repository.call("str_replace", path="a.py", old_str="a = 1", new_str="a = 2")
    assert edit["changed"] == ["a.py"]
    cell = repository.call("run_cell", code="open('src/b.py', 'a').write('#')", timeout=30)
    assert cell["changed"] == ["src/b.py"] and cell["changed_count"] == 1


@pytest.mark.parametrize(
    "commit", ["true", f"git -C new {' '.join(IDENTITY)} commit --quiet --allow-empty -m x"]
)
def test_a_repository_that_a_command_makes_is_named_once(
    repository: Connection, commit: str
) -> None:
    result = repository.shell(f"git init --quiet new; echo x >new/f; {commit}")
    assert (result["changed"], result["repositories"]) == (["new/"], ["new/"])
    assert repository.shell("echo y >new/g")["repositories"] == []
    result = repository.shell("rm -rf new/.git")
    assert result["repositories"] == [] and "new/f" in result["changed"]


def test_a_long_list_is_cut_and_counted(repository: Connection) -> None:
    result = repository.shell("for i in $(seq 100 199); do echo x >f$i; done")
    assert result["changed"] == [f"f{number}" for number in range(100, 150)]
    assert result["changed_count"] == 100


def test_a_broken_repository_takes_the_report_but_not_the_result(
    repository: Connection, tmp_path: Path
) -> None:
    (tmp_path / "scratch" / "repository.git" / "HEAD").unlink()
    result = repository.shell("echo x >>a.py; echo done")
    assert result["output"] == "done\n" and result["changed"] is None


@pytest.mark.attack
def test_the_work_for_nested_folders_grows_with_their_number(tmp_path: Path) -> None:
    """A repository has a thousand folders within one another: each is looked at once, and the run
    does not wait for minutes."""

    def compare(depth: int) -> int:
        row = b"?? " + b"d/" * depth + b"x\0"
        comparison = TreeComparison(str(tmp_path), lambda args: row if "status" in args else b"")
        return executed_lines(lambda: comparison.take())

    assert compare(600) < 2.5 * compare(300)


@pytest.mark.parametrize(
    ("path", "outermost"),
    [
        ("src/a.py", None),
        ("src/__pycache__/deep/a.pyc", "src/__pycache__/"),
        ("src/a.pyc", "src/a.pyc"),
        ("a [b]/venv/lib/x.py", "a [b]/venv/"),
        ("a [b]/venv/lib/__pycache__/x.py", "a [b]/venv/"),
        ("a [b]/venv2/x.py", None),
        ("x/a [b]/venv/x.py", None),
        ("__pycache__/a [b]/venv/x.py", "__pycache__/"),
    ],
)
def test_a_generated_path_is_named_by_its_outermost_folder(
    path: str, outermost: str | None
) -> None:
    new_files = [b"a [b]/venv/pyvenv.cfg", b"src/__pycache__/a.pyc"]
    patterns = setup_files.find_patterns(new_files, list)
    assert setup_files.is_generated(path.encode(), patterns) == (outermost is not None)
    expected = path if outermost is None else outermost
    assert setup_files.name_left_out([path.encode()], patterns) == [expected.encode()]
