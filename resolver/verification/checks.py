"""Finds the test command of each project in a repository: one row of a table for each kind.

The files are read as git objects and nothing is executed. A project is the outermost folder with a
row's marker file. It has one check, its tests: linters, documentation and builds are no part of it
unless they are declared. Workflows are not read, because a runner of GitHub gives their commands
secrets, services and tools that a sandbox lacks.
"""

import re
import shlex
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

_INSTALLED = (("vitest", "vitest run"), ("jest", "jest"), ("mocha", "mocha"))
"""Runners that a package without a test script depends on, and the commands that start them."""


class _Test(NamedTuple):
    """How a project is tested: a command in its folder, its runner, and where it was found.

    narrowed: the command for some test files, with `{files}` for them; "" if there is none.
    """

    command: str
    runner: str
    origin: str
    narrowed: str = ""
    is_script: bool = False


@dataclass(frozen=True)
class _Row:
    """A kind of project.

    markers: globs of names; a folder that has such a file may be such a project.
    find: returns how the project in a folder is tested, None if it isn't.
    is_fallback: True if other rows take precedence in the same folder.
    needs_no_marker: True if the root may be such a project without a marker.
    """

    markers: tuple[str, ...]
    find: Callable[[ProjectTree, str], _Test | None]
    is_fallback: bool = False
    needs_no_marker: bool = False


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
    whole = re.sub(rf"\s*{re.escape(FILES)}", "", check.command)
    script = table(tree.json(join_path(folder, "package.json")), "scripts").get(script_of(whole))
    started = script if isinstance(script, str) else whole
    runner = runner_of(started)
    without_tests = _without_paths(whole, tree, folder) if runner == "pytest" else whole
    text = started if isinstance(script, str) else without_tests
    can_be_narrowed = bool(runner and RUNNERS[runner].endings) and takes_arguments(text)
    narrowed = append(without_tests, FILES) if can_be_narrowed else ""
    return check.model_copy(
        update={
            "command": whole,
            "narrowed": check.command if FILES in check.command else narrowed,
            "runner": runner,
            "folder": folder,
        }
    )


def _without_paths(command: str, tree: ProjectTree, folder: str) -> str:
    """Return a command of words without those after its program that are paths of the tree.

    The tests of these paths would be executed beside the ones that a narrowed command names. A path
    behind an option stays, because it may be the option's value.
    """
    *earlier, words = split_command(command) or [[]]
    known = {join_path(folder, word.rstrip("/")) for word in words}
    paths = {path for path in known if path in tree.paths or paths_below(path, tree.paths)}
    kept = [
        word
        for number, word in enumerate(words)
        if number == 0
        or words[number - 1].startswith("--")
        or join_path(folder, word.rstrip("/")) not in paths
    ]
    return " && ".join(shlex.join(part) for part in (*earlier, kept)) if paths else command


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


def _where_pytest_is_named(tree: ProjectTree, folder: str, sample: dict[str, str]) -> str:
    """Return the file that configures or requires pytest, or a test for it; "" for none."""
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
    return next((path for path, text in sample.items() if _WRITTEN_FOR_PYTEST.search(text)), "")


def _names(tree: ProjectTree, folder: str, name: str) -> frozenset[str]:
    return tree.names.get(join_path(folder, name), frozenset())


def _environments(tree: ProjectTree, folder: str) -> _Test | None:
    """Return tox or nox, which install what the tests need in environments of their own."""
    tool = "tox" if "tox.ini" in tree.names[folder] else "nox"
    return _Test(tool, tool, join_path(folder, "tox.ini" if tool == "tox" else "noxfile.py"))


def _script(tree: ProjectTree, folder: str) -> _Test | None:
    """Return the script `test` of a package, or the runner that it depends on."""
    path = join_path(folder, "package.json")
    package = tree.json(path)
    scripts = {n: t for n, t in table(package, "scripts").items() if isinstance(t, str)}
    if not scripts.get("test", "").strip() or _NO_TESTS in scripts["test"]:
        known = {**table(package, "dependencies"), **table(package, "devDependencies")}
        for name, start in _INSTALLED:
            if name in known:
                command = f"npx --no-install {start}"
                return _Test(command, name, path, f"{command} {FILES}", is_script=True)
        return None
    name = _script_of_runner("test", scripts)
    manager = _manager(tree, folder, package.get("packageManager"))
    command = "npm test" if (manager, name) == ("npm", "test") else f"{manager} run {quote(name)}"
    runner = runner_of(scripts[name])
    can_be_narrowed = bool(runner) and takes_arguments(scripts[name])
    narrowed = append(command, FILES) if can_be_narrowed else ""
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
    found = next((p for p, text in _texts(tree, tests).items() if "node:test" in text), "")
    return _Test("node --test", "node", found, f"node --test {FILES}") if found else None


def _cargo(tree: ProjectTree, folder: str) -> _Test | None:
    path = join_path(folder, ".config/nextest.toml")
    profiles = table(tree.toml(path), "profile")
    with_report = next((name for name, value in profiles.items() if table(value, "junit")), "")
    if with_report:
        command = f"cargo nextest run --workspace --profile {quote(with_report)}"
        return _Test(command, "nextest", path)
    return _Test("cargo test --workspace", "cargo", join_path(folder, "Cargo.toml"))


def _build(
    runner: str, command: str, wrapper: str, wrapped: str
) -> Callable[[ProjectTree, str], _Test]:
    def find(tree: ProjectTree, folder: str) -> _Test:
        is_wrapped = wrapper in tree.names[folder]
        return _Test(wrapped if is_wrapped else command, runner, join_path(folder, wrapper))

    return find


def _if_text(pattern: str, test: _Test, *names: str) -> Callable[[ProjectTree, str], _Test | None]:
    """Return a finder for projects one of whose files of these names matches the pattern."""

    def find(tree: ProjectTree, folder: str) -> _Test | None:
        paths = (join_path(folder, name) for name in names if name in tree.names[folder])
        found = (p for p in paths if re.search(pattern, tree.text(p), re.MULTILINE))
        path = next(found, "")
        return test._replace(origin=path) if path else None

    return find


def _ruby(tree: ProjectTree, folder: str) -> _Test | None:
    below = paths_below(folder, tree.paths)
    for part, end, command in (
        ("spec/", "_spec.rb", "bundle exec rspec"),
        ("test/", ".rb", "bundle exec rake test"),
    ):
        start = join_path(folder, part)
        if found := next((p for p in below if p.startswith(start) and p.endswith(end)), ""):
            return _Test(command, "", found)
    return None


def _bats(tree: ProjectTree, folder: str) -> _Test | None:
    found = [path for path in paths_below(folder, tree.paths) if path.endswith(".bats")]
    if not found:
        return None
    where = found[0].removeprefix(f"{folder}/").rpartition("/")[0] or "."
    return _Test(f"bats {quote(where)}", "bats", found[0], f"bats {FILES}")


_ROWS = (
    _Row(("pyproject.toml", "setup.py", "setup.cfg", "*requirements*.txt", "pytest.ini", "tox.ini",
          "noxfile.py", "conftest.py", "manage.py"), _python, needs_no_marker=True),
    _Row(("package.json",), _script),
    _Row(("package.json",), _node_tests, is_fallback=True),
    _Row(("go.mod",), lambda _, folder: _Test(
        "go test ./...", "go", join_path(folder, "go.mod"), f"go test {FILES}")),
    _Row(("Cargo.toml",), _cargo),
    _Row(("pom.xml",), _build("maven", "mvn -B test", "mvnw", "./mvnw -B test")),
    _Row(("build.gradle", "build.gradle.kts"),
         _build("gradle", "gradle test", "gradlew", "./gradlew --no-daemon test")),
    _Row(("*.sln", "*.slnx"), lambda _, folder: _Test("dotnet test", "dotnet", folder or ".")),
    _Row(("CMakeLists.txt",), _if_text(
        r"\benable_testing\b|\binclude\s*\(\s*CTest\b", _Test(
            "cmake -S . -B build && cmake --build build && "
            "ctest --test-dir build --output-on-failure", "ctest", ""), "CMakeLists.txt")),
    _Row(("phpunit.xml", "phpunit.xml.dist"),
         lambda _, folder: _Test("vendor/bin/phpunit", "phpunit", folder or ".")),
    _Row(("Gemfile",), _ruby),
    _Row(("tox.ini", "noxfile.py"), _environments, is_fallback=True),
    _Row((), _bats, is_fallback=True, needs_no_marker=True),
    _Row(("Makefile", "makefile", "GNUmakefile"), _if_text(
        r"^test[ \t]*:(?!=)", _Test("make test", "", ""), "GNUmakefile", "makefile", "Makefile"),
        is_fallback=True),
    _Row(("Makefile", "makefile", "GNUmakefile"), _if_text(
        r"^check[ \t]*:(?!=)", _Test("make check", "", ""), "GNUmakefile", "makefile", "Makefile"),
        is_fallback=True),
)  # fmt: skip
"""The kinds of projects, those with results by test first."""
