"""No test depends on the speed of the machine.

None asserts how long something took, and none sleeps in the hope that something has happened. What
has to be measured is marked `deep` and run apart (`make test-deep`); what has to be waited for is
waited for in `tests/parts/waiting.py`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests").rglob("*.py"))

CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
          "process_time_ns", "thread_time", "thread_time_ns"}  # fmt: skip

SLEEPERS = {
    "parts/waiting.py": (1, "between two looks"),
    # parts that are slow because a test asks for it
    "parts/mcp_server.py": (1, "a server that takes its time and says so"),
    "runtime/test_client.py": (1, "a sandbox that sends a byte now and then"),
    "codebase/test_prefork.py": (1, "a client that is killed at a random moment"),
    "webhook/test_login.py": (1, "a forge that answers late"),
    "webhook/test_webhook.py": (1, "a store that takes its time"),
}
"""Files that may sleep: how often, and why."""


def called(node: ast.AST) -> str:
    """Return the last name of what is called; "" for anything but a call."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def is_deep(function: ast.AST) -> bool:
    decorators = getattr(function, "decorator_list", [])
    return any(ast.unparse(decorator) == "pytest.mark.deep" for decorator in decorators)


def walk_without_deep(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below, except those of tests that are marked `deep`."""
    for child in ast.iter_child_nodes(node):
        if not is_deep(child):
            yield child
            yield from walk_without_deep(child)


def is_measured(node: ast.AST, measured: set[str]) -> bool:
    """Return True if an expression reads a clock, or a name that holds a measured time."""
    return any(
        called(child) in CLOCKS | measured or (isinstance(child, ast.Name) and child.id in measured)
        for child in ast.walk(node)
    )


def is_difference(node: ast.AST | None, measured: set[str]) -> bool:
    """Return True if an expression contains a duration."""
    return node is not None and any(
        (
            isinstance(child, ast.BinOp)
            and isinstance(child.op, ast.Sub)
            and is_measured(child, set())
        )
        or (isinstance(child, ast.Name) and child.id in measured)
        or called(child) in measured
        for child in ast.walk(node)
    )


def durations_in(function: ast.AST) -> set[str]:
    """Return names in a function that hold durations, and inner functions that return one."""
    found: set[str] = set()
    while True:
        more = set(found)
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=targets, value=value) if is_difference(value, found):
                    more |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
                case ast.FunctionDef(name=name, body=body):
                    returned = [
                        r.value for s in body for r in ast.walk(s) if isinstance(r, ast.Return)
                    ]
                    more |= {name} if any(is_difference(r, found) for r in returned) else set()
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append")):
                    more |= {name} if any(is_difference(a, found) for a in node.args) else set()
        if more == found:
            return found
        found = more


def asserted_durations(tree: ast.AST) -> Iterator[int]:
    """Return the lines of assertions that compare measured times."""
    for function in walk_without_deep(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        measured = durations_in(function)
        for node in walk_without_deep(function):
            if isinstance(node, ast.Assert) and is_measured(node.test, measured):
                yield node.lineno


def sleeps(tree: ast.AST) -> list[int]:
    """Return the lines that sleep, except `asyncio.sleep(0)`, which only yields to other tasks."""
    return [
        node.lineno
        for node in walk_without_deep(tree)
        if isinstance(node, ast.Call)
        and called(node) == "sleep"
        and ast.unparse(node) != "asyncio.sleep(0)"
    ]


def test_no_duration_is_asserted() -> None:
    texts = {str(path.relative_to(ROOT / "tests")): path.read_text() for path in FILES}
    found = {
        name: list(asserted_durations(ast.parse(text)))
        for name, text in texts.items()
        if any(clock in text for clock in CLOCKS)
    }
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_no_test_sleeps_to_wait() -> None:
    wrong = {}
    for path in FILES:
        name, text = str(path.relative_to(ROOT / "tests")), path.read_text()
        found = sleeps(ast.parse(text)) if "sleep" in text else []
        allowed, _ = SLEEPERS.get(name, (0, ""))
        if len(found) != allowed:
            wrong[name] = found
    assert wrong == {}, "these lines sleep: wait with tests/parts/waiting.py"


SAMPLE = """
def test_a():
    begun = time.monotonic()
    work()
    assert time.monotonic() - begun < 5
def test_b():
    def cost():
        begun = process_time()
        return process_time() - begun
    assert cost() < 3
def test_c():
    took = []
    took.append(time.perf_counter() - begun)
    half = took[0] / 2
    assert half < 3
@pytest.mark.deep
def test_d():
    assert time.monotonic() - begun < 5
def test_e():
    end = time.monotonic() + 5
    while time.monotonic() < end:
        assert find()
"""


def test_durations_are_found_in_all_their_forms() -> None:
    assert list(asserted_durations(ast.parse(SAMPLE))) == [5, 10, 15]


def test_sleeps_are_found() -> None:
    text = "time.sleep(1)\nsleep(2)\nasyncio.sleep(0)\nbash('sleep 3')\nevent.wait(1)\n"
    assert sleeps(ast.parse(text)) == [1, 2]
