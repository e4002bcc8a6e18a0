"""Narrows a check to the tests that a change affects, for runners that take files or packages.

The choice is a guess that only saves time: a test is affected if it changed, or if it mentions the
name of a changed module. The whole check decides.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from posixpath import dirname
from shlex import quote
from typing import NamedTuple

from resolver.models.test_files import is_test_file
from resolver.models.verification import ProjectCheck
from resolver.verification.check_candidates import enter_folder
from resolver.verification.instrumentation import append_arguments
from resolver.verification.project_files import (
    is_project_manifest,
    is_test_configuration,
)
from resolver.verification.project_folders import paths_below
from resolver.verification.project_tree import ProjectTree, join_path, table
from resolver.verification.runner_commands import (
    last_runner,
    positional_words,
    simple_commands,
    split_pytest_paths,
)

MAX_TEST_FILES = 5_000
"""Maximum number of test files that are read."""

MAX_BYTES = 30_000_000
"""Maximum number of bytes of test files that are read."""

MAX_ARGUMENTS = 100
"""Maximum number of files or packages of a narrowed command."""

_BATCH = 100
_WORD = re.compile(rb"\w{1,100}")
_PYTHON = (".py",)
_SCRIPT = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte")
_GENERIC = frozenset({"__init__", "__main__", "index", "mod", "main", "lib"})
"""Names of files for whose modules the folder's name stands."""

_DISCOVER = " -m unittest discover"
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_GO_IMPORT = re.compile(r'"([^"\s]{1,500})"')


class NarrowedCheck(NamedTuple):
    """A check for a part of the tests, to be instrumented afterwards.

    share: how large the part is, by the size of the files with tests; 1.0 for the whole check.
    """

    check: ProjectCheck
    share: float


class _Narrowing(NamedTuple):
    """A narrowed command, the files with the tests that it executes, and those with all tests."""

    command: str
    executed: Sequence[str]
    known: Sequence[str]


def affected_check(
    check: ProjectCheck, changed_files: Sequence[str], tree: ProjectTree
) -> NarrowedCheck | None:
    """Return the check for the tests that a change affects.

    None if the runner can't be narrowed, if the change may affect all tests, or if it affects none
    that are known.

    changed_files: paths of all files that the change adds, modifies or deletes.
    tree: the files with the change applied.
    """
    narrow = _NARROWERS.get(check.runner)
    shared = (path for path in changed_files if is_test_configuration(path))
    if narrow is None or next(shared, None) is not None:
        return None
    narrowing = narrow(check, changed_files, tree)
    if narrowing is None or narrowing.command == check.command:
        return None
    sizes = {path: len(content) for path, content in _read(tree, narrowing.known)}
    executed = sum(sizes.get(path, 0) for path in narrowing.executed)
    share = executed / (sum(sizes.values()) or 1)
    return NarrowedCheck(check.model_copy(update={"command": narrowing.command}), share)


def check_of_files(
    check: ProjectCheck, files: Sequence[str], tree: ProjectTree
) -> ProjectCheck | None:
    """Return the check for the tests in these files, or in their packages.

    None if the runner can't be narrowed, or if it would collect none of the files.
    """
    endings = _ENDINGS.get(check.runner)
    if endings is None:
        narrowed_check = affected_check(check, files, tree) if check.runner in _BY_PACKAGE else None
        return narrowed_check.check if narrowed_check else None
    folder = _folder(check.command)
    tests = [
        path
        for path in paths_below(folder, files)
        if path.endswith(endings) and _is_collected(path)
    ]
    narrowed = _name_files(check, tests, tree, folder)
    return None if narrowed is None else check.model_copy(update={"command": narrowed})


def find_affected_tests(
    changed_files: Sequence[str], tree: ProjectTree, endings: tuple[str, ...], folder: str = ""
) -> tuple[str, ...]:
    """Return the test files in a folder that changed, or that mention a changed module.

    endings: the endings of the runner's files.
    """
    changed = set(changed_files)
    candidates = _test_files(tree, endings, folder)
    modules = {
        _module_name(path).encode()
        for path in changed
        if path.endswith(endings) and not is_test_file(path)
    }
    affected = changed & set(candidates)
    for path, content in _read(tree, candidates):
        if not modules.isdisjoint(_WORD.findall(content)):
            affected.add(path)
    return tuple(sorted(affected))


def _test_files(tree: ProjectTree, endings: tuple[str, ...], folder: str) -> list[str]:
    files = (path for path in paths_below(folder, tree.paths) if path.endswith(endings))
    return [path for path in files if is_test_file(path) and _is_collected(path)]


def _module_name(path: str) -> str:
    at = PurePosixPath(path)
    stem = at.name.partition(".")[0]
    return at.parent.name if stem in _GENERIC and at.parent.name else stem


def _is_collected(path: str) -> bool:
    """Return True if a runner would collect the file: helpers in the folder of tests are none."""
    name = PurePosixPath(path).name.lower()
    return name != "conftest.py" and ("test" in name or "spec" in name)


def _read(tree: ProjectTree, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    size = 0
    for start in range(0, min(len(paths), MAX_TEST_FILES), _BATCH):
        for path, content in tree.read_many(paths[start : start + _BATCH]).items():
            size += len(content)
            yield path, content
        if size > MAX_BYTES:
            return


def _folder(command: str) -> str:
    """Return the folder in which the last simple command runs."""
    folder = ""
    for simple in simple_commands(command):
        if simple.changes_folder:
            folder = enter_folder(folder, simple.words[1])
    return folder


def _relative(path: str, folder: str) -> str:
    """Return the path as an argument: relative to the folder, never like an option."""
    inside = path.removeprefix(f"{folder}/") if folder else path
    return f"./{inside}" if inside.startswith("-") else inside


def _names_tests(check: ProjectCheck, tree: ProjectTree, folder: str) -> bool:
    """Return True if the command, or its package script, may already choose files or folders."""
    script = _script_text(check, tree, folder)
    if check.runner in _WITHOUT_ARGUMENTS and last_runner(script or check.command) != check.runner:
        return True
    for word in (*positional_words(check.command), *positional_words(script)):
        path = enter_folder(folder, word.partition("::")[0])
        if path in tree.folders or path in tree.paths or "*" in word:
            return True
    return False


def _script_text(check: ProjectCheck, tree: ProjectTree, folder: str) -> str:
    """Return the text of the package script that the check runs; "" if it runs none."""
    commands = simple_commands(check.command)
    scripts = table(tree.json(join_path(folder, "package.json")), "scripts")
    text = scripts.get(commands[-1].script) if commands else None
    return text if isinstance(text, str) else ""


def _choose_from_named(
    check: ProjectCheck, tests: Sequence[str], tree: ProjectTree, folder: str
) -> tuple[ProjectCheck, list[str]] | None:
    """Return the check without the paths that it names, and which of the tests are among them.

    None if the paths can't be distinguished from the rest of the command.
    """
    if check.runner != "pytest":
        return None if _names_tests(check, tree, folder) else (check, list(tests))
    split = split_pytest_paths(check.command)
    if split is None:
        return None
    command, named = split
    paths = [enter_folder(folder, path_in_folder) for path_in_folder in named]
    if not all(path in tree.folders or path in tree.paths for path in paths):
        return None
    chosen = {test for path in paths or [folder] for test in (path, *paths_below(path, tests))}
    without = check.model_copy(update={"command": command})
    return without, [test for test in tests if test in chosen]


def _by_files(check: ProjectCheck, changed: Sequence[str], tree: ProjectTree) -> _Narrowing | None:
    """Return the command with the affected test files."""
    folder, endings = _folder(check.command), _ENDINGS[check.runner]
    tests = find_affected_tests(changed, tree, endings, folder)
    command = _name_files(check, tests, tree, folder)
    if command is None:
        return None
    known = _test_files(tree, endings, folder)
    chosen = _choose_from_named(check, known, tree, folder)
    return _Narrowing(command, tests, chosen[1] if chosen else known)


def _name_files(
    check: ProjectCheck, tests: Sequence[str], tree: ProjectTree, folder: str
) -> str | None:
    """Return the command that executes only the tests in these files."""
    if check.runner == "unittest":
        relative = (_relative(path, folder) for path in tests)
        modules = [path.removesuffix(".py").replace("/", ".") for path in relative]
        return name_unittest_tests(check, modules)
    chosen = _choose_from_named(check, tests, tree, folder)
    if chosen is None or not 0 < len(chosen[1]) <= MAX_ARGUMENTS:
        return None
    option = ["--runTestsByPath"] if check.runner == "jest" else []
    return append_arguments(chosen[0], *option, *(_relative(path, folder) for path in chosen[1]))


def name_unittest_tests(check: ProjectCheck, names: Sequence[str]) -> str | None:
    """Return the command for modules or tests by their dotted names, in place of all tests.

    None if the command may find tests elsewhere than below its folder, where other names would be
    needed.
    """
    valid = all(_DOTTED.fullmatch(name) for name in names)
    if not check.command.endswith(_DISCOVER) or not 0 < len(names) <= MAX_ARGUMENTS or not valid:
        return None
    return " ".join([check.command.removesuffix(" discover"), *names])


def _jest(check: ProjectCheck, changed: Sequence[str], tree: ProjectTree) -> _Narrowing | None:
    """Return the command with the changed files, whose tests jest finds by their imports."""
    folder = _folder(check.command)
    present = set(paths_below(folder, tree.paths))
    files = [path for path in sorted(set(changed) & present) if path.endswith(_SCRIPT)]
    if not 0 < len(files) <= MAX_ARGUMENTS or _names_tests(check, tree, folder):
        return None
    relative = (_relative(path, folder) for path in files)
    command = append_arguments(check, "--findRelatedTests", *relative)
    tests = find_affected_tests(changed, tree, _SCRIPT, folder)
    return _Narrowing(command, tests, _test_files(tree, _SCRIPT, folder)) if command else None


def _go(check: ProjectCheck, changed: Sequence[str], tree: ProjectTree) -> _Narrowing | None:
    """Return the command for the changed packages and those that import them."""
    if check.command.count("./...") != 1:
        return None
    module = _folder(check.command)
    files = [path for path in paths_below(module, tree.paths) if path.endswith(".go")]
    folders = {dirname(path) for path in files}
    changed_files = [path for path in changed if path.endswith(".go") and dirname(path) in folders]
    packages = set(map(dirname, changed_files))
    if not packages:
        return None
    # No other package imports the tests of one.
    imported = {dirname(path) for path in changed_files if not path.endswith("_test.go")}
    declared = re.search(
        r"^module[ \t]+(\S+)", tree.text(join_path(module, "go.mod")), re.MULTILINE
    )
    if declared and imported:
        paths = {_go_path(declared[1], package, module) for package in imported}
        for path, content in _read(tree, files):
            if not paths.isdisjoint(_GO_IMPORT.findall(content.decode(errors="replace"))):
                packages.add(dirname(path))
    if len(packages) > MAX_ARGUMENTS:
        return None
    inside = (_inside(package, module) for package in sorted(packages))
    command = check.command.replace(
        "./...", " ".join(quote(f"./{p}" if p else ".") for p in inside)
    )
    tests = [path for path in files if path.endswith("_test.go")]
    return _Narrowing(command, [path for path in tests if dirname(path) in packages], tests)


def _inside(package: str, module: str) -> str:
    return package.removeprefix(module).removeprefix("/")


def _go_path(declared: str, package: str, module: str) -> str:
    return "/".join(filter(None, (declared, _inside(package, module))))


def _cargo(check: ProjectCheck, changed: Sequence[str], tree: ProjectTree) -> _Narrowing | None:
    """Return the command for the changed packages of a workspace."""
    if check.command.count(" --workspace") != 1:
        return None
    folder = _folder(check.command)
    names: set[str] = set()
    for path in changed:
        if not path.endswith(".rs"):
            if is_project_manifest(path):
                return None
            continue
        name = _cargo_package(tree, path, folder)
        if not name:
            return None
        names.add(name)
    if not 0 < len(names) <= MAX_ARGUMENTS:
        return None
    options = "".join(f" -p {quote(name)}" for name in sorted(names))
    # Rust's unit tests are in the source files.
    files = [path for path in paths_below(folder, tree.paths) if path.endswith(".rs")]
    executed = [path for path in files if _cargo_package(tree, path, folder) in names]
    return _Narrowing(check.command.replace(" --workspace", options), executed, files)


def _cargo_package(tree: ProjectTree, path: str, folder: str) -> str:
    while path and path != folder:
        path = dirname(path)
        if "Cargo.toml" in tree.names.get(path, frozenset()):
            name = table(tree.toml(join_path(path, "Cargo.toml")), "package").get("name")
            return name if isinstance(name, str) else ""
    return ""


_ENDINGS: dict[str, tuple[str, ...]] = {
    "pytest": _PYTHON,
    "unittest": _PYTHON,
    "vitest": _SCRIPT,
    "ava": _SCRIPT,
    "tap": _SCRIPT,
    "jest": _SCRIPT,
    "mocha": _SCRIPT,
    "node": _SCRIPT,
}
"""Endings of test files, by the runner that takes their names."""

_WITHOUT_ARGUMENTS = frozenset({"node"})
"""Runners that need no arguments for their reports: the package script may pass none on to them."""

_BY_PACKAGE = frozenset({"go", "cargo"})

_NARROWERS: dict[str, Callable[[ProjectCheck, Sequence[str], ProjectTree], _Narrowing | None]] = {
    **dict.fromkeys(_ENDINGS, _by_files),
    "jest": _jest,
    "go": _go,
    "cargo": _cargo,
}
