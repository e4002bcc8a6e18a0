"""Tests of which files of the repository a command line writes."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.security.shell.writes import WrittenPaths, written_in, written_paths
from tests.shell.test_checks import PIECES

NAMED = [
    ("sed -i 's/a - b/a + b/' calc.py", ("calc.py",)),
    ("sed -i -e '3d' -e 's|a/b|c|g' x.py", ("x.py",)),
    ("/usr/bin/sed -i s/a/b/ x.py", ("x.py",)),
    ("sed -i.bak s/a/b/ x.py", ("x.py",)),
    ("bash -c 'sed -i s/a/b/ x.py'", ("x.py",)),
    ("perl -pi -e 's/a/b/' x.pl y.pl", ("x.pl", "y.pl")),
    ("cat > x.py <<'EOF'\nif a > b: print(1)\nEOF", ("x.py",)),
    ("cat <<'EOF' > a.py\nx\nEOF\npytest", ("a.py",)),
    ("echo a >> b.txt; cat c", ("b.txt",)),
    ("ls | tee out.txt", ("out.txt",)),
    ("git mv a.py b.py", ("a.py", "b.py")),
    ("git -C sub rm a.py", ("a.py",)),
    ("mv 'a b.py' c.py", ("a b.py", "c.py")),
    ("cp a.py b.py", ("b.py",)),
    ("git checkout -- a.py", ("a.py",)),
    ("git restore a.py", ("a.py",)),
    ("echo it\\'s; touch a", ("a",)),
    ("python - <<'EOF'\nopen('src/a.py', 'w').write('x')\nEOF", ("src/a.py",)),
    ("cd x && python3 -c \"Path('b.txt').write_text('')\"", ("b.txt",)),
    ("cd /tmp && touch x; cd /work && touch y", ("y",)),
    ("touch /tmp/../work/a", ("/tmp/../work/a",)),
]

UNNAMED = [
    "git stash",
    "git stash pop",
    "git stash push -m x",
    "git apply fix.patch",
    "git am < a.patch",
    "git checkout main",
    "git checkout f",
    "git reset --hard",
    "git revert HEAD",
    "git merge other",
    "git rebase main",
    "git cherry-pick abc",
    "git pull",
    "git clean -fd",
    "rm /tmp/x && git stash",
    "black .",
    "isort a.py",
    "ruff format .",
    "ruff check --fix .",
    "npx eslint --fix src",
    "npx prettier --write .",
    "python -m black .",
    "make fmt",
    "npm run format",
    "npm run lint:fix",
    "npx jest -u",
    "pytest --snapshot-update",
    "cargo fmt",
    "go mod tidy",
    "patch -p1 < /tmp/a.diff",
    "grep -rl a | xargs sed -i s/a/b/",
    "find . -name '*.py' -exec sed -i s/a/b/ {} +",
    "find . -name x -delete",
    "touch $FILE",
    "python - <<'EOF'\np = Path(name)\np.write_text('x')\nEOF",
    "python3 -c \"f = open(name, 'w'); f.write('x')\"",
    "node -e \"fs.writeFileSync(name, 'x')\"",
]

NOTHING = [
    "sed -n 1,5p x",
    "ls > /tmp/x",
    "cp a.py /tmp/b.py",
    "rm /tmp/x",
    "cat a 2>/dev/null",
    "pytest -q 2>&1",
    "pytest > out.log",
    "pytest 2>&1 | tee out.txt",
    "python -c 'print(1 > 2)'",
    "python -c \"open('/tmp/a', 'w').write('x')\"",
    "python - <<'EOF'\nwith open('/tmp/a', 'w') as f:\n    f.write('x')\nEOF",
    "python - <<'EOF'\nprint(open('a.py').read())\nEOF",
    "grep -rn 'x -> y' .",
    "grep -n \"open('a.py', 'w')\" src",
    "[ 1 -gt 0 ] && echo x",
    "git diff",
    "git status",
    "git log --oneline",
    "git add -A && git commit -m 'sed -i x'",
    "git checkout -b fix",
    "git switch -c fix",
    "git stash list",
    "git merge-base a b",
    "git reset a.py",
    "git restore --staged a.py",
    "git rm --cached a.py",
    "git apply --check a.patch",
    "black --check .",
    "isort --check .",
    "isort --check-only .",
    "ruff format --check .",
    "ruff check .",
    "cargo fmt --check",
    "npm test",
    "make test",
    "npm run format:check",
    "cd /tmp && touch x",
    "echo \0005\0",
    "echo \0" + "9" * 5_000 + "\0",
    "",
]


@pytest.mark.parametrize(("command", "paths"), NAMED)
def test_written_paths_that_are_named_are_known(command: str, paths: tuple[str, ...]) -> None:
    found = written_paths(command)
    assert (found.paths, found.unknown) == (paths, False)


@pytest.mark.parametrize("command", UNNAMED)
def test_writes_to_unnamed_files_are_detected(command: str) -> None:
    assert written_paths(command).unknown


@pytest.mark.parametrize("command", NOTHING)
def test_commands_that_only_read_check_or_commit_write_nothing(command: str) -> None:
    assert not written_paths(command)


def test_a_repository_may_be_in_a_temporary_folder() -> None:
    assert written_paths("touch /tmp/run/work/a /tmp/b", "/tmp/run/work").paths == (
        "/tmp/run/work/a",
    )


def test_a_single_failed_step_has_written_nothing() -> None:
    assert written_paths("cd a && sed -i s/a/b/ a.py").whole
    for command in ("sed -i s/a/b/ a.py && pytest", "sed -i s/a/b/ a b", "ls > a", "git stash"):
        assert not written_paths(command).whole


@given(
    st.lists(st.sampled_from((*PIECES, "sed -i ", "\0001\0")) | st.text(max_size=5), max_size=60)
)
def test_any_text_is_parsed(pieces: list[str]) -> None:
    written_paths("".join(pieces))
    written_in("".join(pieces))


@pytest.mark.deep
@pytest.mark.parametrize(
    "piece", ["sed -i a;", "> a ", "xargs ", "bash -c '", "open('", "find -exec ", "a|", "\0005\0"]
)
def test_twice_the_text_takes_about_twice_the_time(piece: str) -> None:
    began = time.process_time()
    written_paths("python -c " + piece * (100_000 // len(piece)))
    written_in(piece * (100_000 // len(piece)))
    assert time.process_time() - began < 4


def test_an_empty_command_runs_no_other_code() -> None:
    assert not WrittenPaths() and WrittenPaths(unknown=True) and WrittenPaths(("a",))
