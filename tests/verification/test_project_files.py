"""Files are classified by their path alone."""

import pytest

from resolver.verification.project_files import (
    belongs_to_tests,
    is_project_manifest,
    is_test_configuration,
)

CONFIGURATION = """
conftest.py shop/conftest.py pytest.ini .pytest.ini tox.ini noxfile.py sitecustomize.py
src/usercustomize.py evil.pth jest.config.js jest-setup.ts jest.setup.ts vitest.config.mts
vitest.workspace.ts .mocharc.yml .mocharc ava.config.js .taprc .config/nextest.toml
phpunit.xml.dist .rspec test.runsettings .coveragerc bin/pytest pytest node_modules/.bin/mocha
.mocharc.json .npmrc .env.test go.work .cargo/config.toml .mvn/jvm.config mvnw CTestCustom.cmake
.proverc bin/sh .venv/bin/python
"""
MODULES = "pytest.py _pytest/runner.py unittest.py difflib.py"
MANIFESTS = """
pyproject.toml setup.cfg web/package.json Cargo.toml pom.xml build.gradle.kts Makefile
src/Bill.csproj CMakeLists.txt Makefile.am
"""


@pytest.mark.parametrize("path", f"{CONFIGURATION} {MODULES}".split())
def test_what_configures_or_replaces_a_runner_belongs_to_the_tests(path: str) -> None:
    assert belongs_to_tests(path, set())
    assert is_test_configuration(path) is (path not in MODULES.split())
    # What the root of the base has already replaces no module.
    assert belongs_to_tests(path, {path.split("/")[0]}) is (path not in MODULES.split())


@pytest.mark.parametrize("path", ["bill.py", "jester.js", "README.md", "pyproject.toml"])
def test_other_files_are_no_configuration(path: str) -> None:
    assert not belongs_to_tests(path, set())


@pytest.mark.parametrize("path", MANIFESTS.split())
def test_a_manifest_is_recognized(path: str) -> None:
    assert is_project_manifest(path)
    assert not is_test_configuration(path)
