"""What the checklist is ticked by: checks and edits in the order of the log, and nothing else."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.lifecycle import DelegateEvent, StageCompleted
from resolver.events.log import Event
from resolver.forge.course import Course
from resolver.thread.course import Following
from tests.trace.events import any_events

EDIT = "str_replace"
WHEN = datetime(2026, 1, 2, tzinfo=UTC)


class Log:
    """Events, numbered as a log does."""

    def __init__(self) -> None:
        self.following = Following()
        self.course = Course()
        self._next = 0

    def add(self, event: Event) -> int:
        number, self._next = self._next, self._next + 1
        self.course = self.following.take(event.model_copy(update={"id": number}))
        return number

    def ran(self, command: str, exit_code: int | None = 0, output: str = "") -> Course:
        cause = self.add(a.CmdRun(command=command))
        self.add(o.CmdOutput(content=output, exit_code=exit_code, cause=cause))
        return self.course

    def edited(self, path: str = "a.py") -> Course:
        cause = self.add(a.FileEdit(command="str_replace", path=path, old_str="a", new_str="b"))
        self.add(o.FileEditResult(content="", path=path, cause=cause))
        return self.course


def reproduced(course: Course) -> str | None:
    return course.reproduced.command if course.reproduced else None


def verified(course: Course) -> bool:
    return course.edited and course.newest is not None and course.newest.passed


def test_a_check_that_fails_then_an_edit_then_a_check_that_passes() -> None:
    log = Log()
    assert reproduced(log.ran("pytest -q", 1)) == "pytest -q"
    assert not log.course.edited
    assert (log.edited().edited, log.course.files, log.course.newest) == (True, 1, None)
    assert verified(log.ran("pytest -q"))
    assert reproduced(log.course) == "pytest -q"


@pytest.mark.parametrize(
    "edit",
    [
        "sed -i s/a/b/ a.py",
        "cat > a.py <<'EOF'\nx\nEOF",
        "git stash",
        "python - <<'EOF'\np = Path(name)\np.write_text('x')\nEOF",
        "python3 -c \"f = open(name, 'w'); f.write('x')\"",
        "node -e \"fs.writeFileSync(name, 'x')\"",
        "pytest -q && sed -i s/a/b/ a.py",
    ],
)
def test_what_fails_after_an_edit_by_a_command_is_not_reproduced(edit: str) -> None:
    log = Log()
    log.ran(edit)
    assert log.course.edited and log.course.files is None
    assert reproduced(log.ran("pytest -q", 1)) is None


@pytest.mark.parametrize("code", ["p.write_text('x')", "open('a.py', 'w')", "!sed -i s/a/b/ a.py"])
def test_a_cell_that_writes_is_an_edit(code: str) -> None:
    log = Log()
    cause = log.add(a.IPythonRunCell(code=code))
    log.add(o.IPythonOutput(content="", cause=cause))
    assert log.course.edited


@pytest.mark.parametrize(
    "look",
    [
        "ls; cat a.py",
        "git diff",
        "python -c 'import a; print(a.f())'",
        "cat > /tmp/try.py <<'EOF'\nimport a\nEOF",
        "python /tmp/try.py",
        "grep -rn x . 2>/dev/null | head",
    ],
)
def test_looking_around_edits_nothing(look: str) -> None:
    log = Log()
    assert not log.ran(look).edited
    assert reproduced(log.ran("pytest -q", 1)) == "pytest -q"


def test_an_edit_after_a_check_that_passed_takes_the_tick_back() -> None:
    log = Log()
    log.edited()
    assert verified(log.ran("pytest -q"))
    assert not verified(log.edited("b.py"))
    assert log.course.files == 2


def test_a_check_that_still_fails_is_not_outdone_by_another_that_passes() -> None:
    log = Log()
    log.edited()
    log.ran("pytest -q", 1)
    assert not verified(log.ran("ruff check ."))
    assert log.course.newest and log.course.newest.command == "pytest -q"
    assert verified(log.ran("pytest -q"))


@pytest.mark.parametrize(
    ("command", "exit_code", "output"),
    [
        ("pytest -q", 127, "bash: pytest: command not found"),
        ("timeout 5 pytest -q", 124, ""),
        ("python -m pytest", 1, "/usr/bin/python: No module named pytest"),
        ("pytest -q -k none", 5, "3 deselected in 0.1s\nno tests ran in 0.1s"),
        ("cd nowhere && pytest -q", 1, "bash: line 1: cd: nowhere: No such file or directory"),
        ("pip install x && pytest -q", 1, ""),
        ("pytest -q; exit 1", 1, ""),
        ("pytest -q || false", 1, ""),
        ("! pytest -q", 1, ""),
        ("pytest -q", None, ""),
        ("which pytest", 1, ""),
        ("pip install pytest", 1, ""),
        ("grep -q pytest setup.cfg", 1, ""),
        ("make", 2, ""),
    ],
)
def test_what_says_nothing_of_a_check_reproduces_nothing(
    command: str, exit_code: int | None, output: str
) -> None:
    assert reproduced(Log().ran(command, exit_code, output)) is None


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("pytest -q | tail -3", ""),
        ("pytest -q || true", ""),
        ("pytest -q &", ""),
        ("! pytest -q", ""),
        ("pytest -q; echo done", "done"),
        ("pytest -q | tail -3", "1 failed, 4 passed in 0.1s"),
        ("python -m unittest", "Ran 0 tests in 0.0s\n\nOK"),
    ],
)
def test_an_exit_code_of_something_else_verifies_nothing(command: str, output: str) -> None:
    log = Log()
    log.edited()
    assert not verified(log.ran(command, 0, output))


def test_where_the_exit_code_is_another_program_s_the_output_decides() -> None:
    log = Log()
    course = log.ran("pytest -q | tail -3", 0, "FAILED t.py::x\n1 failed, 4 passed in 0.1s")
    assert course.reproduced and course.reproduced.ended == "fails"
    log.edited()
    assert verified(log.ran("pytest -q | tail -3", 0, "5 passed in 0.1s"))


def test_the_change_that_was_taken_out_says_how_many_files() -> None:
    log = Log()
    log.ran("sed -i s/a/b/ a.py b.py")
    log.add(StageCompleted(stage="change", detail="2 files changed, 1 left out"))
    assert (log.course.edited, log.course.files) == (True, 2)
    log.add(StageCompleted(stage="change", detail="0 files changed"))
    assert (log.course.edited, log.course.files) == (False, None)


def test_a_failed_edit_is_none() -> None:
    log = Log()
    cause = log.add(a.FileWrite(path="a.py", content="x"))
    log.add(o.ErrorObservation(content="it is there already", cause=cause))
    assert not log.course.edited


def test_what_a_delegate_does_counts() -> None:
    log = Log()
    inner: list[Event] = [
        a.CmdRun(id=0, timestamp=WHEN, command="pytest -q"),
        o.CmdOutput(id=1, timestamp=WHEN, content="", exit_code=1, cause=0),
        a.FileWrite(id=2, timestamp=WHEN, path="a.py", content="x"),
        o.FileWriteResult(id=3, timestamp=WHEN, content="", path="a.py", cause=2),
    ]
    delegate = log.add(a.Delegate(agent="X", task="y"))
    for event in inner:
        log.add(DelegateEvent(delegate=delegate, event=event.model_dump(mode="json")))
    assert reproduced(log.course) == "pytest -q" and log.course.files == 1


@given(any_events())
def test_any_log_is_followed(events: list[Any]) -> None:
    following = Following()
    for event in events:
        following.take(event)


@pytest.mark.parametrize("word", ["open(", "python ", "x.write", "FAIL ", "cd: ", "! ", "&& "])
def test_hostile_text_is_read_in_bounded_time(word: str) -> None:
    log = Log()
    began = time.perf_counter()
    log.ran("python " + word * 20_000, 1, word * 20_000)
    log.ran("pytest | " + word, 1, word * 20_000)
    cause = log.add(a.IPythonRunCell(code=word * 20_000))
    log.add(o.IPythonOutput(content="", cause=cause))
    assert time.perf_counter() - began < 2


def test_a_long_log_is_followed_in_linear_time() -> None:
    log = Log()
    began = time.perf_counter()
    for number in range(4_000):
        log.ran(f"pytest -q t{number % 50}.py", number % 2)
    assert time.perf_counter() - began < 4
