"""Tests of commands and cells that may check something without being a known check."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.security.shell.other_code import cell_runs_other_code, runs_other_code


@pytest.mark.parametrize(
    "command",
    [
        "python3 -c 'import calc; assert calc.add(1, 1) == 2'",
        "sed -i s/a/b/ calc.py && python3 try.py",
        "python3 - <<'EOF'\nassert 1\nEOF",
        "./try.sh",
        "bash -c 'python3 try.py'",
        "timeout 5 node try.js",
        "for f in *.py; do python3 $f; done",
        "check() { python3 try.py; }; check",
        "echo $(python3 try.py)",
        "cat > out <<EOF\nit's $(python3 try.py)\nEOF",
        "diff want <(python3 try.py)",
        "find . -name 'try*' -exec python3 {} +",
        "ls *.py | xargs -n 1 python3",
        "source ./try.sh",
        "git bisect run ./try.sh",
        "pytest -q; python3 try.py",
        "make",
        "$PROGRAM",
        "cat a.py " + "x" * 200_000,
    ],
)
def test_commands_that_may_have_checked_are_detected(command: str) -> None:
    assert runs_other_code(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "# python3 try.py",
        "cd src && grep -rn 'python3 try.py' . | head -5",
        "sed -i 's/a/b/' calc.py; git diff",
        "cat > try.py <<'EOF'\nimport os; os.system(\"python3 x `date`\")\nEOF",
        "awk '{print $(NF)}' a.txt",
        "find . -name '*.py' -exec grep -n add {} +",
        "git ls-files | xargs wc -l",
        ". .venv/bin/activate && pip install -e .",
        "pytest -q tests | tail -5",
        "bash -c 'cd src && pytest'",
        "python3 -m pytest -q",
        "make fmt",
        "ruff check --fix .",
        "show() { cat a.py; }; show",
    ],
)
def test_commands_that_only_read_edit_or_check_run_no_other_code(command: str) -> None:
    assert not runs_other_code(command)


@pytest.mark.parametrize(
    ("code", "runs"),
    [
        ("edit_file_by_replace('a.py', 'x', 'y')\nopen_file('a.py', 3)", False),
        ("", False),
        (r"edit_file_by_replace('a.py', '\d', 'y')", False),
        ("import calc\nassert calc.add(1, 1) == 2", True),
        ("open_file(check())", True),
        ("!pytest -q", True),
        ("f(", True),
    ],
)
def test_a_cell_that_calls_only_session_functions_runs_no_other_code(code: str, runs: bool) -> None:
    assert cell_runs_other_code(code) is runs


@given(st.text(alphabet="ab $(){}<>|&;'\"`\\\n=.-[]!#", max_size=60))
def test_any_text_gets_an_answer(text: str) -> None:
    runs_other_code(text)
    cell_runs_other_code(text)
