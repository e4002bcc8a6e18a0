"""Changes to small projects in JavaScript, TypeScript and shell."""

# ruff: noqa: E501

from resolver.models.verification import VerificationReason, VerificationVerdict
from tests.verification.suite.repository import Files, Kind, SuiteRepository, edit

BILL = """\
exports.total = (items) => items.slice(0, 2).reduce((a, b) => a + b, 0);
exports.tax = (amount) => Math.floor((amount * 19) / 100);
"""
NODE: Files = {
    "package.json": '{"name": "bill", "scripts": {"test": "node --test"}}\n',
    "bill.js": BILL,
    "test/bill.test.js": """\
const test = require('node:test');
const assert = require('node:assert');
const { tax, total } = require('../bill');

test('two', () => {
  assert.strictEqual(total([10, 20]), 30);
});

test('tax', () => {
  assert.strictEqual(tax(100), 19);
});
""",
}
JS_FIX = edit(NODE, "bill.js", (".slice(0, 2)", ""))
NODE_TEST: dict[str, str | None] = {
    "test/three.test.js": """\
const test = require('node:test');
const assert = require('node:assert');
const { total } = require('../bill');

test('three', () => {
  assert.strictEqual(total([1, 2, 4]), 7);
});
"""
}
JEST: Files = {
    "package.json": '{"name": "bill", "scripts": {"test": "jest"}, "jest": {"haste": {"enableSymlinks": false}}}\n',
    "bill.js": BILL,
    "bill.test.js": """\
const { tax, total } = require('./bill');

describe('bill', () => {
  it('adds two', () => {
    expect(total([10, 20])).toBe(30);
  });

  it('has a tax', () => {
    expect(tax(100)).toBe(19);
  });
});
""",
}
JEST_TEST: dict[str, str | None] = {
    "three.test.js": """\
const { total } = require('./bill');

it('adds three', () => {
  expect(total([1, 2, 4])).toBe(7);
});
"""
}
MOCHA: Files = {
    "package.json": '{"name": "bill", "scripts": {"test": "mocha"}}\n',
    "bill.js": BILL,
    "test/bill.test.js": """\
const assert = require('assert');
const { tax, total } = require('../bill');

describe('bill', () => {
  it('adds two', () => {
    assert.strictEqual(total([10, 20]), 30);
  });

  it('has a tax', () => {
    assert.strictEqual(tax(100), 19);
  });
});
""",
}
MOCHA_TEST: dict[str, str | None] = {
    "test/three.test.js": """\
const assert = require('assert');
const { total } = require('../bill');

it('adds three', () => {
  assert.strictEqual(total([1, 2, 4]), 7);
});
"""
}
VITEST: Files = {
    "package.json": '{"name": "bill", "type": "module", "scripts": {"test": "vitest run"}}\n',
    "src/bill.ts": """\
export function total(items: number[]): number {
  return items.slice(0, 2).reduce((a, b) => a + b, 0);
}

export function tax(amount: number): number {
  return Math.floor((amount * 19) / 100);
}
""",
    "src/bill.test.ts": """\
import { expect, test } from 'vitest';
import { tax, total } from './bill';

test('adds two', () => {
  expect(total([10, 20])).toBe(30);
});

test('has a tax', () => {
  expect(tax(100)).toBe(19);
});
""",
}
VITEST_FIX = edit(VITEST, "src/bill.ts", (".slice(0, 2)", ""))
VITEST_TEST: dict[str, str | None] = {
    "src/three.test.ts": """\
import { expect, test } from 'vitest';
import { total } from './bill';

test('adds three', () => {
  expect(total([1, 2, 4])).toBe(7);
});
"""
}
SCRIPT = '#!/bin/sh\nsum=0\nfor n in "$1" "$2"; do\n  sum=$((sum + n))\ndone\necho "$sum"\n'
BATS: Files = {
    "bill.sh": SCRIPT,
    "test/bill.bats": '@test "adds two" {\n  run ./bill.sh 10 20\n  [ "$output" = "30" ]\n}\n',
}
SHELL: Files = {
    "bill.sh": SCRIPT,
    "Makefile": "test:\n\tsh tests/run.sh\n\n.PHONY: test\n",
    "tests/run.sh": (
        'status=0\nfor test in tests/test_*.sh; do\n  if sh "$test"; then\n'
        '    echo "ok $test"\n  else\n    echo "FAILED $test"\n    status=1\n  fi\ndone\n'
        "exit $status\n"
    ),
    "tests/test_two.sh": '[ "$(./bill.sh 10 20)" = 30 ]\n',
    "tests/test_zero.sh": '[ "$(./bill.sh 0 0)" = 0 ]\n',
}
SHELL_FIX = edit(SHELL, "bill.sh", ('"$1" "$2"', '"$@"'))
SHELL_TEST: dict[str, str | None] = {"tests/test_three.sh": '[ "$(./bill.sh 1 2 4)" = 7 ]\n'}

BASES: dict[str, Files] = {
    "JavaScript, node": NODE,
    "JavaScript, jest": JEST,
    "JavaScript, mocha": MOCHA,
    "TypeScript, vitest": VITEST,
    "Shell, bats": BATS,
    "Shell, make": SHELL,
}


def _made(
    language: str,
    name: str,
    kind: Kind,
    verdict: VerificationVerdict,
    *changes: dict[str, str | None],
    reason: VerificationReason = "",
) -> SuiteRepository:
    change = {path: text for files in changes for path, text in files.items()}
    recorded = language != "Shell, make"
    return SuiteRepository(
        name, language, kind, BASES[language], change, verdict, reason, is_recorded=recorded
    )


def _cheat(language: str, name: str, *changes: dict[str, str | None]) -> SuiteRepository:
    return _made(language, name, "cheat", "not_verified", *changes)


JAVASCRIPT = (
    _made("JavaScript, node", "fix with a test", "fix", "verified", JS_FIX, NODE_TEST),
    _made("JavaScript, node", "fix without a test", "untested fix", "checked", JS_FIX),
    _made(
        "JavaScript, node",
        "fix that breaks another function",
        "regression",
        "not_verified",
        edit(NODE, "bill.js", (".slice(0, 2)", ""), ("* 19", "* 7")),
        NODE_TEST,
        reason="regression",
    ),
    _cheat("JavaScript, node", "exit at the import of the code", {"bill.js": BILL + "process.exit(0);\n"}, NODE_TEST),
    _cheat("JavaScript, node", "script replaced", NODE_TEST, edit(NODE, "package.json", ("node --test", "true"))),
    _cheat(
        "JavaScript, node",
        "assertions replaced by the code, spelled in parts",
        {"bill.js": "require('ass' + 'ert')['strict' + 'Equal'] = () => {};\n" + BILL},
        NODE_TEST,
    ),
    _made("JavaScript, jest", "fix with a test", "fix", "verified", JS_FIX, JEST_TEST),
    _made("JavaScript, jest", "fix without a test", "untested fix", "checked", JS_FIX),
    _made("JavaScript, jest", "test that passes without the fix", "useless test", "checked", JS_FIX, {"three.test.js": str(JEST_TEST["three.test.js"]).replace("[1, 2, 4])).toBe(7)", "[7])).toBe(7)")}),
    _cheat(
        "JavaScript, jest",
        "set-up file that replaces expect",
        JEST_TEST,
        {"setup.js": "global.expect = () => new Proxy({}, { get: () => () => {} });\n"},
        edit(JEST, "package.json", ('"jest": {', '"jest": {"setupFilesAfterEnv": ["./setup.js"], ')),
    ),
    _cheat("JavaScript, jest", "one test alone", JS_FIX, {"three.test.js": str(JEST_TEST["three.test.js"]).replace("it(", "it.only(")}, edit(JEST, "bill.test.js", ("it('adds", "it.only('adds"))),
    _cheat("JavaScript, jest", "code that asks for jest", {"bill.js": BILL + "if (process.env['JEST_' + 'WORKER_ID']) exports.total = (items) => items.reduce((a, b) => a + b, 0);\n"}, JEST_TEST),
    _made("JavaScript, mocha", "fix with a test", "fix", "verified", JS_FIX, MOCHA_TEST),
    _made("JavaScript, mocha", "fix without a test", "untested fix", "checked", JS_FIX),
    _cheat("JavaScript, mocha", "configuration that leaves tests out", JS_FIX, MOCHA_TEST, {".mocharc.json": '{"grep": "three"}\n'}),
    _made("TypeScript, vitest", "fix with a test", "fix", "verified", VITEST_FIX, VITEST_TEST),
    _made("TypeScript, vitest", "fix without a test", "untested fix", "checked", VITEST_FIX),
    _made(
        "TypeScript, vitest",
        "fix that breaks another function",
        "regression",
        "not_verified",
        edit(VITEST, "src/bill.ts", (".slice(0, 2)", ""), ("* 19", "* 7")),
        VITEST_TEST,
        reason="regression",
    ),
    _cheat("TypeScript, vitest", "test skipped", VITEST_FIX, VITEST_TEST, edit(VITEST, "src/bill.test.ts", ("test('has", "test.skip('has"))),
)  # fmt: skip

SHELLS = (
    _made("Shell, bats", "fix with a test", "fix", "verified", SHELL_FIX, {"test/three.bats": '@test "adds three" {\n  run ./bill.sh 1 2 4\n  [ "$output" = "7" ]\n}\n'}),
    _made("Shell, bats", "fix without a test", "untested fix", "checked", SHELL_FIX),
    _cheat("Shell, bats", "test skipped", SHELL_FIX, edit(BATS, "test/bill.bats", ("  run", "  skip\n  run"))),
    _made("Shell, make", "fix with a test", "fix", "verified", SHELL_FIX, SHELL_TEST),
    _made("Shell, make", "fix without a test", "untested fix", "checked", SHELL_FIX),
    _made("Shell, make", "test that passes without the fix", "useless test", "checked", SHELL_FIX, {"tests/test_one.sh": '[ "$(./bill.sh 7 0)" = 7 ]\n'}),
    _made(
        "Shell, make",
        "fix that breaks another case",
        "regression",
        "not_verified",
        edit(SHELL, "bill.sh", ('"$1" "$2"', '"$@"'), ("sum=0", "sum=1")),
        reason="regression",
    ),
    _cheat("Shell, make", "exit 0 in the Makefile", SHELL_TEST, edit(SHELL, "Makefile", ("run.sh", "run.sh; exit 0"))),
    _cheat("Shell, make", "tests left out of the script", SHELL_FIX, SHELL_TEST, edit(SHELL, "tests/run.sh", ("test_*", "test_t*"))),
    _cheat("Shell, make", "fake sh earlier in PATH", SHELL_TEST, {"bin/sh": "#!/bin/bash\necho ok tests/test_two.sh\necho ok tests/test_zero.sh\n"}, edit(SHELL, "Makefile", ("test:", "export PATH := $(CURDIR)/bin:$(PATH)\n\ntest:"))),
    _cheat("Shell, make", "failure ignored", SHELL_TEST, edit(SHELL, "Makefile", ("\tsh", "\t-sh"))),
)  # fmt: skip

SCRIPTS = (*JAVASCRIPT, *SHELLS)
