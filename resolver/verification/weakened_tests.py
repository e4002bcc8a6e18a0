"""Finds tests that a change deletes, leaves out or makes weaker.

The old and the new blocks of all changed test files are compared by name; a test that moved to
another file, or was renamed with its content, is compared with what it became.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from resolver.models.verification import TamperingFinding, TamperingKind
from resolver.verification.statements import CodeBlock, Statement, source_language, take_additions

MAX_DETAIL = 200
"""Maximum number of characters of a finding's detail."""

MAX_PAIRED = 20
"""Maximum number of removed or added assertions of a test that are paired by their similarity."""

PREFIX = 12
"""Number of characters by which a statement is recognized whose number of values changed."""

_ASSERTION = re.compile(
    r"^assert\b|\b\w*[aA]ssert\w*!?\s*[.(]|\b(?:debug_)?assert\w*!|\bexpect\w*\s*\("
    r"|\bEXPECT_\w+\s*\("
    r"|\bCHECK\w*\s*\(|\bREQUIRE\w*\s*\(|\bASSERT\w*\s*\(|\bCU_\w+\s*\(|\bck_\w+\s*\(|\bverify\w*\("
    r"|\bt\.(?:Error|Fatal|Fail)\w*\(|\brequire\.\w+\(|\bassert\.\w+\("
    r"|\bpytest\.(?:raises|fail|warns)\b"
    r"|\bself\.fail\w*\(|\bpanic!|\bt\.(?:is|equal|deepEqual|true|truthy|same|throws|ok)\("
    r"|\.should\b|\brefute\w*\b|\bmust_\w+|\bThrows\w*\("
)
_CONDITION = re.compile(r"^\}?\s*(?:else\s+)?if\b.*\{")
_SHELL_ASSERTION = re.compile(
    r"^(?:if\s+!?\s*)?(?:\[\[?\s|test\s|assert\w*|refute\w*|grep\s|diff\s|cmp\s|run\s|!\s)"
)
_SKIP = re.compile(
    r"\bpytest\.(?:mark\.)?(?:skip|skipif|importorskip)\b|\bunittest\.skip\w*|^@skip\w*\b"
    r"|\bself\.skipTest\(|\bSkipTest\b|\bt\.Skip(?:f|Now)?\(|#\[ignore\b"
    r"|@(?:\w+\.)*(?:Disabled\w*|Ignore)\b"
    r"|\[(?:\w+,\s*)*Ignore\b|\bSkip\s*=|\b(?:it|test|describe|suite|context)\.(?:skip|todo)\b"
    r"|\bskip(?:If|Test)?\(|^(?:xit|xtest|xdescribe|xcontext)\b|\bAssum(?:e"
    r"|ptions?)\.|\bassume(?:True|That|False)\("
    r"|\bGTEST_SKIP\b|\bDISABLED_|\bmarkTestSkipped\b|\bAssert\.(?:Ignore"
    r"|Inconclusive)|^skip\b|^pending\b"
    r"|^//go:build\b|\bthis\.skip\(|#\[cfg\((?:any\(\)|not\(test\))"
    r"|enabled\s*=\s*false|\bcollect_ignore\w*\s*="
    r"|__test__\s*=\s*False|\bcfg_attr\([^)]*ignore"
)
_EXPECTED_FAILURE = re.compile(
    r"\bxfail\b|\bexpectedFailure\b|#\[should_panic|\b(?:it|test)\.(?:failing|fails|fail)\b"
    r"|expected\s*=\s*\w+\.class"
)
_FOCUS = re.compile(r"\b(?:it|test|describe|context|suite)\.only\b|^(?:fit|fdescribe|fcontext)\b")
_SWALLOW = re.compile(
    r"^except\b(?:\s*:|.*\b(?:AssertionError|Exception|BaseException)\b)|\bcatch\b"
    r"|\bsuppress\((?:.*\b(?:AssertionError|Exception|BaseException)\b)|\|\|\s*(?:true|:)(?:$|\s)"
    r"|^set \+e\b|\brescue\b|\brecover\(\)"
)
_EARLY_RETURN = re.compile(
    r"^return(?:\s+0)?;?$|^if\s*\(?(?:True|False|true|false|0|1)\b|^exit 0$"
    r"|^while\s*\(?(?:False|false|0)\b"
)
_LITERAL = re.compile(
    r"[bruf]{0,2}\"(?:\\.|[^\"\\])*\"|[bruf]{0,2}'(?:\\.|[^'\\])*'|`[^`]*`"
    r"|(?<![\w.])-?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?\w*|\b(?:True|False|None|true"
    r"|false|null|nil|undefined)\b"
)
_CONSTANT = re.compile(
    r"^assert\s*\(?\s*(?:True|1|not False|[1-9]\d*)\b\s*\)?(?:\s*,.*)?$"
    r"|assert\w*!?\s*\(\s*(?:True|true|1)\s*[,)]"
    r"|expect\(\s*(true|1)\s*\)\.to\w*\(\s*(?:true|1)?\s*\)|\bor True\b"
    r"|\|\|\s*(?:true|1)\b|\|\|\s*:$"
    r"|^if\s*\(?(?:False|false|0)\b|\[ 1 -eq 1 \]|^assert\w*\s*\(\s*(\w+)\s*,\s*\2\s*\)"
    r"|assert_eq!\(\s*([\w.]+)\s*,\s*\3\s*\)|[aA]ssert\w*Equals?\(\s*([\w.\"]+)\s*,\s*\4\s*[,)]"
)
_EQUAL = re.compile(
    r"==|!==?.*\{|\b-eq\b|\]\s*=|\s=\s.*\]|assert_eq|[eE]qual|toBe\(|toStrictEqual"
    r"|toMatchObject|_EQ\b|_eq\b|_is\b"
    r"|\.is\(|STREQ|isEqualTo|assertSame|assertIs\("
)
_ORDERED = re.compile(
    r"[<>]|\bin\b|!=|[cC]ontain|[rR]aises|[tT]hrow|[mM]atch|\bis\b|isinstance|IsInstance|approx|"
    r"Close|Almost|assertIn|Regex|assert_ne|_NE\b|grep|diff|cmp|Length|Count|warns|matches!"
)
_DATA_NAME = re.compile(
    r"^(?:(?:const|let|var|static|final|int|String|auto)\s+)*(?:[A-Z][A-Z0-9_]*|\w{0,40}"
    r"(?i:expect|want|golden)\w{0,40})\b[^()=]{0,80}(?::?=|:)[^=]|^[\[({\"'\d-]"
)
_IMPORT = re.compile(
    r"^(?:from|import|use|require|include|#include|load|source|package|using)\b"
    r"|\brequire\(|\bimport\b"
)


@dataclass(frozen=True)
class ChangedTests:
    """The blocks of a test file before and after the change. is_new: it did not exist before."""

    path: str
    old: Sequence[CodeBlock]
    new: Sequence[CodeBlock]
    is_new: bool


def find_weakened_tests(files: Sequence[ChangedTests]) -> Iterator[TamperingFinding]:
    """Yield the findings of all changed test files."""
    moved = _Additions(files)
    for file in files:
        after = {block.name: block for block in file.new}
        for block in file.old:
            successor = after.get(block.name)
            place = file.path
            if successor is None and block.is_test:
                place, successor = moved.successor(block, file.path)
            if successor is None:
                if block.is_test:
                    yield _finding("deleted_test", file.path, block.line, block.name)
                continue
            yield from compare_blocks(place, block, successor)
        if not file.is_new and not any(block.name == "" for block in file.old):
            continue
        yield from _focused(file)


def _focused(file: ChangedTests) -> Iterator[TamperingFinding]:
    """Yield the markers that leave out all other tests; those of a new test count, too."""
    for statement in _added_marks(file.old, file.new, _FOCUS):
        yield _finding("focused_test", file.path, statement.line, statement.text)


def _added_marks(
    old: Iterable[CodeBlock], new: Iterable[CodeBlock], pattern: re.Pattern[str]
) -> list[Statement]:
    """Return the statements that match and have no counterpart in the old blocks."""
    before, after = (
        [s for block in blocks for s in block.all_statements if pattern.search(s.masked)]
        for blocks in (old, new)
    )
    known = Counter(statement.masked for statement in before)
    return take_additions(after, known, attrgetter("masked"))


class _Additions:
    """The tests that the change adds anywhere, to find what became of one that is gone."""

    def __init__(self, files: Sequence[ChangedTests]) -> None:
        self._by_name: dict[tuple[str, str], list[tuple[str, CodeBlock]]] = {}
        self._by_content: dict[tuple[str, tuple[str, ...]], tuple[str, CodeBlock]] = {}
        self._by_statement: dict[tuple[str, str], list[tuple[str, CodeBlock]]] = {}
        for file in files:
            existing = {block.name for block in file.old}
            for block in file.new:
                if block.is_test and block.name not in existing:
                    language = source_language(file.path)
                    key = language, _own_name(block)
                    key_block = file.path, block
                    self._by_name.setdefault(key, []).append(key_block)
                    content = _content(block)
                    if content:
                        self._by_content.setdefault((language, content), (file.path, block))
                    for text in set(content):
                        self._by_statement.setdefault((language, text), []).append(key_block)

    def successor(self, block: CodeBlock, path: str) -> tuple[str, CodeBlock | None]:
        """Return the added test with the same name or about the same content, with its path."""
        language = source_language(path)
        named = self._by_name.get((language, _own_name(block)), [])
        if named:
            return named.pop(0)
        content = _content(block)
        return self._by_content.get((language, content)) or self._similar(language, content, path)

    def _similar(
        self, language: str, content: tuple[str, ...], path: str
    ) -> tuple[str, CodeBlock | None]:
        """Return the added test that has at least half of the statements, or none."""
        shared: Counter[int] = Counter()
        similar: dict[int, tuple[str, CodeBlock]] = {}
        for text in set(content):
            for place, block in self._by_statement.get((language, text), [])[:MAX_PAIRED]:
                shared[id(block)] += 1
                similar[id(block)] = place, block
        for key, number in shared.most_common(1):
            if 2 * number >= len(set(content)):
                return similar[key]
        return path, None


def _own_name(block: CodeBlock) -> str:
    return block.name.rpartition(".")[2]


def _content(block: CodeBlock) -> tuple[str, ...]:
    return tuple(
        statement.text
        for statement in block.statements
        if statement.masked not in {"}", "})", "});"}
    )


def compare_blocks(path: str, old: CodeBlock, new: CodeBlock) -> Iterator[TamperingFinding]:
    """Yield what makes the new form of a test or of a test file's other code weaker."""
    for kind, pattern in (*_MARKERS, *(_TEST_MARKERS if old.is_test else ())):
        for statement in _added_marks((old,), (new,), pattern):
            if not (_is_optional_import(statement) and new.name == ""):
                yield _finding(kind, path, statement.line, statement.text)
    yield from _assertions(path, *_difference(old.statements, new.statements), new)
    yield from _values(path, *_difference(_data(old), _data(new)), is_test=old.is_test)


def _difference(
    old: Sequence[Statement], new: Sequence[Statement]
) -> tuple[list[Statement], list[Statement]]:
    """Return the statements that are gone, and those that are added."""
    text_of = attrgetter("text")
    removed = take_additions(old, Counter(map(text_of, new)), text_of)
    return removed, take_additions(new, Counter(map(text_of, old)), text_of)


def _data(block: CodeBlock) -> list[Statement]:
    """Return the statements that are no assertions, those of several lines line by line."""
    found = []
    for statement in block.all_statements:
        if is_assertion(statement) or statement.is_text or is_import(statement):
            continue
        if statement.rows:
            rows = enumerate(statement.rows, statement.line + 1)
            found += [Statement(text.rstrip(","), text, line) for line, text in rows]
        else:
            found.append(statement)
    return found


_MARKERS: tuple[tuple[TamperingKind, re.Pattern[str]], ...] = (
    ("skipped_test", _SKIP),
    ("expected_failure", _EXPECTED_FAILURE),
)
_TEST_MARKERS: tuple[tuple[TamperingKind, re.Pattern[str]], ...] = (
    ("skipped_test", _EARLY_RETURN),
    ("weakened_assertion", _SWALLOW),
)
"""Further ones in a test itself."""


def _is_optional_import(statement: Statement) -> bool:
    """Return True for an import guard of a test file, as in `except ImportError`."""
    return "ImportError" in statement.masked and "importorskip" not in statement.masked


def is_assertion(statement: Statement) -> bool:
    """Return True if the statement checks something."""
    masked = statement.masked
    return bool(
        _ASSERTION.search(masked) or _CONDITION.match(masked) or _SHELL_ASSERTION.match(masked)
    )


def is_import(statement: Statement) -> bool:
    """Return True if the statement loads another module."""
    return _IMPORT.search(statement.masked) is not None


def _assertions(
    path: str, removed: list[Statement], added: list[Statement], new: CodeBlock
) -> Iterator[TamperingFinding]:
    """Yield the assertions that are gone, and those that are weaker or expect another value."""
    removed_assertions = [statement for statement in removed if is_assertion(statement)]
    candidates = [statement for statement in added if is_assertion(statement)]
    for assertion, best in _paired(removed_assertions, candidates):
        if best is None:
            yield _finding("removed_assertion", path, new.line or assertion.line, assertion.text)
        elif _is_weaker(assertion, best):
            detail = f"{_cut(assertion.text)} -> {_cut(best.text)}"
            yield _finding("weakened_assertion", path, best.line, detail)


def _paired(
    removed: list[Statement], added: list[Statement]
) -> Iterator[tuple[Statement, Statement | None]]:
    """Yield each removed assertion with the added one that replaces it, if there is one.

    First those that differ in values only, then the most similar ones; in the order of the lines if
    there are too many for that.
    """
    by_skeleton: dict[str, list[Statement]] = {}
    for statement in reversed(added):
        by_skeleton.setdefault(_skeleton(statement.text), []).append(statement)
    rest, used = [], set()
    for assertion in removed:
        same = by_skeleton.get(_skeleton(assertion.text), [])
        if same:
            used.add(id(same[-1]))
            yield assertion, same.pop()
        else:
            rest.append(assertion)
    left = [statement for statement in added if id(statement) not in used]
    is_small = max(len(rest), len(left)) <= MAX_PAIRED
    for assertion in rest:
        if not left:
            yield assertion, None
            continue
        best = max(left, key=lambda other: _similarity(assertion, other)) if is_small else left[0]
        left.remove(best)
        yield assertion, best


def _similarity(old: Statement, new: Statement) -> tuple[bool, int]:
    same_values = _literals(old.text) <= _literals(new.text)
    words = set(re.findall(r"\w+", old.text)) & set(re.findall(r"\w+", new.text))
    return same_values, len(words)


def _is_weaker(old: Statement, new: Statement) -> bool:
    return _strength(new) < _strength(old) or not _literals(old.text) <= _literals(new.text)


def _strength(statement: Statement) -> int:
    """Return 0 for an assertion that always holds, up to 3 for one of equality."""
    masked = statement.masked
    if _CONSTANT.search(statement.text):
        return 0
    if _EQUAL.search(masked):
        return 3
    return 2 if _ORDERED.search(masked) else 1


def _literals(text: str) -> Counter[str]:
    literals = (
        literal.strip("`'\"") if literal[0] in "`'\"" else literal
        for literal in _LITERAL.findall(text)
    )
    return Counter(literal for literal in literals if literal)


def _skeleton(text: str) -> str:
    return _LITERAL.sub("?", text)


def _values(
    path: str, removed: list[Statement], added: list[Statement], *, is_test: bool
) -> Iterator[TamperingFinding]:
    """Yield changed and removed values of a test's data, such as an expected result or a row.

    Outside of a test only what looks like data counts: constants and rows of a table.
    """
    same: dict[str, list[Statement]] = {}
    similar: dict[str, list[Statement]] = {}
    for statement in reversed(added):
        same.setdefault(_skeleton(statement.text), []).append(statement)
        similar.setdefault(statement.text[:PREFIX], []).append(statement)
    for statement in removed:
        values = _literals(statement.text)
        is_data = _DATA_NAME.match(statement.masked)
        if not values or not (is_test or is_data):
            continue
        others = same.get(_skeleton(statement.text)) or similar.get(statement.text[:PREFIX])
        if others:
            other = others.pop()
            if not values <= _literals(other.text):
                detail = f"{_cut(statement.text)} -> {_cut(other.text)}"
                yield _finding("weakened_assertion", path, other.line, detail)
        elif is_data:
            yield _finding("removed_assertion", path, statement.line, statement.text)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_DETAIL // 2 else text[: MAX_DETAIL // 2 - 3] + "..."


def _finding(kind: TamperingKind, path: str, line: int, detail: str) -> TamperingFinding:
    short = detail if len(detail) <= MAX_DETAIL else detail[: MAX_DETAIL - 3] + "..."
    return TamperingFinding(kind=kind, path=path, line=line, detail=short)
