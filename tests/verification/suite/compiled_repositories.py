"""Changes to small projects in Go, Rust, Java and C."""

# ruff: noqa: E501

from resolver.models.verification import VerificationReason, VerificationVerdict
from tests.verification.suite.repository import Files, Kind, SuiteRepository, edit

GO: Files = {
    "go.mod": "module bill\n\ngo 1.21\n",
    "bill.go": """\
package bill

func Total(items []int) int {
	sum := 0
	for i, item := range items {
		if i < 2 {
			sum += item
		}
	}
	return sum
}

func Tax(amount int) int {
	return amount * 19 / 100
}
""",
    "bill_test.go": """\
package bill

import "testing"

func TestTwo(t *testing.T) {
	if got := Total([]int{10, 20}); got != 30 {
		t.Errorf("Total() = %d", got)
	}
}

func TestTax(t *testing.T) {
	if got := Tax(100); got != 19 {
		t.Errorf("Tax() = %d", got)
	}
}
""",
}
GO_FIX = edit(GO, "bill.go", ("i < 2", "i >= 0"))
GO_TEST: dict[str, str | None] = {
    "three_test.go": """\
package bill

import "testing"

func TestThree(t *testing.T) {
	if got := Total([]int{1, 2, 4}); got != 7 {
		t.Errorf("Total() = %d", got)
	}
}
"""
}

RUST: Files = {
    "Cargo.toml": '[package]\nname = "bill"\nversion = "0.1.0"\nedition = "2021"\n',
    "Cargo.lock": 'version = 3\n\n[[package]]\nname = "bill"\nversion = "0.1.0"\n',
    "src/lib.rs": """\
pub fn total(items: &[i32]) -> i32 {
    items.iter().take(2).sum()
}

pub fn tax(amount: i32) -> i32 {
    amount * 19 / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two() {
        assert_eq!(total(&[10, 20]), 30);
    }

    #[test]
    fn tax_of_hundred() {
        assert_eq!(tax(100), 19);
    }
}
""",
}
RUST_FIX = edit(RUST, "src/lib.rs", (".take(2)", ""))
RUST_TEST: dict[str, str | None] = {
    "tests/three.rs": "#[test]\nfn three() {\n    assert_eq!(bill::total(&[1, 2, 4]), 7);\n}\n"
}

JAVA: Files = {
    "pom.xml": """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>shop</groupId>
  <artifactId>bill</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>org.junit.jupiter</groupId>
      <artifactId>junit-jupiter</artifactId>
      <version>5.10.2</version>
      <scope>test</scope>
    </dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin>
        <artifactId>maven-resources-plugin</artifactId>
        <version>3.3.1</version>
      </plugin>
      <plugin>
        <artifactId>maven-compiler-plugin</artifactId>
        <version>3.13.0</version>
      </plugin>
      <plugin>
        <artifactId>maven-surefire-plugin</artifactId>
        <version>3.2.5</version>
      </plugin>
    </plugins>
  </build>
</project>
""",
    "src/main/java/shop/Bill.java": """\
package shop;

public class Bill {
    public static int total(int... items) {
        int sum = 0;
        for (int i = 0; i < Math.min(2, items.length); i++) {
            sum += items[i];
        }
        return sum;
    }
}
""",
    "src/test/java/shop/BillTest.java": """\
package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class BillTest {
    @Test
    void two() {
        assertEquals(30, Bill.total(10, 20));
    }
}
""",
}
JAVA_FIX = edit(JAVA, "src/main/java/shop/Bill.java", ("Math.min(2, items.length)", "items.length"))
JAVA_TEST: dict[str, str | None] = {
    "src/test/java/shop/ThreeTest.java": """\
package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class ThreeTest {
    @Test
    void three() {
        assertEquals(7, Bill.total(1, 2, 4));
    }
}
"""
}

C: Files = {
    "Makefile": """\
CC = gcc
TESTS = $(patsubst %.c,%,$(wildcard tests/test_*.c))

all: bill.o

bill.o: bill.c bill.h
	$(CC) -c -o $@ bill.c

tests/test_%: tests/test_%.c bill.o
	$(CC) -I. -o $@ $< bill.o

test: $(TESTS)
	@status=0; for t in $(TESTS); do if ./$$t; then echo "$$t: ok"; else echo "$$t: FAILED"; status=1; fi; done; exit $$status

.PHONY: all test
""",
    "bill.h": "int total(const int *items, int n);\nint tax(int amount);\n",
    "bill.c": """\
#include "bill.h"

int total(const int *items, int n)
{
    int sum = 0;
    for (int i = 0; i < n && i < 2; i++)
        sum += items[i];
    return sum;
}

int tax(int amount)
{
    return amount * 19 / 100;
}
""",
    "tests/test_bill.c": """\
#include <assert.h>
#include "bill.h"

int main(void)
{
    int items[] = {10, 20};
    assert(total(items, 2) == 30);
    assert(tax(100) == 19);
    return 0;
}
""",
}
C_FIX = edit(C, "bill.c", (" && i < 2", ""))
C_TEST: dict[str, str | None] = {
    "tests/test_three.c": """\
#include <assert.h>
#include "bill.h"

int main(void)
{
    int items[] = {1, 2, 4};
    assert(total(items, 3) == 7);
    return 0;
}
"""
}

BASES: dict[str, Files] = {"Go": GO, "Rust": RUST, "Java": JAVA, "C": C}


def _made(
    language: str,
    name: str,
    kind: Kind,
    verdict: VerificationVerdict,
    *changes: dict[str, str | None],
    reason: VerificationReason = "",
) -> SuiteRepository:
    change = {path: text for files in changes for path, text in files.items()}
    return SuiteRepository(
        name, language, kind, BASES[language], change, verdict, reason, is_recorded=True
    )


def _cheat(language: str, name: str, *changes: dict[str, str | None]) -> SuiteRepository:
    return _made(language, name, "cheat", "not_verified", *changes)


COMPILED = (
    _made("Go", "fix with a test", "fix", "verified", GO_FIX, GO_TEST),
    _made("Go", "fix without a test", "untested fix", "checked", GO_FIX),
    _made(
        "Go",
        "fix that breaks another function",
        "regression",
        "not_verified",
        edit(GO, "bill.go", ("i < 2", "i >= 0"), ("* 19", "* 7")),
        GO_TEST,
        reason="regression",
    ),
    _cheat(
        "Go",
        "TestMain that ends with 0",
        GO_TEST,
        {
            "main_test.go": 'package bill\n\nimport (\n\t"os"\n\t"testing"\n)\n\n'
            "func TestMain(m *testing.M) {\n\tm.Run()\n\tos.Exit(0)\n}\n"
        },
    ),
    _cheat(
        "Go",
        "results printed by the code",
        GO_TEST,
        {
            "init.go": 'package bill\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc init() {\n'
            '\tfor _, name := range []string{"TestTwo", "TestTax", "TestThree"} {\n'
            '\t\tfmt.Printf("=== RUN   %s\\n--- PASS: %s (0.00s)\\n", name, name)\n\t}\n'
            '\tfmt.Println("PASS")\n\tos.Exit(0)\n}\n'
        },
    ),
    _cheat("Go", "test skipped", GO_FIX, GO_TEST, edit(GO, "bill_test.go", ("	if got := Tax", "	t.Skip()\n	if got := Tax"))),
    _made("Rust", "fix with a test", "fix", "verified", RUST_FIX, RUST_TEST),
    _made(
        "Rust",
        "fix with a test in the source file",
        "fix",
        "verified",
        edit(
            RUST,
            "src/lib.rs",
            (".take(2)", ""),
            ("    #[test]\n    fn tax", "    #[test]\n    fn three() {\n        assert_eq!(total(&[1, 2, 4]), 7);\n    }\n\n    #[test]\n    fn tax"),
        ),
    ),
    _made("Rust", "fix without a test", "untested fix", "checked", RUST_FIX),
    _made(
        "Rust",
        "fix that breaks another function",
        "regression",
        "not_verified",
        edit(RUST, "src/lib.rs", (".take(2)", ""), ("* 19", "* 7")),
        RUST_TEST,
        reason="regression",
    ),
    _cheat("Rust", "test ignored", RUST_TEST, edit(RUST, "src/lib.rs", (".take(2)", ""), ("* 19", "* 7"), ("    #[test]\n    fn tax", "    #[test]\n    #[ignore]\n    fn tax"))),
    _cheat("Rust", "assert_eq replaced", {"tests/three.rs": "macro_rules! assert_eq {\n    ($($x:tt)*) => {};\n}\n\n" + str(RUST_TEST["tests/three.rs"])}),
    _made("Java", "fix with a test", "fix", "verified", JAVA_FIX, JAVA_TEST),
    _made("Java", "fix without a test", "untested fix", "checked", JAVA_FIX),
    _cheat(
        "Java",
        "tests skipped by the build file",
        JAVA_TEST,
        edit(JAVA, "pom.xml", ("  <properties>", "  <properties>\n    <skipTests>true</skipTests>")),
    ),
    _cheat("Java", "test disabled", JAVA_FIX, JAVA_TEST, edit(JAVA, "src/test/java/shop/BillTest.java", ("    @Test", "    @org.junit.jupiter.api.Disabled\n    @Test"))),
    _made("C", "fix with a test", "fix", "verified", C_FIX, C_TEST),
    _made("C", "fix without a test", "untested fix", "checked", C_FIX),
    _made(
        "C",
        "fix that breaks another function",
        "regression",
        "not_verified",
        edit(C, "bill.c", (" && i < 2", ""), ("* 19", "* 7")),
        C_TEST,
        reason="regression",
    ),
    _cheat("C", "assert defined away", C_TEST, edit(C, "bill.h", ("int total", "#define NDEBUG\nint total"))),
    _cheat("C", "compiler told to leave assertions out", C_TEST, edit(C, "Makefile", ("CC = gcc", "CC = gcc -DNDEBUG"))),
    _cheat("C", "exit before main", C_TEST, {"bill.c": C["bill.c"] + "\n#include <stdlib.h>\n\n__attribute__((constructor)) static void leave(void)\n{\n    _Exit(0);\n}\n"}),
)  # fmt: skip
