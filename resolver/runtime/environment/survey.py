"""Recognizes a project by the files at the repository's root: its language, an image that fits, and
the commands that install what its tests need.

`resolver init` proposes both. Where the repository describes no set-up, the commands are also the
usual set-up of a run, if the operator lets the sandbox reach the registries.
"""

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from resolver.runtime.environment.plan import Read, SetupPlan

EXTRAS: Final = ("test", "tests", "testing", "dev", "develop", "development")
"""Names under which projects list what their tests need, the most likely first."""

_REQUIREMENTS: Final = (
    "requirements.txt", "requirements-dev.txt", "requirements_dev.txt", "requirements-test.txt",
    "dev-requirements.txt", "test-requirements.txt",
)  # fmt: skip
_NODE_INSTALLATIONS: Final = {
    "pnpm-lock.yaml": "corepack enable && pnpm install --frozen-lockfile",
    "yarn.lock": "corepack enable && yarn install --frozen-lockfile",
    "package-lock.json": "npm ci",
}
_NUMBER: Final = re.compile(r"\d{1,3}(?:\.\d{1,3})?")
_RUST: Final = re.compile(r"^(?:channel\s*=\s*[\"'])?(1\.\d{1,3}(?:\.\d{1,2})?)\b", re.MULTILINE)

_JAVA: Final = re.compile(
    r"<(?:maven\.compiler\.(?:release|source)|java\.version|release)>\s*(?:1\.)?(\d{1,2})\s*<"
)
_JAVA_RELEASES: Final = (8, 11, 17, 21, 25)
"""Releases of Java that there are images of. What is written for one may break on a later one."""


@dataclass(frozen=True)
class Survey:
    """The result of a survey.

    language: for people; None if unknown. image: a public image.
    setup: bash that installs what the tests need; None if there is nothing to install.
    marker: the file that the language was recognized by, None if there is none.
    hosts: those that the set-up downloads from.
    """

    language: str | None = None
    image: str = "python:3.12-slim-bookworm"
    setup: str | None = None
    marker: str | None = None
    hosts: tuple[str, ...] = ()

    @property
    def plan(self) -> SetupPlan | None:
        """The usual installation of the project, None if there is nothing to install."""
        if not self.setup or not self.marker:
            return None
        return SetupPlan(self.marker, self.setup, is_standard=True)


def survey(read: Read) -> Survey:
    """Survey a repository. read: returns the content of the file at a path."""
    for language in _LANGUAGES:
        marker = next((name for name in language.markers if read(name) is not None), None)
        if marker:
            image, setup = language.environment(read)
            return Survey(language.name, image, setup, marker, language.hosts)
    return Survey()


def _python(read: Read) -> tuple[str, str | None]:
    project = _parse(tomllib.loads, read, "pyproject.toml")
    version = _version(str(_table(project, "project").get("requires-python", "")), "3.12")
    return f"python:{version}-slim-bookworm", _python_setup(read, project)


def _python_setup(read: Read, project: dict[str, Any]) -> str | None:
    if read("uv.lock") is not None:
        return "pip install uv && uv sync --all-extras"
    if read("poetry.lock") is not None:
        return "pip install poetry && poetry install"
    commands = [f"pip install -r {name}" for name in _REQUIREMENTS if read(name) is not None]
    is_package = "build-system" in project or "project" in project
    if is_package or any(read(name) is not None for name in ("setup.py", "setup.cfg")):
        extras = _table(_table(project, "project"), "optional-dependencies")
        extra = next((name for name in EXTRAS if name in extras), None)
        commands.append(f"pip install -e '.[{extra}]'" if extra else "pip install -e .")
    groups = _table(project, "dependency-groups")
    group = next((name for name in EXTRAS if name in groups), None)
    if group:
        commands.append(f"pip install --group {group}")
    elif "pytest" in _table(project, "tool") and not (commands and "[" in commands[-1]):
        commands.append("pip install pytest")
    return " && ".join(commands) or None


def _node(read: Read) -> tuple[str, str | None]:
    package = _parse(json.loads, read, "package.json")
    wanted = _text(read, ".nvmrc") or str(_table(package, "engines").get("node", ""))
    installations = _NODE_INSTALLATIONS.items()
    setup = next((command for lock, command in installations if read(lock) is not None), None)
    version = _version(wanted, "22").partition(".")[0]
    return f"node:{version}-bookworm-slim", setup or "npm install"


def _go(_read: Read) -> tuple[str, str | None]:
    return "golang:1-bookworm", "go mod download"  # builds modules of every earlier version


def _rust(read: Read) -> tuple[str, str | None]:
    # With another image than that of the toolchain which the project names, rustup would download
    # that toolchain, from a host the sandbox can't reach.
    toolchain = _text(read, "rust-toolchain.toml") or _text(read, "rust-toolchain")
    match = _RUST.search(toolchain)
    return f"rust:{match[1] if match else '1'}-slim-bookworm", "cargo fetch"


def _ruby(read: Read) -> tuple[str, str | None]:
    # Gems with extensions are compiled on installation; the slim image has no compiler.
    return f"ruby:{_version(_text(read, '.ruby-version'), '3.4')}-bookworm", "bundle install"


def _maven(read: Read) -> tuple[str, str | None]:
    # The set-up also downloads the Maven that the wrapper names, which the checks start.
    maven = "mvn" if read("mvnw") is None else "./mvnw"
    match = _JAVA.search(_text(read, "pom.xml"))
    wanted = int(match[1]) if match else 21
    release = next((r for r in _JAVA_RELEASES if r >= wanted), _JAVA_RELEASES[-1])
    return f"maven:3-eclipse-temurin-{release}", f"{maven} -q -B dependency:go-offline"


def _gradle(read: Read) -> tuple[str, str | None]:
    gradle = "gradle" if read("gradlew") is None else "./gradlew"
    return "gradle:8-jdk21", f"{gradle} --no-daemon testClasses"


@dataclass(frozen=True)
class _Language:
    """environment: returns the image and the set-up of a project that has one of the markers."""

    name: str
    markers: tuple[str, ...]
    environment: Callable[[Read], tuple[str, str | None]]
    hosts: tuple[str, ...]


_LANGUAGES: Final = (
    _Language(
        "Python",
        ("pyproject.toml", "setup.py", "setup.cfg", *_REQUIREMENTS),
        _python,
        ("pypi.org", "files.pythonhosted.org"),
    ),
    _Language("Go", ("go.mod",), _go, ("proxy.golang.org", "sum.golang.org")),
    _Language("Rust", ("Cargo.toml",), _rust, ("index.crates.io", "static.crates.io")),
    _Language("Java", ("pom.xml",), _maven, ("repo.maven.apache.org",)),
    _Language(
        "Java",
        ("build.gradle", "build.gradle.kts"),
        _gradle,
        ("repo.maven.apache.org", "plugins.gradle.org", "services.gradle.org"),
    ),
    _Language("Ruby", ("Gemfile",), _ruby, ("rubygems.org", "index.rubygems.org")),
    _Language("JavaScript", ("package.json",), _node, ("registry.npmjs.org",)),
)


def _version(text: str, default: str) -> str:
    """Return the first version in `text`, or else the default.

    A lower bound (`>`, `^`, `~`) that is not above the default gives the default too.
    """
    match = _NUMBER.search(text)
    if match is None:
        return default
    is_bound = text.strip().startswith((">", "^", "~"))
    return default if is_bound and _numbers(match[0]) <= _numbers(default) else match[0]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _text(read: Read, name: str) -> str:
    return (read(name) or b"").decode(errors="replace")


def _parse(loads: Callable[[str], Any], read: Read, name: str) -> dict[str, Any]:
    try:
        value = loads(_text(read, name))
    except (ValueError, RecursionError):  # also of a number with more digits than Python reads
        return {}
    return value if isinstance(value, dict) else {}


def _table(data: dict[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}
