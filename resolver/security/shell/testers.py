"""Determines which checks run tests: a failing linter or build says nothing about behaviour."""

import re
from posixpath import basename

from resolver.security.shell.checkers import FORMATTERS, LINTERS, TESTERS

_NO_TESTERS = LINTERS | FORMATTERS | {"ty", "pyre", "pre-commit"}
_RUNNERS = TESTERS | {"cypress"}
_NAMES_TESTS = re.compile(
    r"(?:^|[^a-z])(?:c|py|unit|run|php|vi|doc)?(?:tests?|specs?|nextest|eunit)(?:$|[^a-z])"
    r"|Tests?\b|^rspec$|^phpunit$|^t$|^ct$|^verify$"
)
_MAKE = frozenset({"make", "gmake", "ninja", "gradle", "gradlew"})
_MOST = 200


def is_test_command(check: str) -> bool:
    """Return True if the check, in the form that `read_checks` returns, runs tests."""
    words = check.split()
    name = basename(words[0])[:_MOST] if words else ""
    if name in _NO_TESTERS:
        return False
    if name in _RUNNERS or _NAMES_TESTS.search(name):
        return True
    operands = [word[:_MOST] for word in words[1:] if not word.startswith("-")][:20]
    if name in _MAKE and "check" in operands:
        return True
    if name == "node" and "--test" in words:
        return True
    first = operands if name in {"mvn", "mvnw", *_MAKE} else operands[:4]
    return any(_NAMES_TESTS.search(word) for word in first)
