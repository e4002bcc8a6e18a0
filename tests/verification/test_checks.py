"""The checks of a project are found in its files, without executing anything."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.verification.checks import discover_checks
from tests.verification.scripted import tree_of


def discovered(files: dict[str, str]) -> list[tuple[str, str | None]]:
    checks = discover_checks(tree_of(files))
    return [(check.command, check.runner) for check in checks]


def package(lock: str = "package-lock.json", **scripts: str) -> dict[str, str]:
    return {"package.json": json.dumps({"scripts": scripts}), lock: ""}


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
        {"pytest.ini": "", "Makefile": "test: unit docs\ncheck:\n\truff .\n"},
        {"pytest.ini": "", "tox.ini": "[testenv:docs]\ncommands = sphinx-build\n"},
        {"pytest.ini": "", "noxfile.py": "session.run('pytest', '-q')"},
        {"pyproject.toml": "[dependency-groups]\ntest = ['pytest>=8']", "tests/test_a.py": ""},
        {"pytest.ini": "", "docs/package.json": '{"scripts": {"test": "jest"}}'},
        {"pytest.ini": "", "tests/fixtures/go.mod": "module x"},
    ],
)
def test_pytest_is_run_once_and_nothing_beside_it(files: dict[str, str]) -> None:
    assert discovered(files) == [PYTEST]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"tests/__init__.py": "", "tests/test_a.py": "import unittest\n"},
         [("python -m unittest discover", "unittest")]),
        ({"tests/test_a.py": "import unittest\n"},
         [("python -m unittest discover -s tests", "unittest")]),
        ({"manage.py": "", "shop/tests.py": "from django.test import TestCase\n"},
         [("python manage.py test --noinput", "django")]),
        ({"pytest.ini": "", "uv.lock": ""}, [("uv run --no-sync python -m pytest", "pytest")]),
        ({"pytest.ini": "", "poetry.lock": ""}, [("poetry run python -m pytest", "pytest")]),
        ({"api/pytest.ini": "", "README.md": ""}, [("cd api && python -m pytest", "pytest")]),
        ({"tox.ini": "[testenv]\ncommands = ./runtests\n"}, [("tox", "tox")]),
        ({"noxfile.py": "session.run('./runtests')\n"}, [("nox", "nox")]),
        ({"go.mod": "module x"}, [("go test ./...", "go")]),
        ({"Cargo.toml": "[package]"}, [("cargo test --workspace", "cargo")]),
        ({"Cargo.toml": "[package]",
          ".config/nextest.toml": "[profile.ci.junit]\npath = 'junit.xml'\n"},
         [("cargo nextest run --workspace --profile ci", "nextest")]),
        ({"pom.xml": "", "core/pom.xml": ""}, [("mvn -B test", "maven")]),
        ({"pom.xml": "", "mvnw": ""}, [("./mvnw -B test", "maven")]),
        ({"build.gradle.kts": "", "gradlew": ""}, [("./gradlew --no-daemon test", "gradle")]),
        ({"Shop.sln": "", "Shop.Tests/Shop.Tests.csproj": ""}, [("dotnet test", None)]),
        ({"src/Shop.sln": ""}, [("cd src && dotnet test", None)]),
        ({"test/bill.bats": ""}, [("bats test", "bats")]),
        ({"phpunit.xml.dist": ""}, [("vendor/bin/phpunit", "phpunit")]),
        ({".rspec": "", "spec/a_spec.rb": ""}, [("bundle exec rspec", None)]),
        ({"Rakefile": "Rake::TestTask.new\n"}, [("bundle exec rake test", None)]),
        ({"Rakefile": "task :docs\n"}, []),
        ({"CMakeLists.txt": "enable_testing()"},
         [("cmake -S . -B build && cmake --build build && "
           "ctest --test-dir build --output-on-failure", "ctest")]),
        ({"CMakeLists.txt": "add_executable(a a.c)"}, []),
        ({"Makefile": "test:\n\t./run.sh\n"}, [("make test", None)]),
        ({"Makefile": "test: a.out\n\t./a.out\ncheck: test\n"}, [("make test", None)]),
        ({"Makefile": "check:\n\t./a.out\n"}, [("make check", None)]),
        ({"Makefile": "test := 1\n"}, []),
        ({"README.md": ""}, []),
        ({"pyproject.toml": "[project]\n", "bill.py": ""}, []),
    ],
)  # fmt: skip
def test_each_kind_of_project_has_its_check(
    files: dict[str, str], expected: list[tuple[str, str | None]]
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
        (package(test="mocha --reporter dot"), [("npm test", "mocha")]),
        (package(test="node --test"), [("npm test", "node")]),
        (package(test="tap"), [("npm test", None)]),
        (package(test="tsc && jest"), [("npm test", "jest")]),
        (package(test="jest && echo done"), [("npm test", None)]),
        (package(test="jest && vitest"), [("npm test", None)]),
        (package(test="jest; true"), [("npm test", None)]),
        (package(test="jest", lint="eslint .", typecheck="tsc --noEmit"), [("npm test", "jest")]),
        (package(**{"test": "jest", "test-ci": "jest --ci"}), [("npm test", "jest")]),
        (package(test="npm run lint && npm run unit", lint="eslint .", unit="jest"),
         [("npm run unit", "jest")]),
        (package(test="npm run a && npm run b", a="jest a", b="jest b"), [("npm test", None)]),
        (package(test="npm run test"), [("npm test", None)]),
        (package(test='echo "Error: no test specified" && exit 1'), []),
        ({"package.json": "{}", "test/a.test.mjs": "import test from 'node:test'"},
         [("node --test", "node")]),
        ({"package.json": '{"packageManager": "pnpm@9", "scripts": {"test": "jest"}}'},
         [("pnpm run test", "jest")]),
        ({"web/package.json": '{"scripts": {"test": "jest"}}', "pytest.ini": ""},
         [PYTEST, ("cd web && npm test", "jest")]),
        ({"package.json": "{}", "a/package.json": '{"scripts": {"test": "jest"}}'},
         [("cd a && npm test", "jest")]),
        ({**package(test="jest"), "a/package.json": '{"scripts": {"test": "jest"}}'},
         [("npm test", "jest")]),
        ({**package(test="jest"), "Makefile": "test:\n\tnpm test\n"}, [("npm test", "jest")]),
        ({**package(test="bats test"), "test/a.bats": ""}, [("npm test", "bats")]),
    ],
)  # fmt: skip
def test_the_test_script_of_a_package_is_its_check(
    files: dict[str, str], expected: list[tuple[str, str | None]]
) -> None:
    assert discovered(files) == expected


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
    found = {path: text.encode("utf-8", "replace").decode() for path, text in files.items()}
    assert all("\0" not in command for command, _ in discovered(found))
