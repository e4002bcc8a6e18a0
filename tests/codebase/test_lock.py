"""Tests of the lock files in requirements/, and that everything is installed from them."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / "requirements"
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
GROUPS = PYPROJECT["dependency-groups"]

SOURCES: dict[str, list[str]] = {
    "run": PROJECT["dependencies"],
    "test": PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"],
    **GROUPS,
    "build": PYPROJECT["build-system"]["requires"] + GROUPS["build"],
}
"""What each lock file is made from."""


def entries(name: str) -> dict[str, tuple[Requirement, list[str]]]:
    """Return the requirement and the hashes of each package of a lock file."""
    found = {}
    for text in (LOCKS / f"{name}.txt").read_text().replace("\\\n", "").splitlines():
        requirement, *hashes = re.split(r"\s+(?=--hash)", text.strip())
        parsed = Requirement(requirement)
        found[canonicalize_name(parsed.name)] = (parsed, hashes)
    return found


def version_of(locked: Requirement) -> Version:
    [specifier] = locked.specifier
    assert specifier.operator == "==", locked
    return Version(specifier.version)


@pytest.mark.parametrize("name", SOURCES)
def test_the_locked_versions_satisfy_pyproject(name: str) -> None:
    locked = entries(name)
    for wanted in map(Requirement, SOURCES[name]):
        entry = locked.get(canonicalize_name(wanted.name))
        assert entry, f"{wanted.name} is not in requirements/{name}.txt: run `make lock`"
        version = version_of(entry[0])
        assert wanted.specifier.contains(version), f"{wanted} is locked at {version}: `make lock`"
        assert entry[0].marker is None or entry[0].marker.evaluate(), entry[0]


@pytest.mark.parametrize("file", ["Makefile", "Dockerfile", "tests/parts/images.sh"])
def test_packages_are_only_taken_by_their_hash(file: str) -> None:
    text = re.sub(r"^\s*#.*|\\\n", "", (ROOT / file).read_text(), flags=re.MULTILINE)
    commands = re.findall(r"\bpip\S* .*?(?:install|download)\b[^&|\n]*", text)
    assert commands
    for command in commands:
        is_own_package = "--no-deps" in command and re.search(
            "--no-index|--no-build-isolation", command
        )
        assert is_own_package or "--require-hashes" in command, command
