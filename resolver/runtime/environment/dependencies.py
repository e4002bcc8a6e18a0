"""Decides whether a changed file alters what the environment of a project has to contain.

A manifest that serves several purposes, such as `pyproject.toml`, alters the environment only if
one of the sections changes that name dependencies or say how the project is installed.
"""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, Literal

from resolver.errors import ResolverError
from resolver.runtime.environment.plan import Read

DependencyKind = Literal["installed", "resolved"]
"""The step that makes the environment fit a file that alters it.

installed: only a set-up does. resolved: the build tool does, each time that it starts, or it fails.
"""

_INSTALLED = re.compile(
    r"(?:[\w.-]*requirements|constraints)[\w.-]*\.(?:txt|in)|Pipfile(?:\.lock)?|pylock[\w.-]*\.toml"
    r"|(?:poetry|uv|pdm|pixi)\.lock|setup\.(?:py|cfg)|environment[\w.-]*\.ya?ml|conda-lock\.yml|pixi\.toml"
    r"|package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-(?:lock|workspace)\.yaml|bun\.lockb?"
    r"|deno\.lock|\.npmrc|\.yarnrc\.yml|Gemfile(?:\.lock)?|[^/]*\.gemspec|composer\.(?:json|lock)"
    r"|mix\.(?:exs|lock)|\.nvmrc|\.(?:node|python|ruby|java)-version|\.tool-versions|\.?mise\.toml"
)
_RESOLVED = re.compile(
    r"go\.(?:mod|sum|work|work\.sum)|Cargo\.(?:toml|lock)|rust-toolchain(?:\.toml)?|pom\.xml"
    r"|(?:build|settings)\.gradle(?:\.kts)?|gradle\.(?:properties|lockfile)|libs\.versions\.toml"
    r"|(?:gradle|maven)-wrapper\.properties|[^/]*\.(?:cs|fs|vb)proj|packages\.lock\.json"
    r"|Directory\.(?:Build|Packages)\.(?:props|targets)|(?i:nuget\.config)|global\.json"
)
_ELSEWHERE = frozenset(
    {"doc", "docs", "example", "examples", "sample", "samples", "fixtures", "__fixtures__",
     "testdata", "test-data", "test_data", "template", "templates", "node_modules", "vendor"}
)  # fmt: skip
"""Folders whose manifests do not belong to the project itself."""

_DESCRIPTIVE = frozenset(
    {"version", "description", "readme", "license", "license-files", "authors", "maintainers",
     "keywords", "classifiers", "urls"}
)  # fmt: skip
"""Fields of `[project]` that no installation depends on:
https://packaging.python.org/en/latest/specifications/pyproject-toml/"""

_PYTHON_TOOLS = (
    "poetry", "uv", "pdm", "hatch", "setuptools", "flit", "rye", "pixi", "maturin", "scikit-build",
)  # fmt: skip
_PACKAGE_FIELDS = (
    "overrides", "resolutions", "engines", "workspaces", "packageManager", "pnpm", "bin", "type",
)  # fmt: skip
_INSTALL_SCRIPTS = ("preinstall", "install", "postinstall", "prepare")


def dependency_kind(path: str, before: Read, after: Read) -> DependencyKind | None:
    """Return who has to make the environment fit the change of a file, None if nobody has to.

    before, after: return a file without and with the change. A manifest that can't be read or
        parsed counts as one that alters the environment.
    """
    at = PurePosixPath(path)
    if not _ELSEWHERE.isdisjoint(part.lower() for part in at.parts[:-1]):
        return None
    is_listed = at.parent.name == "requirements" and at.suffix in {".txt", ".in"}
    if is_listed or _INSTALLED.fullmatch(at.name):
        return "installed"
    if _RESOLVED.fullmatch(at.name):
        return "resolved"
    if at.name not in _SECTIONS:
        return None
    sections = _SECTIONS[at.name]
    try:
        old, new = (
            sections((read(path) or b"").decode(errors="replace")) for read in (before, after)
        )
    except (ValueError, RecursionError, ResolverError):
        return "installed"
    return "installed" if old != new else None


def _pyproject(text: str) -> object:
    data = tomllib.loads(text)
    project, tools = _mapping(data.get("project")), _mapping(data.get("tool"))
    return (
        {name: value for name, value in project.items() if name not in _DESCRIPTIVE},
        data.get("build-system"),
        data.get("dependency-groups"),
        {name: _without_version(tools.get(name)) for name in _PYTHON_TOOLS},
    )


def _without_version(tool: object) -> object:
    return {k: v for k, v in _mapping(tool).items() if k not in _DESCRIPTIVE}


def _package(text: str) -> object:
    data = _mapping(json.loads(text or "{}"))
    scripts = _mapping(data.get("scripts"))
    fields = {k: v for k, v in data.items() if "ependencies" in k or k in _PACKAGE_FIELDS}
    return fields, [scripts.get(name) for name in _INSTALL_SCRIPTS]


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


_SECTIONS: dict[str, Callable[[str], object]] = {
    "pyproject.toml": _pyproject,
    "package.json": _package,
}
