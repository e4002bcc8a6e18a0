"""What a command was for, and the lines that say how it ended."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.memory.outcomes import changed_by, checks_in, is_piped, outcome_of


@pytest.mark.parametrize(
    ("command", "checks"),
    [
        ("cd x && CI=1 pytest -q tests | tail -5", ("pytest -q tests",)),
        ("python3 -m pytest -q 2>&1", ("pytest -q",)),
        ("timeout 60 python -m unittest -v", ("unittest -v",)),
        ("poetry run pytest", ("pytest",)),
        ("npm run test:unit", ("npm run test:unit",)),
        ("cargo test --all", ("cargo test --all",)),
        ("go test ./...", ("go test ./...",)),
        ("./gradlew :app:test", ("./gradlew :app:test",)),
        ("mvn -q verify", ("mvn -q verify",)),
        ("make -j4 check", ("make -j4 check",)),
        ("python manage.py test app", ("python manage.py test app",)),
        ("./run_tests.sh a", ("./run_tests.sh a",)),
        ("python tests/test_x.py", ("python tests/test_x.py",)),
        ("ruff check . && mypy", ("ruff check .", "mypy")),
        ("pip install pytest", ()),
        ("grep pytest setup.cfg", ()),
        ("echo 'pytest'; cat pytest.ini", ()),
        ("git commit -m 'x; pytest'", ()),
        ("make", ()),
        ("cat <<EOF\npytest\nEOF", ()),
    ],
)
def test_commands_that_test_build_or_lint_are_known(command: str, checks: tuple[str, ...]) -> None:
    assert checks_in(command) == checks


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("sed -i 's/a - b/a + b/' calc.py", ("calc.py",)),
        ("sed -i -e '3d' -e 's|a/b|c|g' x.py", ("x.py",)),
        ("perl -pi -e 's/a/b/' x.pl y.pl", ("x.pl", "y.pl")),
        ("cat > x.py <<'EOF'\nif a > b: print(1)\nEOF", ("x.py",)),
        ("cat <<'EOF' > a.py\nx\nEOF\npytest", ("a.py",)),
        ("echo a >> b.txt; cat c", ("b.txt",)),
        ("pytest 2>&1 | tee out.txt", ("out.txt",)),
        ("git mv a.py b.py", ("a.py", "b.py")),
        ("mv 'a b.py' c.py", ("a b.py", "c.py")),
        ("cp a.py b.py", ("b.py",)),
        ("git checkout -- a.py", ("a.py",)),
        ("git stash", ()),
        ("black .", ()),
        ("sed -n 1,5p x", None),
        ("ls > /tmp/x", None),
        ("cp a.py /tmp/b.py", None),
        ("cat a 2>/dev/null", None),
        ("python -c 'print(1 > 2)'", None),
        ("grep -rn 'x -> y' .", None),
        ("[ 1 -gt 0 ] && echo x", None),
        ("git diff", None),
        ("rm 'open", ()),
    ],
)
def test_what_a_command_changes_is_known(command: str, paths: tuple[str, ...] | None) -> None:
    assert changed_by(command) == paths


def test_what_failed_and_the_last_words_are_the_outcome() -> None:
    output = (
        ".F.\nE   assert 1 == 2\nnoise\nFAILED t.py::x - assert\n\n1 failed, 2 passed in 0.1s\n"
    )
    assert outcome_of(output).split("\n") == [
        "E   assert 1 == 2", "FAILED t.py::x - assert", "1 failed, 2 passed in 0.1s",
    ]  # fmt: skip


def test_many_failures_are_counted() -> None:
    output = "\n".join(f"FAILED t.py::x{n}" for n in range(40)) + "\n40 failed"
    told = outcome_of(output)
    assert "t.py::x5" in told and "t.py::x6\n" not in told
    assert "(and 34 more such lines)" in told and told.endswith("40 failed")


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    checks_in(text)
    changed_by(text)
    assert len(outcome_of(text)) <= 600


@pytest.mark.parametrize(
    "word", ["<<A\n", "<<A x", "test/", "a.-", "> a ", "sudo ", "make a:", "'", '\\"', "open('"]
)
def test_a_hostile_command_is_read_in_bounded_time(word: str) -> None:
    begin = time.perf_counter()
    checks_in("python " + word * 20_000)
    changed_by("sed -i " + word * 20_000)
    changed_by('python -c "' + word * 20_000)
    is_piped('x "' + word * 20_000)
    assert time.perf_counter() - begin < 2


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("python - <<'EOF'\nopen('src/a.py', 'w').write('x')\nEOF", ("src/a.py",)),
        ("cd x && python3 -c \"Path('b.txt').write_text('')\"", ("b.txt",)),
        ("python - <<'EOF'\nprint(open('a.py').read())\nEOF", None),
        ("grep -n \"open('a.py', 'w')\" src", None),
        ("rm /tmp/x && git stash", ()),
        ("rm /tmp/x", None),
        ("find . -name x -exec rm {} \\; > found", ("found",)),
        ("echo it\\'s; touch a", ("a",)),
    ],
)
def test_python_in_a_command_line_and_scratch_files(
    command: str, paths: tuple[str, ...] | None
) -> None:
    assert changed_by(command) == paths


@pytest.mark.parametrize(
    ("command", "piped"),
    [
        ("pytest | tail", True),
        ("pytest 2>&1 | tee log", True),
        ("pytest || true", False),
        ("pytest -k 'a|b'", False),
        ("set -o pipefail; pytest | tail", False),
    ],
)
def test_a_pipe_is_seen(command: str, piped: bool) -> None:
    assert is_piped(command) == piped
