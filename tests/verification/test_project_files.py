"""Files are classified by their path alone."""

import pytest

from resolver.verification.project_files import (
    is_project_manifest,
    is_test_configuration,
)

CONFIGURATION = """
conftest.py shop/conftest.py pytest.ini .pytest.ini tox.ini noxfile.py sitecustomize.py
src/usercustomize.py evil.pth jest.config.js jest-setup.ts jest.setup.ts vitest.config.mts
vitest.workspace.ts .mocharc.yml .mocharc ava.config.js .taprc .config/nextest.toml
phpunit.xml.dist .rspec test.runsettings .coveragerc
"""

MANIFESTS = """
pyproject.toml setup.cfg web/package.json Cargo.toml pom.xml build.gradle.kts Makefile
src/Bill.csproj CMakeLists.txt Makefile.am
"""


@pytest.mark.parametrize("path", CONFIGURATION.split())
def test_configuration_of_a_test_runner_is_recognized(path: str) -> None:
    assert is_test_configuration(path)


@pytest.mark.parametrize("path", ["bill.py", "jester.js", "README.md", "pyproject.toml"])
def test_other_files_are_no_configuration(path: str) -> None:
    assert not is_test_configuration(path)


@pytest.mark.parametrize("path", MANIFESTS.split())
def test_a_manifest_is_recognized(path: str) -> None:
    assert is_project_manifest(path)
    assert not is_test_configuration(path)
