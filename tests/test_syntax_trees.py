"""Python's parser in several threads: see `resolver/config/syntax_trees.py`."""

import ast
import gc
import sys
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from resolver.config.syntax_trees import MAX_ATTEMPTS, parse_alone

CODE = "\n".join(
    f"def f{n}(x):\n    return [[[x, {n}], (x, {{x: {n}}})], x.y.z(x + 1)]" for n in range(50)
)


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns in the middle of a tree, because garbage is collected there."""

    def run_python(_phase: str, _info: dict[str, int]) -> None:
        sum(range(200))

    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(1)
    gc.callbacks.append(run_python)
    yield
    gc.callbacks.remove(run_python)
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


def test_threads_parse_at_the_same_time(switching: None) -> None:
    results: list[str] = []

    def parse() -> None:
        results.extend(ast.dump(parse_alone(partial(ast.parse, CODE))) for _ in range(5))

    threads = [threading.Thread(target=parse) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [ast.dump(ast.parse(CODE))] * 20


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
