"""Tests of hostile sources: any file is parsed in bounded time with correct line numbers."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.code_index.codebase import CodeBase
from resolver.code_index.graph import Graph
from resolver.code_index.languages import language_of
from resolver.code_index.source import read_source
from tests.code_index.scenario import codebase_of

NAMES = ("a.py", "a.js", "a.ts", "a.tsx", "a.go", "a.java", "a.rs", "a.c", "a.cpp", "a.rb")
PIECES = (
    b"class A", b"(B)", b":\n  ", b"def f", b"()", b"{", b"}", b"import ", b"from . ", b"'./a'",
    b"func ", b"fn ", b"impl ", b"use a::b;", b"mod a;", b"self.", b"this.", b"new ", b"=>", b"\n",
    b"end", b"#include \"a.h\"", b"\xff\xfe", b"\x00", b"require ", b"struct S", b"@x\n",
    b"\xf0\x9f\x90\x8d", b"\r\n", b"\r", b"export ", b"void n::S::f", b"/*", b"\"", b"interface I",
)  # fmt: skip
HOSTILE = {
    "nested brackets": ("a.py", b"(" * 250_000),
    "nested calls": ("a.py", b"f(" * 60_000 + b")" * 60_000),
    "a chain of calls": ("a.js", b"a" + b".b()" * 100_000),
    "a chain of calls on objects": ("A.java", b"class A { int x = a" + b".b()" * 60_000 + b"; }"),
    "nested definitions": ("a.py", b"".join(b" " * n + b"def f():\n" for n in range(700))),
    "nested classes in what they extend": (
        "a.js",
        b"class A extends (" * 10_000 + b"B" + b") {}" * 10_000,
    ),
    "one line": ("a.py", b"x = " + b"a + " * 120_000 + b"1"),
    "not text": ("a.py", bytes(range(1, 256)) * 2000),
    "a long name": ("a.py", b"def " + b"a" * 500_000 + b"(): ..."),
    "one name very often": ("a.py", b"def f(): f()\n" * 40_000),
    "very many names": ("a.py", b"".join(b"def f%d(): g%d()\n" % (n, n) for n in range(20_000))),
    "very many imports": ("a.py", b"".join(b"from a%d import b\n" % n for n in range(20_000))),
    "half open templates": ("a.cpp", b"a<" * 20_000),
}


@pytest.mark.deep
@pytest.mark.parametrize(("path", "content"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_takes_bounded_time(path: str, content: bytes) -> None:
    start = time.process_time()
    source = read_source(
        content, language_of(path) or "", lambda: time.process_time() - start > 2.0
    )
    code = CodeBase({path: content}, {path: source})
    code.search(["f", "a.py", "a.py:3", "f b", "zz"], "")
    code.explore([path, "f"], ["upstream", "downstream"], 5, [])
    assert time.process_time() - start < 20


@given(st.sampled_from(NAMES), st.lists(st.sampled_from(PIECES) | st.binary(max_size=8)))
def test_any_bytes_give_a_consistent_graph(path: str, parts: list[bytes]) -> None:
    content = b"".join(parts)
    source = read_source(content, language_of(path) or "")
    lines = content.split(b"\n")
    assert all(-1 <= reference.within < len(source.definitions) for reference in source.references)
    graph = Graph({path: content}, {path: source})
    for node, entity in graph.entities.items():
        assert 1 <= entity.start <= entity.end <= max(1, len(lines))
        assert all(target in graph.entities for target, *_ in graph.edges(node))
        if entity.name and "�" not in entity.name:
            inside = b"\n".join(lines[entity.start - 1 : entity.end]).decode("utf-8", "replace")
            assert entity.short_name in inside
        assert all(step.level <= 5 for step in graph.walk(node, True, 5))


@given(
    st.dictionaries(
        st.sampled_from((*NAMES, "sub/b.py", "sub/__init__.py", "c.txt", "README.md")),
        st.lists(st.sampled_from(PIECES) | st.binary(max_size=8)).map(b"".join),
        max_size=4,
    ),
    st.lists(st.text(max_size=20) | st.sampled_from(["A", "A.f", "a.py", "a.py:1", "a.py::A"])),
    st.text(max_size=4),
)
def test_any_query_has_an_answer(files: dict[str, bytes], terms: list[str], below: str) -> None:
    answers = codebase_of(files)
    assert answers.search(terms, below).count("## ") >= len(terms)
    assert bool(answers.explore(terms, ["downstream"], 3, ["calls"])) == bool(terms)
