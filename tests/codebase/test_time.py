"""No test leans on time: none asserts how long something took, and none sleeps and hopes. What has
to be measured is marked `deep` and run apart (`make test-deep`); what has to be waited for is
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
    # parts that are slow because a test asks for it
    "parts/waiting.py": (1, "between two looks"),
    "parts/github_server/app.py": (1, "a forge that answers late"),
    "parts/mcp_server.py": (5, "a server that hangs or takes its time"),
    "sandbox/site.py": (2, "pages that come late"),
    "webhook/test_login.py": (1, "a forge that answers late"),
    "webhook/test_webhook.py": (1, "a store that takes its time"),
    "github/test_github_pictures.py": (1, "a host that sends a byte now and then"),
    "runtime/test_client.py": (1, "a sandbox that sends a byte now and then"),
    # a moment in which nothing may happen: on a slow machine they see less, and don't fail
    "runtime/test_remote.py": (1, "a sandbox in use is left alone for longer than its limit"),
    "remote_service/test_pipes.py": (2, "who has to wait does"),
    "sandbox/test_proxy.py": (5, "who has to wait does; a program that dawdles"),
    "sandbox/test_programs.py": (3, "a full pipe waits; who reads is woken"),
    "runtime/test_programs.py": (1, "who reads is woken"),
    "github/test_github_app.py": (1, "a token is being renewed meanwhile"),
    # what runs inside the sandbox shows nothing that could be waited for
    "action/test_endings.py": (1, "the command has begun after the model was asked"),
    "attacks/test_killed.py": (1, "the cell has begun"),
    "runs/test_remote.py": (1, "the command has begun after the model was asked"),
    "mcp/test_servers.py": (2, "the call that was given up has ended in the server"),
    "runtime/test_conformance.py": (1, "children have ended"),
    "sandbox/test_bash.py": (4, "what runs in the background has written, or was killed"),
    "sandbox/test_browser.py": (1, "a page is being waited for"),
    "sandbox/test_ipython.py": (1, "what runs in the background has written"),
    "sandbox/test_server.py": (2, "the command has begun; between two interrupts"),
}
"""Files that may sleep: how often, and why."""


def called(node: ast.AST) -> str:
    """The last name of what is called; "" for anything but a call."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def is_deep(function: ast.AST) -> bool:
    decorators = getattr(function, "decorator_list", [])
    return any(ast.unparse(each) == "pytest.mark.deep" for each in decorators)


def walk_without_deep(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below, without those of tests that are marked."""
    for child in ast.iter_child_nodes(node):
        if not is_deep(child):
            yield child
            yield from walk_without_deep(child)


def is_measured(node: ast.AST, measured: set[str]) -> bool:
    """Whether an expression reads a clock or a name that holds what was measured with one."""
    return any(
        called(each) in CLOCKS | measured or (isinstance(each, ast.Name) and each.id in measured)
        for each in ast.walk(node)
    )


def is_difference(node: ast.AST | None, measured: set[str]) -> bool:
    """Whether an expression has a duration in it."""
    return node is not None and any(
        (isinstance(each, ast.BinOp) and isinstance(each.op, ast.Sub) and is_measured(each, set()))
        or (isinstance(each, ast.Name) and each.id in measured)
        or called(each) in measured
        for each in ast.walk(node)
    )


def durations_in(function: ast.AST) -> set[str]:
    """Names in a function that hold durations, and its inner functions that return one."""
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
    """Lines of assertions that compare what a clock has measured."""
    for function in walk_without_deep(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        measured = durations_in(function)
        for node in walk_without_deep(function):
            if isinstance(node, ast.Assert) and is_measured(node.test, measured):
                yield node.lineno


def sleeps(tree: ast.AST) -> list[int]:
    """Lines that sleep, `asyncio.sleep(0)` apart, which only lets others go on."""
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


def test_nothing_sleeps_and_hopes() -> None:
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
