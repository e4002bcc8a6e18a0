"""Python's parser in several threads: see `resolver/config/syntax_trees.py`."""

import ast
from functools import partial

import pytest

from resolver.config.syntax_trees import MAX_ATTEMPTS, parse_alone


def test_what_fails_because_of_another_thread_is_repeated() -> None:
    left = [SystemError("recursion depth mismatch")] * (MAX_ATTEMPTS - 1)

    def parse() -> ast.Module:
        if left:
            raise left.pop()
        return ast.parse("a = 1")

    assert isinstance(parse_alone(parse), ast.Module)
    assert not left


def test_what_always_fails_is_an_error() -> None:
    def parse() -> None:
        raise SystemError("always")

    with pytest.raises(SystemError, match="always"):
        parse_alone(parse)
    with pytest.raises(SyntaxError):
        parse_alone(partial(ast.parse, "a b"))
