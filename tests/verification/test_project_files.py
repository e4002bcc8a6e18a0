"""Files are classified by their path alone."""

import random
import string

import pytest

from resolver.verification.project_files import (
    is_project_manifest,
    is_test_configuration,
    is_test_file,
    is_workflow_file,
)

TESTS = """
tests/test_bill.py test_bill.py bill_test.py shop/tests.py tests/helpers/money.py test/bill.py
conftest.py tests/data/bill.json tests/__snapshots__/bill.ambr src/test/bill.py
src/bill.test.ts src/bill.spec.jsx test/bill.js test.mjs test-bill.cjs src/__tests__/bill.tsx
src/__snapshots__/bill.test.ts.snap cypress/e2e/login.cy.ts e2e/login.ts
bill/bill_test.go bill/testdata/bill.golden tests/bill.rs src/tests.rs
src/test/java/shop/BillTest.java shop/BillTests.kt shop/BillIT.java shop/TestBill.java
app/src/androidTest/java/Login.java Bill.Tests/Totals.cs Bill.UnitTests/Totals.cs shop/BillTest.cs
test/bill.bats bill.bats t/bill.t t/lib.sh spec/bill_spec.rb bill_spec.rb tests/BillTest.php
src/bill_test.cc src/bill_unittest.cc test_bill.c test/bill_test.exs test/run.sh
"""

OTHERS = """
bill.py django/test/client.py shop/contest.py shop/latest.py shop/testing.py attest.py src/bill.ts
src/protest.ts src/inspect.js src/Spectrum.java src/Attest.java src/Contest.cs bill.go latest.go
src/lib.rs README.md docs/index.md Makefile package.json src/Unit.java src/Commit.java t.py
"""

CONFIGURATION = """
conftest.py shop/conftest.py pytest.ini .pytest.ini tox.ini noxfile.py sitecustomize.py
src/usercustomize.py evil.pth jest.config.js jest-setup.ts jest.setup.ts vitest.config.mts
vitest.workspace.ts .mocharc.yml .mocharc ava.config.js .taprc .config/nextest.toml
phpunit.xml.dist .rspec test.runsettings .coveragerc .github/resolver.yml
"""

MANIFESTS = """
pyproject.toml setup.cfg web/package.json Cargo.toml pom.xml build.gradle.kts Makefile
src/Bill.csproj CMakeLists.txt Makefile.am
"""


@pytest.mark.parametrize("path", TESTS.split())
def test_a_test_is_recognized(path: str) -> None:
    assert is_test_file(path)


@pytest.mark.parametrize("path", OTHERS.split())
def test_other_code_is_no_test(path: str) -> None:
    assert not is_test_file(path)


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


def test_workflow_files_are_recognized() -> None:
    assert is_workflow_file(".github/workflows/ci.yml")
    assert is_workflow_file(".gitlab-ci.yml")
    assert not is_workflow_file("docs/.github/workflows/ci.yml")
    assert not is_workflow_file("workflows/ci.yml")


def test_any_path_is_classified() -> None:
    rng = random.Random(7)
    pieces = ["/", ".", "..", "test", "tests", "_", "é", "\x00", "\n", " ", "Test", ".py", ".ts"]
    pieces += string.ascii_letters
    functions = (is_test_file, is_test_configuration, is_project_manifest, is_workflow_file)
    for _ in range(2_000):
        path = "".join(rng.choice(pieces) for _ in range(rng.randrange(40)))
        assert all(classify(path) in {True, False} for classify in functions)
    assert not is_test_file("a_" * 100_000)
