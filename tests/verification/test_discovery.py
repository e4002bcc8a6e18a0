"""The checks of a project are found in its files, without executing anything."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.config.allowed_hosts import AllowList
from resolver.verification.check_candidates import MAX_CHECKS
from resolver.verification.discovery import DiscoveredChecks, discover_checks
from resolver.verification.ini_file import read_ini
from resolver.verification.make_checks import read_makefile
from resolver.verification.project_tree import ProjectTree
from resolver.verification.runner_commands import last_runner, runners_of

PACKAGES = AllowList.parse(("packages",))


def discover(files: dict[str, str], allowed: AllowList | None = None) -> DiscoveredChecks:
    return discover_checks(ProjectTree.from_files(files), allowed)


def discovered(files: dict[str, str]) -> list[tuple[str, str]]:
    return [(check.command, check.runner) for check in discover(files).checks]


def package(lock: str = "package-lock.json", **scripts: str) -> dict[str, str]:
    return {"package.json": json.dumps({"scripts": scripts}), lock: ""}


def workflow(run: str) -> dict[str, str]:
    steps = f"    steps:\n      - uses: actions/checkout@v4\n      - run: {json.dumps(run)}\n"
    text = f"on: [push, pull_request]\njobs:\n  unit:\n    runs-on: ubuntu-latest\n{steps}"
    return {".github/workflows/ci.yml": text}


PYTEST = ("python -m pytest", "pytest")


@pytest.mark.parametrize(
    "files",
    [
        {"pytest.ini": "[pytest]"},
        {"pyproject.toml": "[tool.pytest.ini_options]\n"},
        {"setup.cfg": "[tool:pytest]\n"},
        {"tox.ini": "[pytest]\n"},
        {"setup.py": "", "tests/conftest.py": ""},
        {"tests/test_bill.py": "def test_total():\n    pass\n"},
        {"tests/test_bill.py": "import pytest\n"},
        {"requirements-dev.txt": "pytest==8\n", "setup.py": "", "tests/test_a.py": ""},
        {"pytest.ini": "", "Makefile": "test:\n\tpython -m pytest -q\n"},
        {"pytest.ini": "", "Makefile": "PY = python\ntest: a\n\t@$(PY) -m pytest\na:\n\truff ."},
        {"pytest.ini": "", "Makefile": "test: unit\nunit:\n\t$(MAKE) really\nreally:\n\tpytest\n"},
        {"pytest.ini": "", "tox.ini": "[testenv]\ncommands = pytest {posargs}\n"},
        {"pytest.ini": "", "noxfile.py": "session.run('pytest', '-q')"},
    ],
)  # fmt: skip
def test_pytest_is_run_itself_and_once(files: dict[str, str]) -> None:
    assert discovered(files) == [PYTEST]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"tests/__init__.py": "", "tests/test_a.py": "import unittest\n"},
         [("python -m unittest discover", "unittest")]),
        ({"tests/test_a.py": "import unittest\n"},
         [("python -m unittest discover -s tests", "unittest")]),
        ({"manage.py": "", "shop/tests.py": "from django.test import TestCase\n"},
         [("python manage.py test", "django")]),
        ({"pytest.ini": "", "uv.lock": ""}, [("uv run --no-sync python -m pytest", "pytest")]),
        ({"pytest.ini": "", "poetry.lock": ""}, [("poetry run python -m pytest", "pytest")]),
        ({"api/pytest.ini": "", "README.md": ""}, [("cd api && python -m pytest", "pytest")]),
        ({"go.mod": "module x"}, [("go test ./...", "go")]),
        ({"Cargo.toml": "[package]"}, [("cargo test", "cargo")]),
        ({"Cargo.toml": "[workspace]"}, [("cargo test --workspace", "cargo")]),
        ({"Cargo.toml": "[package]",
          ".config/nextest.toml": "[profile.ci.junit]\npath = 'junit.xml'\n"},
         [("cargo nextest run --profile ci", "nextest")]),
        ({"pom.xml": "", "core/pom.xml": ""}, [("mvn -B test", "maven")]),
        ({"pom.xml": "", "mvnw": ""}, [("./mvnw -B test", "maven")]),
        ({"build.gradle.kts": "", "gradlew": ""}, [("./gradlew --no-daemon test", "gradle")]),
        ({"Shop.sln": "", "Shop.Tests/Shop.Tests.csproj": ""}, [("dotnet test", "dotnet")]),
        ({"src/Shop.sln": "", "src/Shop.Tests/Shop.Tests.csproj": ""},
         [("dotnet test src/Shop.sln", "dotnet")]),
        ({"test/bill.bats": ""}, [("bats test", "bats")]),
        ({"phpunit.xml.dist": ""}, [("vendor/bin/phpunit", "phpunit")]),
        ({"Gemfile": "", "spec/a_spec.rb": ""}, [("bundle exec rspec", "rspec")]),
        ({"CMakeLists.txt": "enable_testing()"},
         [("cmake -S . -B build && cmake --build build && "
           "ctest --test-dir build --output-on-failure", "ctest")]),
        ({"configure": "", "Makefile.am": ""}, [("./configure && make check", "")]),
        ({"Makefile": "test:\n\t./run.sh\n"}, [("make test", "")]),
        ({"Makefile": "test: a.out\n\t./a.out\ncheck: test\n"}, [("make test", "")]),
        ({"README.md": ""}, []),
        ({"pyproject.toml": "[project]\n", "bill.py": ""}, []),
    ],
)  # fmt: skip
def test_each_kind_of_project_has_its_check(
    files: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    assert discovered(files) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (package(test="jest"), [("npm test", "jest")]),
        (package("yarn.lock", test="jest --coverage"), [("yarn run test", "jest")]),
        (package("pnpm-lock.yaml", test="vitest run"), [("pnpm run test", "vitest")]),
        (package("bun.lock", test="vitest run"), [("bun run test", "vitest")]),
        (package(test="cross-env NODE_ENV=test c8 mocha"), [("npm test", "mocha")]),
        (package(test="npx nyc -x lib dotenv -e .env -- mocha"), [("npm test", "mocha")]),
        (package(test="mocha --reporter dot"), [("npm test", "")]),
        (package(test="react-scripts test"), [("npm test", "jest")]),
        (package(test="node --test"), [("npm test", "node")]),
        (package(test="tap"), [("npm test", "tap")]),
        (package(test="ava"), [("npm test", "ava")]),
        (package(test="tsc && jest"), [("npm test", "jest")]),
        (package(test="jest && echo done"), [("npm test", "")]),
        (package(test="bats test", lint="eslint ."), [("npm test", ""), ("npm run lint", "")]),
        (package(test="jest", lint="eslint . --fix", typecheck="tsc --noEmit"),
         [("npm test", "jest"), ("npm run typecheck", "")]),
        (package(test="npm run lint && npm run unit", lint="eslint .", unit="jest"),
         [("npm run lint", ""), ("npm run unit", "jest")]),
        (package(test="run-s lint unit", lint="eslint .", unit="jest"),
         [("npm run lint", ""), ("npm run unit", "jest")]),
        (package(test='echo "Error: no test specified" && exit 1'), []),
        ({"package.json": '{"devDependencies": {"vitest": "3"}}'},
         [("npx --no-install vitest run", "vitest")]),
        ({"package.json": '{"packageManager": "pnpm@9", "scripts": {"test": "jest"}}'},
         [("pnpm run test", "jest")]),
        ({"web/package.json": '{"scripts": {"test": "jest"}}', "pytest.ini": ""},
         [PYTEST, ("cd web && npm test", "jest")]),
        ({**package(test="jest"), "Makefile": "test:\n\tnpm test\n"}, [("npm test", "jest")]),
        ({**package(test="bats test"), "test/a.bats": ""}, [("bats test", "bats")]),
    ],
)  # fmt: skip
def test_package_scripts_are_found(files: dict[str, str], expected: list[tuple[str, str]]) -> None:
    assert discovered(files) == expected


def test_scripts_learn_that_nobody_watches() -> None:
    (check,) = discover(package(test="jest")).checks
    assert check.environment == {"CI": "true"}
    assert check.origin == "`scripts.test` in package.json"


@pytest.mark.parametrize(
    "run",
    ["pytest", "cd web # the front end\nnpm test", "./run_tests.sh", "pytest || true", "make e2e"],
)
@pytest.mark.parametrize("files", [{}, {"pytest.ini": ""}])
def test_a_workflow_gives_no_check(run: str, files: dict[str, str]) -> None:
    # Joined in one line, the second of these scripts is a comment: it ends with 0 without a test.
    assert discover({**files, **workflow(run)}) == discover(files)


def test_tox_alone_needs_the_package_index() -> None:
    files = {"tox.ini": "[testenv]\ncommands = python runtests.py\n"}
    assert discover(files).checks == ()
    assert "needs pypi.org" in discover(files).omitted[0].reason
    assert [c.command for c in discover(files, PACKAGES).checks] == ["tox"]


def test_the_number_of_checks_is_bounded_and_the_rest_is_named() -> None:
    package_json = json.dumps({"scripts": {"test": "jest", "lint": "eslint .", "types": "tsc"}})
    result = discover({f"web{number}/package.json": package_json for number in range(50)})
    assert len(result.checks) == MAX_CHECKS
    assert len({check.name for check in result.checks}) == MAX_CHECKS
    assert "beyond the 20 checks" in result.omitted[0].reason


def test_the_order_does_not_depend_on_the_order_of_the_files() -> None:
    files = {"pytest.ini": "", "go.mod": "", **package(test="jest")}
    backwards = dict(reversed(files.items()))
    assert discover(files) == discover(backwards)


NAMES = st.sampled_from(
    [
        "package.json", "tox.ini", "setup.cfg", "Makefile", "pyproject.toml", "noxfile.py",
        "CMakeLists.txt", "Cargo.toml", ".config/nextest.toml",
        "requirements.txt", "tests/test_a.py", "web/package.json", "go.mod", "a.bats",
    ]
)  # fmt: skip
PIECES = st.lists(
    st.sampled_from(
        [
            "[testenv]", "commands", "=", ":", "\n", "\t", " ", "test", "check", "pytest", "{", "}",
            "[", "]", '"', "'", "$(", "${{", "}}", "matrix", "jobs:", "on: push", "steps:",
            "- run:", "\\\n", "#", "scripts", "npm run test", "<<", "&&", "|",
            "\0", "é", "- ", "  ", "cd x", "if", "fi", "[tool.pytest]", "secrets.A", "env:",
            "\ud800", "9" * 20, "nan",
        ]
    ),
    max_size=40,
).map("".join)  # fmt: skip


@given(st.dictionaries(NAMES, PIECES | st.text(max_size=200), max_size=5))
def test_any_files_give_a_result(files: dict[str, str]) -> None:
    result = discover(
        {path: text.encode("utf-8", "replace").decode() for path, text in files.items()}
    )
    assert len(result.checks) <= MAX_CHECKS
    assert all("\0" not in check.command for check in result.checks)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["scripts", "test", "jobs", "a", "steps", "run", "env", "strategy",
                         "matrix", "include", "runs-on", "services", "defaults", "if",
                         "working-directory"]),
        inner, max_size=5,
    ),
    max_leaves=30,
)  # fmt: skip


@given(JSON)
def test_any_data_gives_a_result(data: object) -> None:
    text = json.dumps(data)
    discover(
        {
            "package.json": text,
            "a/package.json": json.dumps({"scripts": data}),
        }
    )


@given(PIECES | st.text(max_size=300))
def test_any_text_is_parsed(text: str) -> None:
    assert isinstance(read_ini(text), dict)
    rules = read_makefile(text)
    assert all(isinstance(rules.commands(target), list) for target in rules.recipes)
    assert isinstance(runners_of(text), tuple)
    assert isinstance(last_runner(text), str)


LONG = (
    " " * 400_000 + "x", "a=" * 200_000, "a: " * 150_000, "$(" * 200_000, "\t" * 400_000,
    "x:" + " x" * 200_000, "a: b;" * 90_000, "[" * 400_000, "\\\n" * 200_000, "{" * 400_000,
    ".run('" * 80_000, "import " * 70_000, "pytest " * 70_000,
)  # fmt: skip


@pytest.mark.parametrize("number", range(len(LONG)))
def test_long_lines_are_parsed_in_linear_time(number: int) -> None:
    line = LONG[number]
    for name in ("tox.ini", "Makefile", "noxfile.py", "setup.cfg", "requirements.txt"):
        discover({name: line, "tests/test_a.py": line, "CMakeLists.txt": line})
    discover({"tox.ini": f"[testenv]\ncommands = {line}", "Makefile": f"test:\n\t{line}\n"})


def test_a_makefile_whose_targets_need_each_other_ends() -> None:
    text = "".join(
        f"t{n}: " + " ".join(f"t{m}" for m in range(200)) + "\n\tpytest\n" for n in range(200)
    )
    assert discovered({"Makefile": f"test: t1\n{text}"}) == [("make test", "")]
