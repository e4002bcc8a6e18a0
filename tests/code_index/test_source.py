"""Tests of parsing one file: names, kinds and lines of definitions."""

import pytest

from resolver.code_index.answers import SourceFile
from resolver.code_index.languages import language_of
from resolver.code_index.source import read_source


def read(path: str, text: str) -> SourceFile:
    return read_source(text.encode(), language_of(path) or "")


def test_the_lines_of_a_definition_include_its_decorators() -> None:
    entities = read(
        "a.py", "import x\n\n@x.y\nclass A:\n    def f(self):\n        ...\n"
    ).definitions
    assert [(e.name, e.start, e.end) for e in entities] == [("A", 3, 6), ("A.f", 5, 6)]


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("a.py", "class A:\n  async def f(self):\n    def g(): ...\n",
         ["class A", "method A.f", "function A.f.g"]),
        ("a.js", "export default class A { #p() {} static s() {} h = () => 1; x = 2 }",
         ["class A", "method A.#p", "method A.s", "method A.h"]),
        ("a.tsx", "export const View = () => <div onClick={() => go()}/>;\ninterface P {}",
         ["function View", "class P"]),
        ("a.ts", "abstract class A { private f = async () => {} }\nenum E { a }",
         ["class A", "method A.f", "class E"]),
        ("a.go", "package a\ntype T[K any] struct{}\nfunc (t *T[K]) Do() {}\nfunc main() {}",
         ["class T", "method T.Do", "function main"]),
        ("A.java", "record R(int a) { R { } void f() {} }\ninterface I { void g(); }",
         ["class R", "method R.f", "class I", "method I.g"]),
        ("a.rs", "trait T { fn f(&self) {} }\nimpl T for u8 { fn g() {} }\nmod m { fn h() {} }",
         ["class T", "method T.f", "method u8.g", "function h"]),
        ("a.cpp", "namespace n { struct S { void f(); }; }\nvoid n::S::f() {}\nint *g() {}",
         ["class n.S", "method n.S.f", "function g"]),
        ("a.cpp", "template <> struct S<int> { void f(); };\nint S<int>::g() {}\nstruct S b;",
         ["class S<int>", "method S<int>.g"]),
        ("a.c", "struct S { int a; };\nstatic struct S *make(void) { return 0; }",
         ["class S", "function make"]),
        ("a.rb", "module M\n  class A\n    def self.f; end\n    def g?; end\n  end\nend\n",
         ["class M", "class M.A", "method M.A.f", "method M.A.g?"]),
        ("a.js", "res.send = function send(b) { return 1 }\nexports.x = () => 1\n"
                 "module.exports.y = async function () {}\nthis.z = function () {}",
         ["function send", "function x", "function y", "function z"]),
        ("a.js", "module.exports = { a: function () {}, b() {}, 'c-d': () => 1, e: 1 }\n"
                 "var o = { f: function () {}, g: { h() {} } }",
         ["function a", "function b", "function c-d", "function f", "function h"]),
        ("a.js", "function V() {}\nV.prototype.run = function run() {}\n"
                 "V.prototype['stop'] = function () {}\napp[name] = function (p) {}",
         ["function V", "function run"]),
        ("a.js", "req.get = req.header = function header(n) {}\n"
                 "module.exports = function make() {}\n"
                 "var A = exports.A = class { m() {} }\ngetter(req, 'ip', function ip() {})",
         ["function header", "function exports", "function exports.make", "class A",
          "method A.m", "function ip"]),
        ("a.js", "const x = 1; o.y = 2; a = b\nf({ z: 1 })", []),
        ("a.ts", "type Id = string | number\nexport const o = { run(): void {} }",
         ["class Id", "function run"]),
        ("a.rs", "trait T { type Out; const N: u8; fn f(&self); fn g() {} }",
         ["class T", "class T.Out", "variable T.N", "method T.f", "method T.g"]),
        ("a.rs", "const A: u8 = 1;\nstatic B: u8 = 2;\ntype C = u8;\nunion D { a: u8 }\n"
                 "macro_rules! e { () => {} }",
         ["variable A", "variable B", "class C", "class D", "function e"]),
        ("a.c", "#define N 1\n#define MAX(a, b) ((a) > (b) ? (a) : (b))\nunion U { int a; };\n"
                "typedef struct S { int a; } T, *P;\ntypedef int (*cb)(void *);\nunion U f(void);",
         ["variable N", "function MAX", "class U", "class T", "class P", "class S", "class cb"]),
        ("a.c", "struct S {\n#define IN 1\n  int a;\n};\n"
                "int f(void) { typedef int local; return 0; }",
         ["class S", "variable IN", "function f", "class f.local"]),
        ("a.h", "using V = int;\ntypedef unsigned long u64;\n#define H 1\n",
         ["class V", "class u64", "variable H"]),
    ],
)  # fmt: skip
def test_definitions_are_qualified_by_their_containers(
    path: str, text: str, found: list[str]
) -> None:
    assert [f"{e.kind} {e.name}" for e in read(path, text).definitions] == found


def test_a_file_with_a_syntax_error_keeps_its_readable_parts() -> None:
    source = read("a.py", "def f():\n    return (\n\ndef g(): ...\n")
    assert {"f", "g"} & {definition.name for definition in source.definitions}


def test_windows_line_ends_count_as_one_line() -> None:
    source = read("a.py", "x = 1\r\n\r\ndef f():\r\n    pass\r\n")
    assert [(e.start, e.end) for e in source.definitions] == [(3, 4)]


def test_parsing_stops_at_its_deadline() -> None:
    content = b"a<" * 200_000
    source = read_source(content, "c++", lambda: True)
    assert not source.complete and not source.definitions
