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
from resolver.models.check_history import CheckHistory
from resolver.verification.check_tracker import CheckTracker, check_history_of
from tests.trace.events import any_events

EDIT = "str_replace"
WHEN = datetime(2026, 1, 2, tzinfo=UTC)


class Log:
    """Events, numbered as a log does."""

    def __init__(self) -> None:
        self.following = CheckTracker()
        self.course = CheckHistory()
        self.events: list[Event] = []

    def add(self, event: Event) -> int:
        number = len(self.events)
        self.events.append(event.model_copy(update={"id": number}))
        self.course = self.following.take(self.events[-1])
        return number

    def ran(self, command: str, exit_code: int | None = 0, output: str = "") -> CheckHistory:
        cause = self.add(a.CmdRun(command=command))
        self.add(o.CmdOutput(content=output, exit_code=exit_code, cause=cause))
        return self.course

    def polled(self, exit_code: int | None, output: str, sent: str = "") -> CheckHistory:
        cause = self.add(a.CmdRun(command=sent, is_input=True))
        self.add(o.CmdOutput(content=output, exit_code=exit_code, cause=cause))
        return self.course

    def edited(self, path: str = "a.py") -> CheckHistory:
        cause = self.add(a.FileEdit(command="str_replace", path=path, old_str="a", new_str="b"))
        self.add(o.FileEditResult(content="", path=path, cause=cause))
        return self.course


def reproduced(course: CheckHistory) -> str | None:
    return course.reproduced.command if course.reproduced else None


def verified(course: CheckHistory) -> bool:
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
        "git checkout -b fix",
        "pytest -q > out.log",
        "echo \0005\0",
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
        ("pytest -q --nosuch", 4, "ERROR: usage: pytest [options]\npytest: error: unrecognized"),
        ("pytest -q nosuch.py", 4, "ERROR: file or directory not found: nosuch.py"),
        ("pytest -q", 2, "!!! Interrupted: 1 error during collection !!!\n1 error in 0.1s"),
        ("pytest -q", 3, "INTERNALERROR> x"),
        ("pytest -q", 5, "5 deselected in 0.01s"),
        ("npm test", 1, 'npm ERR! Missing script: "test"'),
        ("npm test", 1, 'npm error Missing script: "test"'),
        ("make test", 2, "make: *** No rule to make target 'test'.  Stop."),
        ("cargo test", 101, "error: could not find `Cargo.toml` in `/w` or any parent directory"),
        ("cargo test", 101, "error: could not compile `a` (lib test) due to 1 previous error"),
        ("ruff check .", 1, "Found 12 errors."),
        ("mypy", 1, "Found 3 errors in 1 file"),
        ("cargo build", 101, "error: aborting"),
        ("npm run build", 1, ""),
        ("ruff check . && pytest -q", 1, "Found 12 errors."),
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
        ("pytest -q | tail -3", "5 passed in 0.1s"),
        (
            "cargo test nosuch",
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 5 filtered out",
        ),
        ("go test -run nosuch ./...", "ok  \ta/b\t0.01s [no tests to run]"),
        ("npx jest -u", "Tests: 5 passed, 5 total"),
        ("python -m unittest", "Ran 0 tests in 0.0s\n\nOK"),
    ],
)
def test_an_exit_code_of_something_else_verifies_nothing(command: str, output: str) -> None:
    log = Log()
    log.edited()
    assert not verified(log.ran(command, 0, output))


def test_where_the_exit_code_is_another_program_s_the_output_may_say_that_it_fails() -> None:
    course = Log().ran("pytest -q | tail -3", 0, "FAILED t.py::x\n1 failed, 4 passed in 0.1s")
    assert course.reproduced and course.reproduced.ended == "fails"


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
    following = CheckTracker()
    for event in events:
        following.take(event)


@pytest.mark.deep
@pytest.mark.parametrize("word", ["open(", "python ", "x.write", "FAIL ", "cd: ", "! ", "&& "])
def test_hostile_text_is_read_in_bounded_time(word: str) -> None:
    log = Log()
    began = time.process_time()
    log.ran("python " + word * 20_000, 1, word * 20_000)
    log.ran("pytest | " + word, 1, word * 20_000)
    cause = log.add(a.IPythonRunCell(code=word * 20_000))
    log.add(o.IPythonOutput(content="", cause=cause))
    assert time.process_time() - began < 2


@pytest.mark.deep
def test_a_long_log_is_followed_in_linear_time() -> None:
    log = Log()
    began = time.process_time()
    for number in range(4_000):
        log.ran(f"pytest -q t{number % 50}.py", number % 2)
    assert time.process_time() - began < 4


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("pytest -q", "1 failed, 4 passed in 0.1s"),
        ("npm test", "1 failing"),
        ("make test", "make: *** [Makefile:3: test] Error 1"),
        ("cargo test", "test result: FAILED. 1 passed; 1 failed"),
        ("python -m unittest", "FAILED (failures=1)"),
        ("ruff check . && pytest -q", "1 failed, 2 passed in 0.1s"),
    ],
)
def test_a_test_that_fails_reproduces(command: str, output: str) -> None:
    assert reproduced(Log().ran(command, 1, output)) == command


def test_a_file_outside_of_the_repository_is_no_edit() -> None:
    assert not Log().edited("/tmp/repro.py").edited
    log = Log()
    log.add(StageCompleted(stage="checkout", detail="/tmp/run/workspace"))
    assert log.edited("/tmp/run/workspace/a.py").edited


def test_a_command_that_could_not_be_done_is_no_edit() -> None:
    log = Log()
    cause = log.add(a.CmdRun(command="sed -i s/a/b/ a.py"))
    log.add(o.ErrorObservation(content="the sandbox is gone", cause=cause))
    assert not log.course.edited
    assert not log.ran("sed -i s/a/b/ nosuch.py", 2, "sed: can't read nosuch.py").edited
    assert log.ran("sed -i s/a/b/ a.py && false", 1).edited


def test_a_commit_takes_no_tick_back() -> None:
    log = Log()
    log.edited()
    log.ran("pytest -q")
    assert verified(log.ran("git add -A && git commit -m 'fix: it'"))
    assert not verified(log.ran("git stash"))


def test_prose_may_be_edited_after_a_check() -> None:
    log = Log()
    log.edited()
    log.ran("pytest -q")
    assert verified(log.edited("docs/CHANGES.md")) and verified(log.ran("echo x >> a.RST"))
    assert not verified(log.edited("requirements-dev.txt"))


def test_a_check_that_outlasts_its_timeout_counts_when_it_ends() -> None:
    log = Log()
    log.edited()
    course = log.ran("pytest -q", None, "...")
    assert course.newest and course.newest.verdict == "unfinished" and not verified(course)
    assert not verified(log.polled(None, "....."))
    course = log.polled(0, "300 passed in 900s")
    assert verified(course) and course.newest and course.newest.command == "pytest -q"
    assert [check.verdict for check in course.checks] == ["passed"]


def test_a_check_that_outlasts_its_timeout_may_fail() -> None:
    log = Log()
    log.ran("pytest -q", None, "FAILED t.py::x\n")
    assert reproduced(log.polled(1, "1 failed in 9s")) == "pytest -q"


@pytest.mark.parametrize("kills", [True, False])
def test_a_check_that_was_ended_says_nothing(kills: bool) -> None:
    log = Log()
    log.ran("pytest -q", None)
    course = log.polled(130, "^C", "C-c") if kills else log.ran("ls")
    assert course.checks == () and course.reproduced is None
    assert log.polled(0, "5 passed").checks == ()


def test_a_check_that_began_before_an_edit_does_not_verify_it() -> None:
    log = Log()
    log.edited()
    log.ran("pytest -q", None)
    log.edited()
    assert not verified(log.polled(0, "300 passed"))


def test_a_pass_of_more_checks_outdoes_an_earlier_failure_of_one() -> None:
    log = Log()
    log.edited()
    log.ran("pytest -q", 1)
    assert verified(log.ran("ruff check . && pytest -q"))


def test_a_run_with_a_hidden_exit_code_changes_nothing_that_was_seen() -> None:
    log = Log()
    log.edited()
    assert verified(log.ran("pytest -q")) and verified(log.ran("pytest -q | tail"))
    log.edited()
    course = log.ran("pytest -q | tail", 0, "5 passed")
    assert course.newest and course.newest.verdict == "unknown"


def test_tests_that_can_t_be_collected_fail_after_an_edit() -> None:
    log = Log()
    log.edited()
    log.ran("pytest -q", 2, "Interrupted: 1 error during collection\n1 error in 0.1s")
    course = log.ran("ruff check .")
    assert course.newest and course.newest.verdict == "failed"


def test_folding_a_log_at_once_is_following_it() -> None:
    log = Log()
    log.edited()
    log.ran("pytest -q")
    assert check_history_of(log.events) == log.course


def unclear(course: CheckHistory) -> tuple[bool, bool, bool]:
    return course.unclear, course.unclear_before_edit, course.unclear_after_edit


def test_a_check_in_the_command_that_edits_is_not_seen_separately() -> None:
    log = Log()
    assert unclear(log.ran("sed -i s/a/b/ calc.py && python3 test_calc.py")) == (True, True, True)
    assert unclear(log.edited()) == (True, True, False)


@pytest.mark.parametrize(
    ("command", "exit_code", "output"),
    [
        ("python3 -c 'import calc; assert calc.add(1, 1) == 2'", 1, "AssertionError"),
        ("pytest -q | tail -3", 0, ""),
        ("pytest -q", None, ""),
        ("pytest -q", 2, "1 error\nerrors during collection"),
    ],
)
def test_what_may_have_failed_before_the_edit_is_not_seen_separately(
    command: str, exit_code: int | None, output: str
) -> None:
    log = Log()
    log.ran(command, exit_code, output)
    assert unclear(log.edited()) == (True, True, False)
    assert reproduced(log.course) is None


def test_a_check_that_ends_for_the_next_command_is_not_seen_separately() -> None:
    log = Log()
    log.edited()
    log.ran("pytest -q", None)
    assert unclear(log.ran("ls")) == (True, False, True)
    assert log.course.newest is None


def test_an_action_that_failed_or_a_tool_elsewhere_may_have_checked() -> None:
    log = Log()
    log.edited()
    assert unclear(log.course) == (False, False, False)
    cause = log.add(a.CmdRun(command="pytest -q"))
    log.add(o.ErrorObservation(content="the sandbox gave no answer", cause=cause))
    assert unclear(log.course) == (True, False, True)
    log.edited()
    cause = log.add(a.McpCall(server="ci", name="run_tests", arguments={}))
    log.add(o.McpResult(content="ok", cause=cause))
    assert unclear(log.course) == (True, False, True)


def test_looking_editing_and_checks_by_name_are_clear() -> None:
    log = Log()
    for command in ("ls", "pytest -q", "sed -i s/a/b/ a.py", "ruff check ."):
        log.ran(command)
    cause = log.add(a.IPythonRunCell(code="edit_file_by_replace('a.py', 'x', 'y')"))
    log.add(o.IPythonOutput(content="", cause=cause))
    assert unclear(log.course) == (False, False, False)


@pytest.mark.parametrize("root", ["/workspace", "/tmp/resolver-a1b2/workspace"])
def test_a_check_is_shown_as_it_reads_from_the_repository(root: str) -> None:
    log = Log()
    log.add(StageCompleted(stage="checkout", detail=root))
    log.edited()
    course = log.ran(f"cd {root} && pytest {root}/tests/test_a.py", 0, "1 passed")
    assert [check.command for check in course.checks] == ["pytest tests/test_a.py"]


def test_the_output_of_a_check_begins_with_a_whole_line() -> None:
    lines = [f"tests/test_module_{n}.py passed" for n in range(500)]
    log = Log()
    course = log.ran("pytest", 0, "\n".join([*lines, "500 passed"]))
    kept = course.checks[0].output.splitlines()
    assert len(kept) > 10 and kept == [*lines, "500 passed"][-len(kept) :]
