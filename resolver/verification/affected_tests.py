"""Narrows a check to the tests that a change affects, for runners that take files or packages.

The choice is a guess that only saves time: a test is affected if it changed, or if it mentions the
name of a changed module. The whole check decides.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from posixpath import dirname
from shlex import quote

from resolver.models.verification import ProjectCheck
from resolver.verification.check_candidates import enter_folder
from resolver.verification.instrumentation import append_arguments
from resolver.verification.project_files import (
    is_project_manifest,
    is_test_configuration,
    is_test_file,
)
from resolver.verification.project_folders import below
from resolver.verification.project_tree import ProjectTree, join_path, table
from resolver.verification.runner_commands import positional_words, simple_commands
from resolver.verification.statements import source_language

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


def affected_check(
    check: ProjectCheck, changed_files: Sequence[str], tree: ProjectTree
) -> ProjectCheck | None:
    """Return the check for the tests that a change affects, to be instrumented afterwards.

    None if the runner can't be narrowed, if the change may affect all tests, or if it affects none
    that are known.

    changed_files: paths of all files that the change adds, modifies or deletes.
    tree: the files with the change applied.
    """
    narrow = _NARROWERS.get(check.runner)
    shared = (path for path in changed_files if is_test_configuration(path))
    if narrow is None or next(shared, None) is not None:
        return None
    command = narrow(check, changed_files, tree)
    if command is None or command == check.command:
        return None
    return check.model_copy(update={"command": command})


def find_affected_tests(
    changed_files: Sequence[str], tree: ProjectTree, endings: tuple[str, ...], folder: str = ""
) -> tuple[str, ...]:
    """Return the test files in a folder that changed, or that mention a changed module.

    endings: the endings of the runner's files.
    """
    changed = set(changed_files)
    candidates = [
        path for path in below(folder, tree.paths) if path.endswith(endings) and is_test_file(path)
    ]
    modules = {
        _module_name(path).encode()
        for path in changed
        if path.endswith(endings) and not is_test_file(path)
    }
    found = {path for path in candidates if path in changed and _is_collected(path)}
    for path, content in _read(tree, [path for path in candidates if _is_collected(path)]):
        if not modules.isdisjoint(_WORD.findall(content)):
            found.add(path)
    return tuple(sorted(found))


def unchanged_tests(changed_files: Sequence[str], tree: ProjectTree) -> list[tuple[str, str]]:
    """Return path and text of the test files that mention a changed module and stay as they are.

    tree: the files of the base commit.
    """
    code = [path for path in changed_files if not is_test_file(path) and source_language(path)]
    suffixes = {PurePosixPath(path).suffix for path in code}
    found = [
        path
        for suffix in sorted(suffixes)
        for path in find_affected_tests(code, tree, (suffix,))
        if path not in changed_files
    ]
    texts = tree.read_many(found[:MAX_ARGUMENTS])
    return [(path, content.decode("utf-8", "replace")) for path, content in texts.items()]


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
    for each in simple_commands(command):
        if each.words[:1] == ("cd",) and len(each.words) == 2:
            folder = enter_folder(folder, each.words[1])
    return folder


def _relative(path: str, folder: str) -> str:
    """Return the path as an argument: relative to the folder, never like an option."""
    inside = path.removeprefix(f"{folder}/") if folder else path
    return f"./{inside}" if inside.startswith("-") else inside


def _names_tests(check: ProjectCheck, tree: ProjectTree, folder: str) -> bool:
    """Return True if the command already chooses files or folders."""
    for word in positional_words(check.command):
        path = enter_folder(folder, word.partition("::")[0])
        if path in tree.folders or path in tree.paths or "*" in word:
            return True
    return False


def _by_files(
    check: ProjectCheck, changed: Sequence[str], tree: ProjectTree, endings: tuple[str, ...]
) -> str | None:
    folder = _folder(check.command)
    if _names_tests(check, tree, folder):
        return None
    tests = find_affected_tests(changed, tree, endings, folder)
    if not 0 < len(tests) <= MAX_ARGUMENTS:
        return None
    return append_arguments(check, *(_relative(path, folder) for path in tests))


def _pytest(check: ProjectCheck, changed: Sequence[str], tree: ProjectTree) -> str | None:
    return _by_files(check, changed, tree, _PYTHON)


def _unittest(check: ProjectCheck, changed: Sequence[str], tree: ProjectTree) -> str | None:
    folder = _folder(check.command)
    tests = find_affected_tests(changed, tree, _PYTHON, folder)
    modules = [_relative(path, folder).removesuffix(".py").replace("/", ".") for path in tests]
    return name_unittest_tests(check, modules)


def name_unittest_tests(check: ProjectCheck, names: Sequence[str]) -> str | None:
    """Return the command for modules or tests by their dotted names, in place of all tests.

    None if the command may find tests elsewhere than below its folder, where other names would be
    needed.
    """
    valid = all(_DOTTED.fullmatch(name) for name in names)
    if not check.command.endswith(_DISCOVER) or not 0 < len(names) <= MAX_ARGUMENTS or not valid:
        return None
    return " ".join([check.command.removesuffix(" discover"), *names])


def _script_files(check: ProjectCheck, changed: Sequence[str], tree: ProjectTree) -> str | None:
    return _by_files(check, changed, tree, _SCRIPT)


def _jest(check: ProjectCheck, changed: Sequence[str], tree: ProjectTree) -> str | None:
    """Return the command with the changed files, whose tests jest finds by their imports."""
    folder = _folder(check.command)
    known = set(below(folder, tree.paths))
    files = [path for path in sorted(set(changed) & known) if path.endswith(_SCRIPT)]
    if not 0 < len(files) <= MAX_ARGUMENTS or _names_tests(check, tree, folder):
        return None
    relative = (_relative(path, folder) for path in files)
    return append_arguments(check, "--findRelatedTests", *relative)


def _go(check: ProjectCheck, changed: Sequence[str], tree: ProjectTree) -> str | None:
    """Return the command for the changed packages and those that import them."""
    if check.command.count("./...") != 1:
        return None
    module = _folder(check.command)
    files = [path for path in below(module, tree.paths) if path.endswith(".go")]
    folders = {dirname(path) for path in files}
    packages = {dirname(path) for path in changed if path.endswith(".go")} & folders
    if not packages:
        return None
    declared = re.search(
        r"^module[ \t]+(\S+)", tree.text(join_path(module, "go.mod")), re.MULTILINE
    )
    if declared:
        paths = {_go_path(declared[1], package, module) for package in packages}
        for path, content in _read(tree, files):
            if not paths.isdisjoint(_GO_IMPORT.findall(content.decode(errors="replace"))):
                packages.add(dirname(path))
    if len(packages) > MAX_ARGUMENTS:
        return None
    inside = (_inside(package, module) for package in sorted(packages))
    return check.command.replace("./...", " ".join(quote(f"./{p}" if p else ".") for p in inside))


def _inside(package: str, module: str) -> str:
    return package.removeprefix(module).removeprefix("/")


def _go_path(declared: str, package: str, module: str) -> str:
    return "/".join(filter(None, (declared, _inside(package, module))))


def _cargo(check: ProjectCheck, changed: Sequence[str], tree: ProjectTree) -> str | None:
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
    return check.command.replace(" --workspace", "".join(f" -p {quote(n)}" for n in sorted(names)))


def _cargo_package(tree: ProjectTree, path: str, folder: str) -> str:
    while path and path != folder:
        path = dirname(path)
        if "Cargo.toml" in tree.names.get(path, frozenset()):
            name = table(tree.toml(join_path(path, "Cargo.toml")), "package").get("name")
            return name if isinstance(name, str) else ""
    return ""


_NARROWERS: dict[str, Callable[[ProjectCheck, Sequence[str], ProjectTree], str | None]] = {
    "pytest": _pytest,
    "unittest": _unittest,
    "vitest": _script_files,
    "ava": _script_files,
    "tap": _script_files,
    "jest": _jest,
    "go": _go,
    "cargo": _cargo,
}
