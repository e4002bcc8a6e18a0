"""What is said about real fixes of Python packages whose sources contain their tests.

Usage: python -m bench.real_fixes [--folder FOLDER] [FIX ...]

A fix is the files of it that two consecutive releases have differently: code and tests. Four
versions of it are verified, each through discovery of the checks, trees, sandboxes of the local
runtime and decision:

- whole: the code and the tests. Right: verified; or not verified, where the fix alters what old
  tests expect, which a person decides.
- code alone. Right: checked, or as above.
- tests alone. Right: not verified.
- with regression: whole, and a function of a changed module returns None, which tests of the base
  execute. Right: not verified.

The packages come from the index that pip is configured for. All of them are tested in one
environment, with their own code in front of what is installed there.
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
from typing import NamedTuple

from resolver.config.settings import load_settings
from resolver.models.run import Patch
from resolver.models.test_files import is_test_file
from resolver.models.verification import Verification
from resolver.runs.verify import verify_in_sandboxes
from resolver.runs.wiring.sandbox import RunHost
from tests.runs.plain_values import prepared_run, run_log, run_request
from tests.verification.suite.local_trees import write_repository


class RealFix(NamedTuple):
    """A fix: the releases before and after it, its files, and what the tests need besides pytest.

    alters: True if old tests expect what the fix changes.
    breaks: the function that returns None in the regression; "" for the longest one.
    """

    old: str
    new: str
    files: tuple[str, ...]
    requirements: tuple[str, ...] = ()
    alters: bool = False
    breaks: str = ""


FIXES: Mapping[str, RealFix] = {
    "h11": RealFix("0.15.0", "0.16.0", ("h11/_readers.py", "h11/tests/test_io.py")),
    "markupsafe": RealFix(
        "2.1.4", "2.1.5", ("src/markupsafe/__init__.py", "tests/test_markupsafe.py")),
    "oauthlib": RealFix(
        "3.2.1", "3.2.2", ("oauthlib/uri_validate.py", "tests/test_uri_validate.py"),
        ("blinker", "cryptography", "pyjwt"), breaks="is_absolute_uri"),
    "oauthlib hosts": RealFix(
        "3.2.1", "3.2.2",
        ("oauthlib/oauth1/rfc5849/signature.py", "tests/oauth1/rfc5849/test_signatures.py"),
        ("blinker", "cryptography", "pyjwt")),
    "pathspec": RealFix(
        "0.11.1", "0.11.2", ("pathspec/patterns/gitwildmatch.py", "tests/test_gitwildmatch.py")),
    "pyjwt": RealFix("2.10.0", "2.10.1", ("jwt/api_jwt.py", "tests/test_api_jwt.py")),
    "soupsieve": RealFix(
        "2.4", "2.4.1", ("soupsieve/css_parser.py", "tests/test_level4/test_attribute.py"),
        ("beautifulsoup4", "html5lib", "lxml")),
    "sqlparse": RealFix("0.5.1", "0.5.2", ("sqlparse/filters/others.py", "tests/test_format.py")),
    "voluptuous": RealFix(
        "0.15.1", "0.15.2", ("voluptuous/schema_builder.py", "voluptuous/tests/tests.py")),
    "furl": RealFix(
        "2.1.2", "2.1.3", ("furl/furl.py", "tests/test_furl.py"),
        ("six", "orderedmultidict", "flake8"), alters=True),
    "jinja2": RealFix(
        "3.1.3", "3.1.4", ("src/jinja2/filters.py", "tests/test_filters.py"),
        ("markupsafe", "trio"), alters=True),
    "prettytable": RealFix(
        "3.10.0", "3.10.1", ("src/prettytable/prettytable.py", "tests/test_prettytable.py"),
        ("wcwidth", "pytest-lazy-fixtures"), alters=True),
    "xmltodict": RealFix(
        "0.14.1", "0.14.2", ("xmltodict.py", "tests/test_xmltodict.py"), alters=True),
}  # fmt: skip
"""Each is named in the changelog of its package. A name may say which of several fixes it is."""

RIGHT = {
    "whole": "verified",
    "code alone": "checked",
    "tests alone": "not_verified",
    "with regression": "not_verified",
}
"""The verdicts that are right, by the version of a fix."""

Files = dict[str, str]


def read_release(package: str, version: str, folder: Path) -> Files:
    """Return the text files of a source package, which is downloaded unless it is there."""
    if not list(folder.glob(f"*-{version}.tar.gz")):
        options = ["--no-deps", "--no-binary", package, "-q", "-d", str(folder)]
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


def with_regression(files: Files, code: str, breaks: str) -> Files:
    """Return the files with a function of a module returning None: this one, or the longest."""
    nodes = [n for n in ast.walk(ast.parse(files[code])) if isinstance(n, ast.FunctionDef)]
    functions = [node for node in nodes if node.name == breaks] or nodes
    first = max(functions, key=lambda node: (node.end_lineno or 0) - node.lineno).body[0]
    lines = files[code].splitlines(keepends=True)
    lines.insert(first.lineno - 1, " " * first.col_offset + "return None\n")
    return {**files, code: "".join(lines)}


def versions_of(fix: RealFix, before: Files, after: Files) -> dict[str, Files]:
    """Return the files of each version of the fix by its name."""
    tests = {path: after[path] for path in fix.files if is_test_file(path)}
    code = {path: after[path] for path in fix.files if path not in tests}
    whole = {**before, **code, **tests}
    return {
        "whole": whole,
        "code alone": {**before, **code},
        "tests alone": {**before, **tests},
        "with regression": with_regression(whole, next(iter(code)), fix.breaks),
    }


def make_environment(folder: Path, requirements: set[str]) -> str:
    """Return PATH with a new environment that has pytest and these packages."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "-q", "pytest", *requirements]
    subprocess.run(pip, check=True)
    return f"{folder}/bin:/usr/local/bin:/usr/bin:/bin"


def verify(before: Files, after: Files, path: str, folder: Path) -> Verification:
    """Return the verdict about a change."""
    workspace, tree = write_repository(folder / "repository.git", before, after)
    source = "src" if any(name.startswith("src/") for name in before) else "."
    command = f"PYTHONPATH={source} python -m pytest -q -p no:cacheprovider"
    checks = [{"name": "tests", "command": command}]
    settings = load_settings({"runtime": "local", "checks": checks, "max_time": 900}, {})
    request = replace(run_request(folder), host=RunHost({"PATH": path}, folder / "cache"))
    prepared = prepared_run(request, workspace, settings=settings)
    with run_log(prepared.request.output.log) as log:
        return verify_in_sandboxes(prepared, log, Patch(base=workspace.base, tree=tree))


def describe(found: Verification, seconds: float) -> str:
    """Return the verdict with its reason and the numbers of tests that it rests on."""
    kinds = ("reproduction", "former", "broken", "missing", "failing", "known")
    counts = {k: sum(len(getattr(check, k)) for check in found.checks) for k in kinds}
    counted = [f"{count} {kind}" for kind, count in counts.items() if count]
    verdict = f"{found.verdict} {found.reason or ''}".strip().replace("_", " ")
    return ", ".join([verdict, *counted, f"{seconds:.0f} s"])


def main() -> None:
    """Print what is said about each version of each fix, and how often that is right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("fixes", nargs="*", default=list(FIXES))
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="real-fixes-"))
    fixes = {label: FIXES[label] for label in options.fixes}
    # The local sandbox hides the folders of temporary files.
    environment = Path(tempfile.mkdtemp(prefix="real-fixes-", dir=Path.home() / ".cache"))
    path = make_environment(environment, {r for fix in fixes.values() for r in fix.requirements})
    right = dict.fromkeys(RIGHT, 0)
    print("| fix | version of it | what is said |\n|---|---|---|")
    for label, fix in fixes.items():
        package = label.partition(" ")[0]
        place = folder / package
        place.mkdir(parents=True, exist_ok=True)
        before, after = (read_release(package, version, place) for version in (fix.old, fix.new))
        for name, files in versions_of(fix, before, after).items():
            started = time.monotonic()
            found = verify(before, files, path, Path(tempfile.mkdtemp(prefix=name[:5], dir=place)))
            is_altered = fix.alters and name in {"whole", "code alone"}
            wanted = "not_verified" if is_altered else RIGHT[name]
            right[name] += found.verdict == wanted
            said = describe(found, time.monotonic() - started)
            print(f"| {label} {fix.new} | {name} | {said} |", flush=True)
    print("".join(f"\n{name}: {right[name]} of {len(fixes)} right" for name in right))


if __name__ == "__main__":
    main()
