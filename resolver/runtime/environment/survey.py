"""Guesses a repository's language, a fitting image, and the commands of its set-up.

Only the names of files and the contents of files at the root are used; for a repository with
several projects in folders, the files at their roots. The result is a proposal that a person reads
before it is committed, so a guess that may be wrong is better than none.
"""

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

Read = Callable[[str], bytes | None]
"""Return the content of the file at a path, or None if there is none."""

EXTRAS = ("test", "tests", "testing", "dev", "develop", "development")
"""Names under which projects list what their tests need, the most likely first."""

MAX_PROJECTS = 8
"""Number of projects in folders that are set up."""

MAX_DEPTH = 2
"""Maximum depth of a folder with a project; 1 is a folder at the root."""

_NO_PROJECTS = re.compile(
    r"(?:^|/)(?:\.[^/]*|docs?|examples?|samples?|fixtures?|tests?|spec|testdata|templates?|vendor|"
    r"third_party|node_modules|dist|build)(?:/|$)",
    re.I,
)
_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,3})?")
_RUST = re.compile(r"^(?:channel\s*=\s*[\"'])?(1\.\d{1,3}(?:\.\d{1,2})?)\b", re.MULTILINE)
_JAVA = re.compile(
    r"<(?:maven\.compiler\.(?:release|source)|java\.version|release)>\s*(?:1\.)?(\d{1,2})\s*<"
)
_JAVA_IMAGES = (8, 11, 17, 21, 25)
_GO = re.compile(r"^go[ \t]+(\d+\.\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Survey:
    """The result of a survey.

    language: for people; "" if unknown.
    image: a public image.
    setup: bash that installs what the tests need; "" if there is nothing to install.
    others: further languages that were found.
    """

    language: str = ""
    image: str = "python:3.12-slim-bookworm"
    setup: str = ""
    others: tuple[str, ...] = ()


def survey(
    names: Collection[str], read: Read, files_by_folder: Mapping[str, Collection[str]] | None = None
) -> Survey:
    """Survey a repository by the files at its root.

    names: names of those files.
    read: returns the content of the file at a path.
    files_by_folder: names of the files in each folder that may hold a project, from `folders_of`.
    """
    root = _project(names, read)
    projects = _projects(files_by_folder or {}, read)
    languages = [root.language, *(project.language for project in projects.values())]
    if root.language or not projects:
        return replace(root, others=_other_languages((*root.others, *languages), root.language))
    first = next(iter(projects.values()))
    same_language = {
        folder: project
        for folder, project in projects.items()
        if project.language == first.language
    }
    installs = [
        f"(cd {shlex.quote(folder)} && {project.setup})"
        for folder, project in same_language.items()
        if project.setup
    ]
    return Survey(
        first.language,
        first.image,
        " && ".join(installs[:MAX_PROJECTS]),
        _other_languages(languages, first.language),
    )


def folders_of(paths: Iterable[str]) -> dict[str, set[str]]:
    """Return the names of the files in each folder that may hold a project, for `survey`."""
    files_by_folder: dict[str, set[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder and folder.count("/") < MAX_DEPTH and not _NO_PROJECTS.search(folder):
            files_by_folder.setdefault(folder, set()).add(name)
    return dict(sorted(files_by_folder.items()))


def _projects(files_by_folder: Mapping[str, Collection[str]], read: Read) -> dict[str, Survey]:
    marker_files = frozenset[str]().union(*(markers for markers, _ in _LANGUAGES))
    projects: dict[str, Survey] = {}
    for folder, names in files_by_folder.items():
        if marker_files & set(names) and not any(
            folder.startswith(f"{parent}/") for parent in projects
        ):
            projects[folder] = _project(names, partial(_within, read, folder))
    return projects


def _within(read: Read, folder: str, name: str) -> bytes | None:
    return read(f"{folder}/{name}")


def _other_languages(languages: Iterable[str], first: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(language for language in languages if language not in {"", first}))


def _project(names: Collection[str], read: Read) -> Survey:
    surveys = [
        survey_language(names, read)
        for markers, survey_language in _LANGUAGES
        if markers & set(names)
    ]
    if not surveys:
        return Survey()
    first = surveys[0]
    others = _other_languages((found_survey.language for found_survey in surveys), first.language)
    return Survey(first.language, first.image, first.setup, others)


def _python(names: Collection[str], read: Read) -> Survey:
    project = _toml(read, "pyproject.toml")
    metadata = _table(project, "project")
    version = _version(
        str(metadata.get("requires-python", "")), "3.12", min_version=(3, 9), max_version=(3, 14)
    )
    return Survey(
        language="Python",
        image=f"python:{version}-slim-bookworm",
        setup=_python_setup(names, project),
    )


def _python_setup(names: Collection[str], project: dict[str, Any]) -> str:
    if "uv.lock" in names:
        return "pip install uv && uv sync --all-extras"
    if "poetry.lock" in names:
        return "pip install poetry && poetry install"
    commands = [
        f"pip install -r {file_name}" for file_name in sorted(names) if _is_requirements(file_name)
    ]
    if {"setup.py", "setup.cfg"} & set(names) or "build-system" in project or "project" in project:
        extras = _table(_table(project, "project"), "optional-dependencies")
        extra = next((name for name in EXTRAS if name in extras), "")
        commands.append(f"pip install -e '.[{extra}]'" if extra else "pip install -e .")
    groups = _table(project, "dependency-groups")
    group = next((name for name in EXTRAS if name in groups), "")
    if group:
        commands.append(f"pip install --group {group}")
    elif "pytest" in _table(project, "tool") and not (commands and "[" in commands[-1]):
        commands.append("pip install pytest")
    return " && ".join(commands)


def _is_requirements(name: str) -> bool:
    return (
        re.fullmatch(r"(?:(?:dev|test|tests)-)?requirements(?:[-_](?:dev|test|tests))?\.txt", name)
        is not None
    )


def _node(names: Collection[str], read: Read) -> Survey:
    package = _json(read, "package.json")
    version_text = _text(read, ".nvmrc") or str(_table(package, "engines").get("node", ""))
    version = _version(version_text, "22", min_version=(18,), max_version=(26,)).partition(".")[0]
    installs = {
        "pnpm-lock.yaml": "corepack enable && pnpm install --frozen-lockfile",
        "yarn.lock": "corepack enable && yarn install --frozen-lockfile",
        "package-lock.json": "npm ci",
    }
    setup = next((command for lock, command in installs.items() if lock in names), "npm install")
    return Survey("JavaScript", f"node:{version}-bookworm-slim", setup)


def _go(names: Collection[str], read: Read) -> Survey:  # noqa: ARG001 - one signature for all
    match = _GO.search(_text(read, "go.mod"))
    return Survey("Go", f"golang:{match[1] if match else '1'}-bookworm", "go mod download")


def _rust(names: Collection[str], read: Read) -> Survey:  # noqa: ARG001
    """Return the survey of a Rust project, with the image of the toolchain version it names.

    With another image rustup would download that version, from a host the sandbox can't reach.
    """
    toolchain = _text(read, "rust-toolchain.toml") or _text(read, "rust-toolchain")
    match = _RUST.search(toolchain)
    image = f"rust:{match[1] if match else '1'}-slim-bookworm"
    return Survey("Rust", image, "cargo fetch")


def _ruby(names: Collection[str], read: Read) -> Survey:  # noqa: ARG001
    version = _version(_text(read, ".ruby-version"), "3.4", min_version=(2, 7), max_version=(4, 0))
    # Gems with extensions are compiled on installation; the slim image has no compiler.
    return Survey("Ruby", f"ruby:{version}-bookworm", "bundle install")


def _maven(names: Collection[str], read: Read) -> Survey:
    # The set-up also downloads the Maven that the wrapper names, which the checks start.
    maven = "./mvnw" if "mvnw" in names else "mvn"
    setup = f"{maven} -q -B dependency:go-offline"
    match = _JAVA.search(_text(read, "pom.xml"))
    min_release = int(match[1]) if match else 0
    release = next(
        (image_release for image_release in _JAVA_IMAGES if image_release >= min_release),
        _JAVA_IMAGES[-1],
    )
    image = f"maven:3-eclipse-temurin-{release if match else 21}"
    return Survey("Java", image, setup)


def _gradle(names: Collection[str], read: Read) -> Survey:  # noqa: ARG001
    gradle = "./gradlew" if "gradlew" in names else "gradle"
    return Survey("Java", "gradle:8-jdk21", f"{gradle} --no-daemon testClasses")


_LANGUAGES: tuple[tuple[set[str], Callable[[Collection[str], Read], Survey]], ...] = (
    ({"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"}, _python),
    ({"go.mod"}, _go),
    ({"Cargo.toml"}, _rust),
    ({"pom.xml"}, _maven),
    ({"build.gradle", "build.gradle.kts"}, _gradle),
    ({"Gemfile"}, _ruby),
    ({"package.json"}, _node),
)


def _version(
    text: str, default: str, *, min_version: tuple[int, ...], max_version: tuple[int, ...]
) -> str:
    """Return the first version in `text` if an image of it is likely to exist, or else the default.

    A lower bound (`>`, `^`, `~`) that is not above the default gives the default too.
    """
    match = _NUMBER.search(text)
    if match is None:
        return default
    version = tuple(int(part) for part in match[0].split("."))
    if text.strip().startswith((">", "^", "~")) and version <= _numbers(default):
        return default
    return match[0] if min_version <= version <= max_version else default


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _text(read: Read, name: str) -> str:
    return (read(name) or b"").decode(errors="replace")


def _toml(read: Read, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(read, name))
    except (ValueError, RecursionError):  # also of a number with more digits than Python reads
        return {}


def _json(read: Read, name: str) -> dict[str, Any]:
    try:
        value = json.loads(_text(read, name) or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _table(data: dict[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}
