"""Finds the checks of Python projects: pytest, unittest, Django's tests, tox, nox."""

import re
from collections.abc import Iterator
from posixpath import basename

from resolver.config.allowed_hosts import AllowList
from resolver.models.verification import ProjectCheck
from resolver.verification.check_candidates import (
    CheckCandidate,
    Omission,
    command_keys,
    in_folder,
    with_folder,
)
from resolver.verification.ini_file import read_ini
from resolver.verification.project_folders import paths_below, project_folders
from resolver.verification.project_tree import ProjectTree, join_path, table
from resolver.verification.runner_commands import runners_of

_MARKS = frozenset(
    {
        "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "pytest.ini", ".pytest.ini",
        "tox.ini", "noxfile.py", "conftest.py", "manage.py",
    }
)  # fmt: skip
_TEST_NAME = re.compile(r"tests?\.py|test_[^/]*\.py|[^/]*_tests?\.py")
_PYTEST_TEST = re.compile(
    rb"^(?:import|from)[ \t]+pytest\b|^(?:async[ \t]+)?def[ \t]+test_", re.MULTILINE
)
_UNITTEST_TEST = re.compile(rb"^(?:import|from)[ \t]+unittest\b", re.MULTILINE)
_REQUIRES_PYTEST = re.compile(r"(?<![\w.-])pytest(?![\w.])")
_REQUIREMENTS = re.compile(r"[^/]*requirements[^/]*\.(?:txt|in)|Pipfile")
_SAMPLE = 50
"""Number of test files that are read to find out which runner they are written for."""

_LAUNCHERS = (
    ("uv.lock", "uv run --no-sync "),
    ("poetry.lock", "poetry run "),
    ("pdm.lock", "pdm run "),
    ("Pipfile.lock", "pipenv run "),
)
"""The commands that start a program in the environment that belongs to a lock file."""

_INDEX = ("pypi.org", 443)
_TOX_TEST = re.compile(r"testenv(?::py[^:]*|:tests?[^:]*)?")


def find_python_checks(
    tree: ProjectTree, allowed: AllowList
) -> Iterator[CheckCandidate | Omission]:
    """Yield the checks of the Python projects of a tree.

    allowed: the hosts that the sandbox may reach. tox and nox install packages.
    """
    tests = [path for path in tree.paths if _TEST_NAME.fullmatch(basename(path))]
    for folder in project_folders(tree, _MARKS, fallback=bool(tests)):
        yield from _project(tree, folder, paths_below(folder, tests), allowed)


def _project(
    tree: ProjectTree, folder: str, tests: list[str], allowed: AllowList
) -> Iterator[CheckCandidate | Omission]:
    names = tree.names.get(folder, frozenset())
    launcher = next((start for lock, start in _LAUNCHERS if lock in names), "")
    found, origin = _runner(tree, folder, tests)
    command = _command(tree, folder, tests, found)
    if command:
        yield CheckCandidate(
            ProjectCheck(
                name=with_folder("manage.py test" if found == "django" else found, folder),
                command=in_folder(launcher + command, folder),
                runner=found,
                origin=origin,
            ),
            frozenset({f"{found}:{folder}"}),
        )
    for tool, file, commands in _environments(tree, folder):
        yield _environment(tool, folder, file, commands, allowed)


def _command(tree: ProjectTree, folder: str, tests: list[str], runner: str) -> str:
    if runner == "unittest":
        return f"python -m unittest discover{_start(tree, folder, tests)}"
    return {"pytest": "python -m pytest", "django": "python manage.py test"}.get(runner, "")


def _runner(tree: ProjectTree, folder: str, tests: list[str]) -> tuple[str, str]:
    """Return the runner of a project's tests, and where it was found; "" if there is none."""
    if origin := _pytest_configuration(tree, folder, tests):
        return "pytest", origin
    names = tree.names.get(folder, frozenset())
    if not tests:
        return "", ""
    sample = tree.read_many(tests[:_SAMPLE])
    written_for_pytest = next((p for p, text in sample.items() if _PYTEST_TEST.search(text)), "")
    if written_for_pytest:
        return "pytest", written_for_pytest
    if "manage.py" in names:
        return "django", join_path(folder, "manage.py")
    written = next((path for path, text in sample.items() if _UNITTEST_TEST.search(text)), "")
    return ("unittest", written) if written else ("", "")


def _pytest_configuration(tree: ProjectTree, folder: str, tests: list[str]) -> str:
    """Return where pytest is configured or required, "" if nowhere."""
    names = tree.names.get(folder, frozenset())
    for name in ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "conftest.py"):
        if name in names:
            return join_path(folder, name)
    if "pyproject.toml" in names:
        path = join_path(folder, "pyproject.toml")
        if table(tree.toml(path), "tool", "pytest"):
            return f"`[tool.pytest]` in {path}"
    for name, section in (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        path = join_path(folder, name)
        if name in names and section in read_ini(tree.text(path)):
            return f"`[{section}]` in {path}"
    conftest = next(
        (p for p in paths_below(folder, tree.paths) if basename(p) == "conftest.py"), ""
    )
    if conftest or not tests:
        return conftest
    for name in sorted(names):
        is_listed = name in {"pyproject.toml", "setup.py", "setup.cfg"}
        if is_listed or _REQUIREMENTS.fullmatch(name):
            path = join_path(folder, name)
            if _REQUIRES_PYTEST.search(tree.text(path)):
                return path
    return ""


def _start(tree: ProjectTree, folder: str, tests: list[str]) -> str:
    """Return the option of unittest for a folder of tests that is no package.

    `discover` enters packages only: https://docs.python.org/3/library/unittest.html
    """
    relative = [path.removeprefix(f"{folder}/") for path in tests] if folder else tests
    if any("/" not in path for path in relative):
        return ""
    tops = sorted({path.partition("/")[0] for path in relative})
    packages = [top for top in tops if "__init__.py" in tree.names.get(join_path(folder, top), ())]
    usual = next((top for top in ("tests", "test") if top in tops), tops[0])
    return "" if packages or not usual.isidentifier() else f" -s {usual}"


def _environments(tree: ProjectTree, folder: str) -> Iterator[tuple[str, str, str]]:
    """Yield the tools that run tests in environments of their own: tool, file, its commands."""
    names = tree.names.get(folder, frozenset())
    for name in ("tox.ini", "setup.cfg"):
        path = join_path(folder, name)
        sections = read_ini(tree.text(path)) if name in names else {}
        found = [
            values.get("commands", "")
            for section, values in sections.items()
            if _TOX_TEST.fullmatch(section)
        ]
        if any(found):
            yield "tox", path, "\n".join(found)
    if "noxfile.py" in names:
        path = join_path(folder, "noxfile.py")
        # Calls such as `session.run("pytest", "-q")`: only the program's name is of interest.
        calls = re.findall(r"\.run\(\s{0,100}([\"'][^\n)]{1,300})", tree.text(path))
        words = (re.sub(r"[\"',*]", " ", call) for call in calls)
        yield "nox", path, "\n".join(words)


def _environment(
    tool: str, folder: str, path: str, commands: str, allowed: AllowList
) -> CheckCandidate | Omission:
    plain = re.sub(r"\{[^{}\n]*\}", "", commands)
    runs = command_keys(plain, folder) if runners_of(plain) else frozenset()
    command = in_folder(tool, folder)
    keys = frozenset({f"{tool}:{folder}"})
    try:
        allowed.find(*_INDEX)
    except ValueError:
        name = with_folder(tool, folder)
        return Omission(name, command, "network", f"`{tool}`", (_INDEX[0],), runs or keys)
    check = ProjectCheck(name=with_folder(tool, folder), command=command, runner=tool, origin=path)
    return CheckCandidate(check, keys, runs)
