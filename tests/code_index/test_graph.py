"""Tests of the graph over small repositories in each language."""

import pytest

from resolver.code_index.graph import MAX_WALK_ROWS, ROOT, explore
from resolver.code_index.search import find_named
from tests.code_index.scenario import REPOSITORIES, graph_of


@pytest.mark.parametrize("language", REPOSITORIES)
def test_a_call_into_another_file_is_followed(language: str) -> None:
    graph = graph_of(REPOSITORIES[language])
    pay, total = (find_named(graph.entities.values(), name)[0] for name in ("pay", "total"))
    calls = {edge.end for edge in graph.downstream(pay.id) if edge.kind == "calls"}
    assert total.id in calls
    rows, cut = explore(graph, total.id, "upstream", kinds=("calls",))
    assert pay.id in {row.node.id for row in rows} and not cut


@pytest.mark.parametrize("language", ["python", "javascript", "typescript", "java", "c++", "ruby"])
def test_a_base_class_and_a_method_of_the_same_class_are_known(language: str) -> None:
    graph = graph_of(REPOSITORIES[language])
    cart, base = (find_named(graph.entities.values(), name)[0] for name in ("Cart", "Base"))
    assert any(e.end == base.id and not e.guessed for e in graph.downstream(cart.id))
    calls = [e for e in graph.downstream(f"{cart.id}.pay") if e.end == f"{cart.id}.check"]
    assert [(e.kind, e.guessed) for e in calls] == [("calls", False)]


def test_folders_contain_files_and_the_root_contains_folders() -> None:
    graph = graph_of({"src/shop/a.py": "", "src/b.py": "", "c.py": ""})
    held = {node: {e.end for e in graph.downstream(node)} for node in (ROOT, "src/", "src/shop/")}
    assert held == {
        ROOT: {"src/", "c.py"},
        "src/": {"src/shop/", "src/b.py"},
        "src/shop/": {"src/shop/a.py"},
    }


def test_a_method_of_an_unknown_object_is_marked_as_guessed() -> None:
    files = {"a.py": "def run(x):\n    x.save()\n", "b.py": "class B:\n    def save(self): ...\n"}
    [edge] = [e for e in graph_of(files).downstream("a.py::run") if e.kind == "calls"]
    assert (edge.end, edge.guessed) == ("b.py::B.save", True)


def test_a_name_with_many_definitions_resolves_no_call() -> None:
    files = {f"m{n}.py": "def run(): ...\n" for n in range(9)} | {"a.py": "def go():\n    run()\n"}
    assert graph_of(files).downstream("a.py::go") == ()


def test_a_redefinition_has_its_own_entry() -> None:
    text = "class A:\n    @property\n    def x(self): ...\n    @x.setter\n    def x(self, v): ...\n"
    graph = graph_of({"a.py": text})
    lines = {id: (e.start, e.end) for id, e in graph.entities.items() if e.kind == "method"}
    assert lines == {"a.py::A.x": (2, 3), "a.py::A.x@4": (4, 5)}


def test_a_walk_is_bounded_and_says_so() -> None:
    body = "".join(f"def f{n}(): ...\n" for n in range(MAX_WALK_ROWS + 50))
    rows, cut = explore(graph_of({"a.py": body}), "a.py", "downstream")
    assert (len(rows), cut) == (MAX_WALK_ROWS, True)


def test_a_walk_along_circular_calls_ends() -> None:
    graph = graph_of({"a.py": "def f():\n    g()\n\n\ndef g():\n    f()\n"})
    rows, _ = explore(graph, "a.py::f", "downstream", 5)
    assert [(row.node.id, row.again) for row in rows] == [("a.py::g", False), ("a.py::f", True)]


def test_a_walk_respects_its_depth() -> None:
    body = "".join(f"def f{n}():\n    f{n + 1}()\n" for n in range(9))
    graph = graph_of({"a.py": body})
    for depth in (1, 2, 3):
        rows, _ = explore(graph, "a.py::f0", "downstream", depth)
        assert [row.level for row in rows] == list(range(1, depth + 1))
