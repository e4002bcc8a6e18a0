"""The unit tests inside of a source file are taken without the code that they test."""

import pytest

from resolver.verification.inline_tests import with_inline_tests

CODE = "pub fn one() -> i32 {\n    0\n}\n"
FIXED = CODE.replace("0", "1")
TESTS = "\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn old() {\n    }\n}\n"
MORE = TESTS.replace("old", "new")


@pytest.mark.parametrize(
    ("old", "new", "made"),
    [
        (CODE + TESTS, FIXED + MORE, CODE + MORE),
        (CODE, FIXED + MORE, CODE + MORE),
        (CODE + TESTS + "const A: i32 = 1;\n", FIXED + MORE, CODE + MORE + "const A: i32 = 1;\n"),
        (CODE + TESTS, FIXED + TESTS, None),
        (CODE + TESTS, CODE + MORE, None),
        (CODE + TESTS, FIXED, None),
        (CODE, FIXED + MORE + MORE, None),
        (CODE + TESTS + TESTS, FIXED + MORE, None),
        (CODE, FIXED + MORE.replace("\nmod", "\n  mod"), None),
    ],
)
def test_the_module_of_tests_is_taken(old: str, new: str, made: str | None) -> None:
    assert with_inline_tests("src/lib.rs", old, new) == made
    assert with_inline_tests("src/lib.py", old, new) is None
