"""Finds the test command of each project in a repository: one row of a table for each kind.

The files are read as git objects and nothing is executed. A project is the outermost folder with a
row's marker file. It has one check, its tests: linters, documentation and builds are no part of it
unless they are declared. Workflows are not read, because a runner of GitHub gives their commands
secrets, services and tools that a sandbox lacks.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from posixpath import basename
from shlex import quote
from typing import NamedTuple

from resolver.models.verification import ProjectCheck
from resolver.verification.project_tree import ProjectTree, join_path, paths_below, table
from resolver.verification.runners import (
    FILES,
    MANAGERS,
    RUNNERS,
    append,
    runner_of,
    script_of,
    split_command,
    takes_arguments,
)

MAX_PROJECTS = 8
"""Maximum number of projects of one kind."""

MAX_DEPTH = 3
"""Maximum depth of a folder with a project; 1 is a folder at the root."""

_NO_PROJECT = re.compile(
    r"(?:^|/)(?:\.[^/]*|docs?|examples?|samples?|fixtures?|tests?|spec|testdata|templates?|vendor|"
    r"third_party|node_modules|dist|build|target)(?:/|$)",
    re.IGNORECASE,
)
"""Matches folders whose projects are no part of the product."""

_PYTHON_TEST = re.compile(r"tests?\.py|test_[^/]*\.py|[^/]*_tests?\.py")
_PYTEST_FILES = frozenset({"pytest.ini", ".pytest.ini", "pytest.toml", "conftest.py"})
_WRITTEN_FOR_PYTEST = re.compile(
    r"^(?:(?:import|from)[ \t]+pytest\b|(?:async[ \t]+)?def[ \t]+test_)", re.MULTILINE
)
_WRITTEN_FOR_UNITTEST = re.compile(r"^(?:import|from)[ \t]+(?:unittest|django)\b", re.MULTILINE)
_PYTEST = re.compile(r"(?<![\w.-])pytest\b(?!-)")
_SAMPLE = 50
"""Number of test files that are read to find out which runner they are written for."""

_LAUNCHERS = (
    ("uv.lock", "uv run --no-sync "),
    ("poetry.lock", "poetry run "),
    ("pdm.lock", "pdm run "),
    ("Pipfile.lock", "pipenv run "),
)
"""The commands that start a program in the environment that belongs to a lock file."""

_LOCKS = (
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
)
_NO_TESTS = "no test specified"
"""Text of the test script that `npm init` writes for a project without tests."""


class _Test(NamedTuple):
    """How a project is tested: a command in its folder, its runner, and where it was found.

    narrowed: the command for some test files, with `{files}` for them; None if there is none.
    runner: None if it is not known.
    """

    command: str
    runner: str | None
    origin: str
    narrowed: str | None = None
    is_script: bool = False


@dataclass(frozen=True)
class _Row:
    """A kind of project.

    markers: globs of names; a folder that has such a file may be such a project.
    test: how it is tested: a function of the tree and the folder that returns None if it isn't, or
        the command and the runner, and the command for some test files.
    text: pattern that the marker's text has to contain.
    wrapper: script that takes the place of the command's program, where the folder has it.
    is_fallback: True if other rows take precedence in the same folder.
    needs_no_marker: True if the root may be such a project without a marker.
    """

    markers: tuple[str, ...]
    test: Callable[[ProjectTree, str], _Test | None] | tuple[str | None, ...]
    text: str = ""
    wrapper: str | None = None
    is_fallback: bool = False
    needs_no_marker: bool = False

    def find(self, tree: ProjectTree, folder: str) -> _Test | None:
        """Return how the project in a folder is tested; None if it is no such project."""
        if callable(self.test):
            return self.test(tree, folder)
        for name in sorted(tree.names[folder]):
            path = join_path(folder, name)
            is_marker = any(fnmatchcase(name, marker) for marker in self.markers)
            if is_marker and re.search(self.text, tree.text(path), re.MULTILINE):
                command, runner, narrowed = (*self.test, None, None)[:3]
                assert command is not None
                if self.wrapper in tree.names[folder]:
                    command = f"./{self.wrapper} {command.partition(' ')[2]}"
                return _Test(command, runner, path, narrowed)
        return None


def discover_checks(tree: ProjectTree) -> tuple[ProjectCheck, ...]:
    """Return the checks that the files of a tree show, one for each project."""
    checks: list[ProjectCheck] = []
    for row in _ROWS:
        tested = [check.folder for check in checks] if row.is_fallback else []
        for folder, test in _projects(tree, row, tested):
            # A script may start the runner of another row: `npm test` of bats.
            known = {(check.runner, check.folder) for check in checks}
            if not test.runner or (test.runner, folder) not in known:
                checks.append(_check(test, folder))
    return tuple(checks)


def complete_check(check: ProjectCheck, tree: ProjectTree) -> ProjectCheck:
    """Return a declared check with what its command says: its folder, runner and narrowed form.

    `{files}` in the command stands for the test files that a change touches. Without them it stands
    for nothing, which to most runners means all tests.
    """
    commands = split_command(check.command.replace(FILES, ""))
    is_inside = len(commands) > 1 and commands[0][:1] == ["cd"] and len(commands[0]) == 2
    folder = commands[0][1].strip("/") if is_inside else ""
    whole = check.command.replace(f" {FILES}", "").replace(FILES, "")
    script = table(tree.json(join_path(folder, "package.json")), "scripts").get(
        script_of(whole) or ""
    )
    started = script if isinstance(script, str) else whole
    runner = runner_of(started)
    can_be_narrowed = bool(runner and RUNNERS[runner].endings) and takes_arguments(started)
    narrowed = append(whole, FILES) if can_be_narrowed else None
    return check.model_copy(
        update={
            "command": whole,
            "narrowed": check.command if FILES in check.command else narrowed,
            "runner": runner,
            "folder": folder,
        }
    )


def _check(test: _Test, folder: str) -> ProjectCheck:
    start = f"cd {quote(folder)} && " if folder else ""
    return ProjectCheck(
        name=f"{test.command} ({folder})" if folder else test.command,
        command=start + test.command,
        narrowed=test.narrowed and start + test.narrowed,
        runner=test.runner,
        folder=folder,
        paths=(f"{folder}/",) if folder else (),
        # Without it, some runners of scripts watch the files and never end.
        environment={"CI": "true"} if test.is_script else {},
        origin=test.origin,
    )


def _projects(tree: ProjectTree, row: _Row, tested: Sequence[str]) -> Iterator[tuple[str, _Test]]:
    """Yield the outermost projects of a kind, by folder; "" is the root.

    tested: folders whose files other checks test.
    """
    marked = [
        folder
        for folder in sorted(tree.names)
        if any(fnmatchcase(name, marker) for name in tree.names[folder] for marker in row.markers)
        and folder.count("/") < MAX_DEPTH
        and not _NO_PROJECT.search(folder)
    ]
    found = list(tested)
    for folder in marked or ([""] if row.needs_no_marker else []):
        is_inner = any(not outer or f"{folder}/".startswith(f"{outer}/") for outer in found)
        if is_inner or len(found) - len(tested) == MAX_PROJECTS:
            continue
        test = row.find(tree, folder)
        if test is not None:
            found.append(folder)
            yield folder, test


def _texts(tree: ProjectTree, paths: Sequence[str]) -> dict[str, str]:
    """Return the texts of the first files by path."""
    contents = tree.read_many(paths[:_SAMPLE])
    return {path: content.decode(errors="replace") for path, content in contents.items()}


def _python(tree: ProjectTree, folder: str) -> _Test | None:
    names = tree.names.get(folder, frozenset())
    start = next((launcher for lock, launcher in _LAUNCHERS if lock in names), "")
    tests = [p for p in paths_below(folder, tree.paths) if _PYTHON_TEST.fullmatch(basename(p))]
    sample = _texts(tree, tests)
    if origin := _where_pytest_is_named(tree, folder, sample):
        command = f"{start}python -m pytest"
        return _Test(command, "pytest", origin, f"{command} {FILES}")
    written = [path for path, text in sample.items() if _WRITTEN_FOR_UNITTEST.search(text)]
    if not written:
        return None
    if "manage.py" in names:
        path = join_path(folder, "manage.py")
        return _Test(f"{start}python manage.py test --noinput", "django", path)
    # `discover` enters packages only: https://docs.python.org/3/library/unittest.html
    inner = sorted({path.removeprefix(f"{folder}/").rpartition("/")[0] for path in written})
    tops = {path.partition("/")[0] for path in inner}
    is_found = any(not top or "__init__.py" in _names(tree, folder, top) for top in tops)
    command = f"{start}python -m unittest"
    if is_found:
        return _Test(f"{command} discover", "unittest", written[0], f"{command} {FILES}")
    return _Test(f"{command} discover -s {quote(inner[0])}", "unittest", written[0])


def _where_pytest_is_named(tree: ProjectTree, folder: str, sample: dict[str, str]) -> str | None:
    """Return the file that configures or requires pytest, or a test for it; None for none."""
    below = paths_below(folder, tree.paths)
    own = [p for p in below if basename(p) in _PYTEST_FILES]
    if own:
        return own[0]
    for name in sorted(tree.names.get(folder, ())):
        is_named = name in {"pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "Pipfile"}
        if is_named or re.fullmatch(r"[^/]*requirements[^/]*\.(?:txt|in)", name):
            text = tree.text(join_path(folder, name))
            is_configured = "[tool.pytest" in text or "[tool:pytest]" in text or "[pytest]" in text
            if is_configured or (sample and _PYTEST.search(text)):
                return join_path(folder, name)
    return next((path for path, text in sample.items() if _WRITTEN_FOR_PYTEST.search(text)), None)


def _names(tree: ProjectTree, folder: str, name: str) -> frozenset[str]:
    return tree.names.get(join_path(folder, name), frozenset())


def _script(tree: ProjectTree, folder: str) -> _Test | None:
    """Return the script `test` of a package."""
    path = join_path(folder, "package.json")
    package = tree.json(path)
    scripts = {n: t for n, t in table(package, "scripts").items() if isinstance(t, str)}
    if not scripts.get("test", "").strip() or _NO_TESTS in scripts["test"]:
        return None
    name = _script_of_runner("test", scripts)
    manager = _manager(tree, folder, package.get("packageManager"))
    command = "npm test" if (manager, name) == ("npm", "test") else f"{manager} run {quote(name)}"
    runner = runner_of(scripts[name])
    can_be_narrowed = bool(runner) and takes_arguments(scripts[name])
    narrowed = append(command, FILES) if can_be_narrowed else None
    return _Test(command, runner, f"`scripts.{name}` in {path}", narrowed, is_script=True)


def _script_of_runner(name: str, scripts: dict[str, str], depth: int = 3) -> str:
    """Return the script that starts a runner itself, if a script calls one such; else its name.

    Results by test come only from a script that gives its arguments to the runner.
    """
    called = [
        script_of(" ".join(map(quote, words))) for words in split_command(scripts.get(name, ""))
    ]
    if not depth or runner_of(scripts.get(name, "")):
        return name
    inner = [_script_of_runner(c, scripts, depth - 1) for c in called if c in scripts and c != name]
    started = [found for found in inner if runner_of(scripts[found])]
    return started[0] if len(started) == 1 else name


def _manager(tree: ProjectTree, folder: str, declared: object) -> str:
    """Return the package manager. declared: `packageManager`, such as "pnpm@9.1.0"."""
    name = str(declared or "").partition("@")[0]
    names = tree.names[folder] | tree.names.get("", frozenset())
    locked = next((manager for lock, manager in _LOCKS if lock in names), "npm")
    return name if name in MANAGERS else locked


def _node_tests(tree: ProjectTree, folder: str) -> _Test | None:
    below = paths_below(folder, tree.paths)
    tests = [path for path in below if re.search(r"(?:^|[/.-])test\.[cm]?js$", path)]
    found = next((p for p, text in _texts(tree, tests).items() if "node:test" in text), None)
    return _Test("node --test", "node", found, f"node --test {FILES}") if found else None


def _cargo(tree: ProjectTree, folder: str) -> _Test:
    """Return nextest with the profile that writes a report, if there is one."""
    path = join_path(folder, ".config/nextest.toml")
    profiles = table(tree.toml(path), "profile")
    name = next((name for name, value in profiles.items() if table(value, "junit")), "")
    command = f"cargo nextest run --workspace --profile {quote(name)}"
    if name:
        return _Test(command, "nextest", path)
    return _Test("cargo test --workspace", "cargo", join_path(folder, "Cargo.toml"))


def _bats(tree: ProjectTree, folder: str) -> _Test | None:
    found = [path for path in paths_below(folder, tree.paths) if path.endswith(".bats")]
    if not found:
        return None
    where = found[0].removeprefix(f"{folder}/").rpartition("/")[0] or "."
    return _Test(f"bats {quote(where)}", "bats", found[0], f"bats {FILES}")


_MAKE = ("Makefile", "makefile", "GNUmakefile")
_CTEST = "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure"
_ROWS = (
    _Row(("pyproject.toml", "setup.py", "setup.cfg", "*requirements*.txt", "pytest.ini", "tox.ini",
          "noxfile.py", "conftest.py", "manage.py"), _python, needs_no_marker=True),
    _Row(("package.json",), _script),
    _Row(("package.json",), _node_tests, is_fallback=True),
    _Row(("go.mod",), ("go test ./...", "go", f"go test {FILES}")),
    _Row(("Cargo.toml",), _cargo),
    _Row(("pom.xml",), ("mvn -B test", "maven"), wrapper="mvnw"),
    _Row(("build.gradle*",), ("gradle --no-daemon test", "gradle"), wrapper="gradlew"),
    _Row(("*.sln", "*.slnx"), ("dotnet test", None)),
    _Row(("CMakeLists.txt",), (_CTEST, "ctest"), r"\benable_testing\b|\binclude\s*\(\s*CTest\b"),
    _Row(("phpunit.xml*",), ("vendor/bin/phpunit", "phpunit")),
    _Row((".rspec",), ("bundle exec rspec", None)),
    _Row(("Rakefile",), ("bundle exec rake test", None), r"Rake::TestTask|Minitest::TestTask"),
    _Row(("tox.ini",), ("tox", "tox"), is_fallback=True),
    _Row(("noxfile.py",), ("nox", "nox"), is_fallback=True),
    _Row((), _bats, is_fallback=True, needs_no_marker=True),
    _Row(_MAKE, ("make test", None), r"^test[ \t]*:(?!=)", is_fallback=True),
    _Row(_MAKE, ("make check", None), r"^check[ \t]*:(?!=)", is_fallback=True),
)  # fmt: skip
"""The kinds of projects, those with results by test first."""
