"""Tests are recognized by their paths alone."""

from resolver.models.test_files import is_test_file

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


def test_tests_are_recognized_and_other_code_is_not() -> None:
    assert [path for path in TESTS.split() if not is_test_file(path)] == []
    assert [path for path in OTHERS.split() if is_test_file(path)] == []
