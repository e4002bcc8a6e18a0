"""Finds the checks of JavaScript and TypeScript projects: the scripts of package.json."""

import re
from collections.abc import Iterator, Mapping
from posixpath import basename
from shlex import quote

from resolver.models.verification import ProjectCheck
from resolver.verification.check_candidates import (
    CheckCandidate,
    command_keys,
    in_folder,
    with_folder,
)
from resolver.verification.project_folders import project_folders
from resolver.verification.project_tree import ProjectTree, join_path, table
from resolver.verification.runner_commands import (
    last_runner,
    runners_of,
    simple_commands,
)

APPENDABLE = frozenset({"jest", "vitest", "mocha", "ava", "tap"})
"""Runners that take the arguments after a package script."""

UNWRITTEN = "no test specified"
"""Text of the test script that `npm init` writes for a project without tests."""

_LOCKS = (
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("package-lock.json", "npm"),
    ("npm-shrinkwrap.json", "npm"),
)
_SCRIPTS = (
    ("test", "tests", "test:unit", "unit", "test:ci"),
    ("lint",),
    ("typecheck", "type-check", "check-types", "check:types", "types", "tsc"),
)
"""Names of scripts by purpose; of each purpose the first that exists is used."""

_SEVERAL = frozenset({"run-s", "run-p", "npm-run-all", "npm-run-all2"})
_OWN_REPORT = {
    "jest": re.compile(r"--(?:outputFile|json|reporters)\b"),
    "mocha": re.compile(r"(?<!\S)(?:--reporter|-R|--reporter-options?)\b"),
    "tap": re.compile(r"(?<!\S)(?:--reporter|-R)\b"),
}
"""Matches options of a script that an appended option of the same name would contradict."""

_REWRITES = re.compile(r"--(?:fix|write)\b")
_NAME = re.compile(r"[\w:.@/+-]{1,100}")
_MAX_SCRIPTS = 8
"""Maximum number of scripts that one script is replaced by."""


def find_javascript_checks(tree: ProjectTree) -> Iterator[CheckCandidate]:
    """Yield the scripts of each package.json that test, lint or check types."""
    for folder in project_folders(tree, {"package.json"}):
        package = tree.json(join_path(folder, "package.json"))
        written = {
            name: text
            for name, text in table(package, "scripts").items()
            if isinstance(text, str) and _NAME.fullmatch(name)
        }
        manager = _manager(tree, folder, package.get("packageManager"))
        for names in _SCRIPTS:
            usable = (name for name in names if _is_usable(written.get(name, "")))
            if name := next(usable, ""):
                for part in _parts(name, written):
                    yield _check(part, written, manager, folder)
        if not any(_is_usable(written.get(name, "")) for name in _SCRIPTS[0]):
            yield from _runner_without_script(package, folder)


def _is_usable(text: str) -> bool:
    return bool(text.strip()) and UNWRITTEN not in text and not _REWRITES.search(text)


def _manager(tree: ProjectTree, folder: str, declared: object) -> str:
    """Return the package manager of a folder.

    declared: the value of `packageManager`, such as "pnpm@9.1.0".
    """
    name = str(declared or "").partition("@")[0]
    if name in {manager for _, manager in _LOCKS}:
        return name
    for place in dict.fromkeys((folder, "")):
        names = tree.names.get(place, frozenset())
        for lock, manager in _LOCKS:
            if lock in names:
                return manager
    return "npm"


def _parts(name: str, scripts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the scripts that a script only calls, in their order, else the script itself.

    Results by test come from a script that calls its runner itself.
    """
    called_scripts: list[str] = []
    for command in simple_commands(scripts[name]):
        words = command.words
        if words and basename(words[0]) in _SEVERAL:
            called = [word for word in words[1:] if not word.startswith("-")]
        else:
            called = [command.script]
        if not called or any(
            called_name not in scripts or called_name == name for called_name in called
        ):
            return (name,)
        called_scripts += called
    parts = tuple(dict.fromkeys(called_scripts))
    return parts if 0 < len(parts) <= _MAX_SCRIPTS else (name,)


def _check(name: str, scripts: Mapping[str, str], manager: str, folder: str) -> CheckCandidate:
    text = scripts[name]
    run = "npm test" if (manager, name) == ("npm", "test") else f"{manager} run {quote(name)}"
    check = ProjectCheck(
        name=with_folder(run, folder),
        command=in_folder(run, folder),
        runner=_script_runner(text),
        # Without it, some runners watch the files and never end.
        environment={"CI": "true"},
        origin=f"`scripts.{name}` in {join_path(folder, 'package.json')}",
    )
    own = frozenset({f"script:{name}:{folder}"})
    return CheckCandidate(check, own, command_keys(text, folder))


def script_runner(tree: ProjectTree, folder: str, name: str) -> str:
    """Return the runner of a package script if its results by test can be requested, else ""."""
    scripts = table(tree.json(join_path(folder, "package.json")), "scripts")
    text = scripts.get(name)
    return _script_runner(text) if isinstance(text, str) else ""


def _script_runner(text: str) -> str:
    """Return the runner of a script if its results by test can be requested, else ""."""
    if set(runners_of(text)) == {"node"}:
        return "node"
    runner = last_runner(text)
    pattern = _OWN_REPORT.get(runner)
    if runner not in APPENDABLE or (pattern is not None and pattern.search(text)):
        return ""
    return runner


def _runner_without_script(package: Mapping[str, object], folder: str) -> Iterator[CheckCandidate]:
    """Yield the runner that a package depends on but has no script for."""
    needed = {**table(package, "devDependencies"), **table(package, "dependencies")}
    for runner, command in (
        ("vitest", "npx --no-install vitest run"),
        ("jest", "npx --no-install jest"),
    ):
        if runner in needed:
            check = ProjectCheck(
                name=with_folder(runner, folder),
                command=in_folder(command, folder),
                runner=runner,
                environment={"CI": "true"},
                origin=f"`devDependencies` in {join_path(folder, 'package.json')}",
            )
            yield CheckCandidate(check, frozenset({f"{runner}:{folder}"}))
            return
