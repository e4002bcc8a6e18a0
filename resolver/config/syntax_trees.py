"""Makes Python's own parser safe for several threads.

CPython before 3.11.8 counts the depth of the syntax trees that it converts for all threads
together. When two threads parse at the same time, one of them can get a SystemError, whatever it
parses: https://github.com/python/cpython/issues/106905
"""

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

MAX_ATTEMPTS = 5
"""Attempts to parse. Threads that don't come here, such as imports of libraries, also parse."""

_PARSER = threading.Lock()


def parse_alone(parse: Callable[[], Result]) -> Result:
    """Return what `parse` returns. It may call `ast.parse`, directly or in a library.

    It runs while no other thread is here, and again if it fails as it does because of another one.
    """
    with _PARSER:
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return parse()
            except SystemError:
                continue
        return parse()
