"""What is said about real fixes: releases of Python packages whose sources contain their tests.

Usage: python -m bench.real_fixes [--folder FOLDER] [PACKAGE ...]

The change is the difference between two releases, without manifests and packaging metadata. Four
versions of it are verified, each through discovery of the checks, trees, sandboxes of the local
runtime and decision:

- whole: the code and the tests. Right: verified.
- code alone. Right: checked.
- tests alone. Right: not verified if a test fails, never verified.
- with regression: whole, and a function of a module that the change touches returns None. Right:
  not verified.

The packages come from the index that pip is configured for, and are installed with what their tests
need in an environment of their own.
"""

import argparse
import ast
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from resolver.config.settings import load_settings
from resolver.models.run import Patch
from resolver.models.test_files import is_test_file
from resolver.runs.verify import verify_in_sandboxes
from resolver.runs.wiring.sandbox import RunHost
from resolver.verification.project_files import is_project_manifest
from tests.runs.plain_values import prepared_run, run_log, run_request
from tests.verification.suite.local_trees import write_repository

RELEASES: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "itsdangerous": ("2.1.1", "2.1.2", ("freezegun",)),
    "click": ("8.1.6", "8.1.7", ()),
    "pluggy": ("1.4.0", "1.5.0", ()),
    "more-itertools": ("10.1.0", "10.2.0", ()),
    "idna": ("3.6", "3.7", ()),
    "markdown": ("3.5.1", "3.5.2", ("pyyaml",)),
    "jinja2": ("3.1.3", "3.1.4", ("markupsafe", "trio")),
    "marshmallow": ("3.21.1", "3.21.2", ("pytz", "simplejson", "packaging")),
    "cachetools": ("5.3.2", "5.3.3", ()),
    "attrs": ("23.1.0", "23.2.0", ("hypothesis", "cloudpickle")),
}
"""Releases before and after, and what the tests need besides pytest."""

Files = dict[str, str]


def read_release(package: str, version: str, folder: Path) -> Files:
    """Return the text files of a source package."""
    options = ["--no-deps", "--no-binary", ":all:", "-q", "-d", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, f"{package}=={version}"]
    subprocess.run(command, check=True)
    [archive] = folder.glob(f"*-{version}.tar.gz")
    files: Files = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            path = member.name.partition("/")[2]
            if member.isfile() and "egg-info" not in path and path != "PKG-INFO":
                content = tar.extractfile(member)
                try:
                    files[path] = content.read().decode() if content else ""
                except UnicodeDecodeError:
                    continue
    return files


def with_regression(files: Files, changed: set[str]) -> Files:
    """Return the files with the longest function of a changed module returning None."""
    for path in sorted(changed):
        is_code = f"{path.rpartition('/')[0]}/__init__.py" in files  # no script of the project
        is_code = is_code and not path.startswith(("docs", "examples"))
        if not path.endswith(".py") or is_test_file(path) or not is_code:
            continue
        functions = [
            node for node in ast.walk(ast.parse(files[path])) if isinstance(node, ast.FunctionDef)
        ]
        if not functions:
            continue
        longest = max(functions, key=lambda node: (node.end_lineno or 0) - node.lineno)
        first = longest.body[0]
        lines = files[path].splitlines(keepends=True)
        lines.insert(first.lineno - 1, " " * first.col_offset + "return None\n")
        return {**files, path: "".join(lines)}
    return files


def versions_of(before: Files, after: Files) -> dict[str, Files]:
    """Return the files of each version of the change by its name."""
    after = {path: text for path, text in after.items() if not _is_packaging(path)}
    after |= {path: text for path, text in before.items() if _is_packaging(path)}
    changed = {p for p in before.keys() | after.keys() if before.get(p) != after.get(p)}

    def only(wanted: set[str]) -> Files:
        taken = {path: after.get(path) if path in wanted else before.get(path) for path in
                 before.keys() | after.keys()}  # fmt: skip
        return {path: text for path, text in taken.items() if text is not None}

    tests = {path for path in changed if is_test_file(path)}
    return {
        "whole": after,
        "code alone": only(changed - tests),
        "tests alone": only(tests),
        "with regression": with_regression(after, changed),
    }


def _is_packaging(path: str) -> bool:
    """Return True if a fix rarely touches the file, and a release always does."""
    return is_project_manifest(path) or "requirements" in path or path.endswith((".lock", ".ini"))


def make_environment(folder: Path, requirements: tuple[str, ...]) -> str:
    """Return PATH with a new environment that has pytest and these packages."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "-q", "pytest", *requirements]
    subprocess.run(pip, check=True)
    return f"{folder}/bin:/usr/local/bin:/usr/bin:/bin"


def verify(before: Files, after: Files, path: str, folder: Path) -> str:
    """Return the verdict about a change, with its reason and what it is about."""
    workspace, tree = write_repository(folder / "repository.git", before, after)
    source = "src" if any(name.startswith("src/") for name in before) else "."
    command = f"PYTHONPATH={source} python -m pytest -q -p no:cacheprovider"
    checks = [{"name": "tests", "command": command}]
    settings = load_settings({"runtime": "local", "checks": checks}, {})
    request = replace(run_request(folder), host=RunHost({"PATH": path}, folder / "cache"))
    prepared = prepared_run(request, workspace, settings=settings)
    started = time.monotonic()
    with run_log(prepared.request.output.log) as log:
        found = verify_in_sandboxes(prepared, log, Patch(base=workspace.base, tree=tree))
    counts = [
        f"{len(names)} {kind}"
        for kind in ("reproduction", "former", "broken", "missing", "failing", "known")
        if (names := [name for check in found.checks for name in getattr(check, kind)])
    ]
    took = f"{time.monotonic() - started:.0f} s"
    return ", ".join([f"{found.verdict} {found.reason}".strip(), *counts, took])


def main() -> None:
    """Print what is said about each version of each change."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("packages", nargs="*", default=list(RELEASES))
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="real-fixes-"))
    print("| package | version of the change | what is said |\n|---|---|---|")
    for package in options.packages:
        old, new, requirements = RELEASES[package]
        place = folder / package
        place.mkdir(parents=True)
        before, after = (read_release(package, version, place) for version in (old, new))
        if not any(map(is_test_file, before)):
            print(f"| {package} {new} | | its source has no tests |", flush=True)
            continue
        # The local sandbox hides the folders of temporary files.
        environment = Path(tempfile.mkdtemp(prefix=f"{package}-", dir=Path.home() / ".cache"))
        path = make_environment(environment, requirements)
        for name, files in versions_of(before, after).items():
            said = verify(before, files, path, place / name.replace(" ", "-"))
            print(f"| {package} {new} | {name} | {said} |", flush=True)


if __name__ == "__main__":
    main()
