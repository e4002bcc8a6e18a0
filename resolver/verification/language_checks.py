"""Finds the checks of projects whose build tool has one command for its tests."""

import re
from collections.abc import Callable, Iterator
from posixpath import basename
from shlex import quote

from resolver.models.verification import ProjectCheck
from resolver.verification.check_candidates import CheckCandidate, in_folder, with_folder
from resolver.verification.project_folders import project_folders
from resolver.verification.project_tree import ProjectTree, join_path, table

_ENABLES_TESTS = re.compile(
    r"\b(?:enable_testing[ \t]*\(|include[ \t]*\([ \t]*CTest)", re.IGNORECASE
)
_DOTNET_PROJECT = re.compile(r"[^/]*\.(?:sln|slnx|csproj|fsproj|vbproj)")
_DOTNET_TESTS = re.compile(
    r"(?:[^/]*[._-])?(?:Unit|Integration)?Tests?\.(?:cs|fs|vb)proj", re.IGNORECASE
)
_THIRD_PARTY = re.compile(r"(?:^|/)(?:node_modules|vendor|third_party|bats-[^/]*|\.[^/]*)/")
_MAX_FOLDERS = 8


def find_language_checks(tree: ProjectTree) -> Iterator[CheckCandidate]:
    """Yield the checks of the projects of a tree, by language."""
    for find in _FINDERS:
        yield from find(tree)


def _candidate(
    runner: str, command: str, folder: str, origin: str, name: str = ""
) -> CheckCandidate:
    return CheckCandidate(
        ProjectCheck(
            name=with_folder(name or command, folder),
            command=in_folder(command, folder),
            runner=runner,
            origin=origin,
        ),
        frozenset({f"{runner}:{folder}"}),
    )


def _go(tree: ProjectTree) -> Iterator[CheckCandidate]:
    for folder in project_folders(tree, {"go.mod"}):
        yield _candidate("go", "go test ./...", folder, join_path(folder, "go.mod"))


def _rust(tree: ProjectTree) -> Iterator[CheckCandidate]:
    for folder in project_folders(tree, {"Cargo.toml"}):
        path = join_path(folder, "Cargo.toml")
        several = " --workspace" if "workspace" in tree.toml(path) else ""
        if profile := _nextest_profile(tree, folder):
            option = "" if profile == "default" else f" --profile {quote(profile)}"
            command = f"cargo nextest run{several}{option}"
            nextest = _candidate("nextest", command, folder, ".config/nextest.toml")
            # nextest runs no documentation tests, but the same tests apart from those.
            yield CheckCandidate(nextest.check, nextest.keys | {f"cargo:{folder}"})
        else:
            yield _candidate("cargo", f"cargo test{several}", folder, path)


def _nextest_profile(tree: ProjectTree, folder: str) -> str:
    """Return the profile of nextest that writes a JUnit report, "" if none does.

    See https://nexte.st/docs/machine-readable/junit/.
    """
    profiles = table(tree.toml(join_path(folder, ".config/nextest.toml")), "profile")
    for name in sorted(profiles, key=lambda profile: (profile != "default", profile)):
        path = table(profiles, name, "junit").get("path")
        if isinstance(path, str) and re.fullmatch(r"[\w.-]{1,100}", name):
            return name
    return ""


def _maven(tree: ProjectTree) -> Iterator[CheckCandidate]:
    for folder in project_folders(tree, {"pom.xml"}):
        wrapper = "mvnw" in tree.names[folder] if folder in tree.names else False
        command = f"{'./mvnw' if wrapper else 'mvn'} -B test"
        yield _candidate("maven", command, folder, join_path(folder, "pom.xml"))


def _gradle(tree: ProjectTree) -> Iterator[CheckCandidate]:
    marks = ("settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts")
    for folder in project_folders(tree, marks):
        names = tree.names.get(folder, frozenset())
        origin = join_path(folder, next((mark for mark in marks if mark in names), marks[-2]))
        gradle = "./gradlew" if "gradlew" in names else "gradle"
        # A daemon would continue running after the command.
        yield _candidate("gradle", f"{gradle} --no-daemon test", folder, origin)


def _dotnet(tree: ProjectTree) -> Iterator[CheckCandidate]:
    projects = [p for p in tree.paths if _DOTNET_PROJECT.fullmatch(basename(p))]
    tests = [p for p in projects if _DOTNET_TESTS.fullmatch(basename(p))]
    if not tests:
        return
    if any("/" not in path for path in projects):
        yield _candidate("dotnet", "dotnet test", "", next(p for p in projects if "/" not in p))
        return
    solutions = [p for p in projects if p.endswith((".sln", ".slnx"))]
    for path in (solutions[:1] or tests)[:_MAX_FOLDERS]:
        command = f"dotnet test {quote(path)}"
        yield CheckCandidate(
            ProjectCheck(name=command, command=command, runner="dotnet", origin=path),
            frozenset({f"command:{command}:"}),
            frozenset({"dotnet:"}) if path == (solutions or tests)[0] else frozenset(),
        )


def _php(tree: ProjectTree) -> Iterator[CheckCandidate]:
    marks = ("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml")
    for folder in project_folders(tree, marks):
        origin = next(mark for mark in marks if mark in tree.names[folder])
        yield _candidate("phpunit", "vendor/bin/phpunit", folder, join_path(folder, origin))


def _ruby(tree: ProjectTree) -> Iterator[CheckCandidate]:
    for folder in project_folders(tree, {"Gemfile"}):
        names = tree.names.get(folder, frozenset())
        if ".rspec" in names or join_path(folder, "spec") in tree.folders:
            yield _candidate("rspec", "bundle exec rspec", folder, join_path(folder, "Gemfile"))
        elif "Rakefile" in names and join_path(folder, "test") in tree.folders:
            origin = join_path(folder, "Rakefile")
            yield _candidate("rake", "bundle exec rake test", folder, origin)


def _bats(tree: ProjectTree) -> Iterator[CheckCandidate]:
    files = [p for p in tree.paths if p.endswith(".bats") and not _THIRD_PARTY.search(f"/{p}")]
    folders = sorted({path.rpartition("/")[0] or "." for path in files})
    if folders:
        command = f"bats {' '.join(map(quote, folders[:_MAX_FOLDERS]))}"
        check = ProjectCheck(name="bats", command=command, runner="bats", origin=files[0])
        yield CheckCandidate(check, frozenset({"bats:"}))


def _ctest(tree: ProjectTree) -> Iterator[CheckCandidate]:
    if _ENABLES_TESTS.search(tree.text("CMakeLists.txt")):
        command = (
            "cmake -S . -B build && cmake --build build && "
            "ctest --test-dir build --output-on-failure"
        )
        yield _candidate("ctest", command, "", "CMakeLists.txt", name="ctest")


_FINDERS: tuple[Callable[[ProjectTree], Iterator[CheckCandidate]], ...] = (
    _go, _rust, _maven, _gradle, _dotnet, _php, _ruby, _bats, _ctest,
)  # fmt: skip
