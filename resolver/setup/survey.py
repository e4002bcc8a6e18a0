"""A first look at a repository: its language, an image that fits, what installs what it needs.

Only the names and contents of files at its root are read. What is found is a proposal that a person
reads before it is committed, so a guess that may be wrong beats none.
"""

import json
import re
import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

Read = Callable[[str], bytes | None]

EXTRAS = ("test", "tests", "testing", "dev", "develop", "development")
"""Names under which projects list what their tests need, the likeliest first."""

_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,3})?")
_GO = re.compile(r"^go[ \t]+(\d+\.\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Survey:
    """What a repository seems to be.

    language: for a person; "" when nothing is known. image: a public image. setup: bash that
    installs what the tests need, "" when there is nothing to install. tests: the command that runs
    them, "" when it is not known. others: further languages that were seen.
    """

    language: str = ""
    image: str = "python:3.12-slim-bookworm"
    setup: str = ""
    tests: str = ""
    others: tuple[str, ...] = ()


def survey(names: Collection[str], read: Read) -> Survey:
    """Look at the files at the root. names: of those files. read: gives the content of one."""
    found = [look(names, read) for mark, look in _LANGUAGES if mark & set(names)]
    if not found:
        return Survey(tests=_make_test(names, read))
    first, others = found[0], tuple(dict.fromkeys(each.language for each in found[1:]))
    tests = _make_test(names, read) or first.tests
    others = tuple(name for name in others if name != first.language)
    return Survey(first.language, first.image, first.setup, tests, others)


def _make_test(names: Collection[str], read: Read) -> str:
    text = _text(read, "Makefile") if "Makefile" in names else ""
    target = re.search(r"^(test|check)[ \t]*:(?!=)", text, re.MULTILINE)
    return f"make {target[1]}" if target else ""


def _python(names: Collection[str], read: Read) -> Survey:
    project = _toml(read, "pyproject.toml")
    about = _table(project, "project")
    version = _version(str(about.get("requires-python", "")), "3.12", least=(3, 9), most=(3, 14))
    pytest = "pytest" in _text(read, "pyproject.toml") or bool(
        {"pytest.ini", "conftest.py", "tests", "test"} & set(names)
    )
    return Survey(
        language="Python",
        image=f"python:{version}-slim-bookworm",
        setup=_python_setup(names, project),
        tests="tox" if "tox.ini" in names and not pytest else "python -m pytest",
    )


def _python_setup(names: Collection[str], project: dict[str, Any]) -> str:
    if "uv.lock" in names:
        return "pip install uv && uv sync --all-extras"
    if "poetry.lock" in names:
        return "pip install poetry && poetry install"
    commands = [f"pip install -r {n}" for n in sorted(names) if _is_requirements(n)]
    if {"setup.py", "setup.cfg"} & set(names) or "build-system" in project or "project" in project:
        extras = _table(_table(project, "project"), "optional-dependencies")
        extra = next((name for name in EXTRAS if name in extras), "")
        commands.append(f"pip install -e '.[{extra}]'" if extra else "pip install -e .")
    groups = _table(project, "dependency-groups")
    group = next((name for name in EXTRAS if name in groups), "")
    if group:
        commands.append(f"pip install --group {group}")
    return " && ".join(commands)


def _is_requirements(name: str) -> bool:
    return (
        re.fullmatch(r"(?:(?:dev|test|tests)-)?requirements(?:[-_](?:dev|test|tests))?\.txt", name)
        is not None
    )


def _node(names: Collection[str], read: Read) -> Survey:
    package = _json(read, "package.json")
    wanted = _text(read, ".nvmrc") or str(_table(package, "engines").get("node", ""))
    version = _version(wanted, "22", least=(18,), most=(26,)).partition(".")[0]
    installs = {
        "pnpm-lock.yaml": "corepack enable && pnpm install --frozen-lockfile",
        "yarn.lock": "corepack enable && yarn install --frozen-lockfile",
        "package-lock.json": "npm ci",
    }
    setup = next((command for lock, command in installs.items() if lock in names), "npm install")
    tests = "npm test" if "test" in _table(package, "scripts") else ""
    return Survey("JavaScript", f"node:{version}-bookworm-slim", setup, tests)


def _go(names: Collection[str], read: Read) -> Survey:  # noqa: ARG001 - all looks are alike
    found = _GO.search(_text(read, "go.mod"))
    return Survey(
        "Go", f"golang:{found[1] if found else '1'}-bookworm", "go mod download", "go test ./..."
    )


def _rust(names: Collection[str], read: Read) -> Survey:  # noqa: ARG001
    return Survey("Rust", "rust:1-slim-bookworm", "cargo fetch", "cargo test")


def _ruby(names: Collection[str], read: Read) -> Survey:
    version = _version(_text(read, ".ruby-version"), "3.4", least=(2, 7), most=(4, 0))
    tests = "bundle exec rspec" if ".rspec" in names or "spec" in names else "bundle exec rake test"
    return Survey("Ruby", f"ruby:{version}-slim-bookworm", "bundle install", tests)


def _maven(names: Collection[str], read: Read) -> Survey:  # noqa: ARG001
    setup = "mvn -q -B dependency:go-offline"
    return Survey("Java", "maven:3-eclipse-temurin-21", setup, "mvn -q -B test")


def _gradle(names: Collection[str], read: Read) -> Survey:  # noqa: ARG001
    gradle = "./gradlew" if "gradlew" in names else "gradle"
    return Survey("Java", "gradle:8-jdk21", f"{gradle} --no-daemon testClasses", f"{gradle} test")


_LANGUAGES: tuple[tuple[set[str], Callable[[Collection[str], Read], Survey]], ...] = (
    ({"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"}, _python),
    ({"go.mod"}, _go),
    ({"Cargo.toml"}, _rust),
    ({"pom.xml"}, _maven),
    ({"build.gradle", "build.gradle.kts"}, _gradle),
    ({"Gemfile"}, _ruby),
    ({"package.json"}, _node),
)


def _version(text: str, default: str, *, least: tuple[int, ...], most: tuple[int, ...]) -> str:
    """The first version that `text` names, where images of it are likely; else the default, which
    a lower bound below it also means."""
    found = _NUMBER.search(text)
    if found is None:
        return default
    version = tuple(int(part) for part in found[0].split("."))
    if text.strip().startswith((">", "^", "~")) and version <= _numbers(default):
        return default
    return found[0] if least <= version <= most else default


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _text(read: Read, name: str) -> str:
    return (read(name) or b"").decode(errors="replace")


def _toml(read: Read, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(read, name))
    except tomllib.TOMLDecodeError:
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
