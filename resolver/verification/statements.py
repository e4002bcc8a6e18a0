"""Reads the statements of a source file, grouped by the test or function that they are in.

No grammar is used: the text is hostile, may be in any version of its language, and must be read
even if it can't be parsed. Comments are removed and strings are masked by one linear pass, brackets
or indentation tell where a function ends. Any text gives a result.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal, TypeVar

MAX_TEXT = 400_000
"""Maximum number of characters of a file that are read."""

MAX_JOINED = 60
"""Maximum number of lines that one statement may have before it is read line by line."""

MAX_STATEMENT = 1_000
"""Maximum number of characters of one statement; a longer one is read as several."""

OVERLAP = 100
"""Number of characters that such pieces share, so that none of them hides what is between them."""

Layout = Literal["indent", "brace"]
T = TypeVar("T")

_BREAK = "\x00"
"""Takes the place of a line break in a string, so that lines can still be counted."""

_LANGUAGES: dict[str, str] = {
    ".py": "python", ".pyi": "python", ".rb": "ruby",
    ".sh": "shell", ".bash": "shell", ".bats": "shell", ".t": "shell",
    ".js": "script", ".jsx": "script", ".mjs": "script", ".cjs": "script", ".ts": "script",
    ".tsx": "script", ".mts": "script", ".cts": "script", ".go": "go", ".rs": "rust",
    ".java": "java", ".kt": "java", ".kts": "java", ".scala": "java", ".groovy": "java",
    ".cs": "java", ".swift": "java", ".php": "java",
    ".c": "c", ".h": "c", ".cc": "c", ".cpp": "c", ".cxx": "c", ".hpp": "c", ".m": "c",
}  # fmt: skip

_DOUBLE = r'"(?:\\[\s\S]|[^"\\\n])*"?'
_SINGLE = r"'(?:\\[\s\S]|[^'\\\n])*'?"
_CHARACTER = r"'(?:\\[^\n']{1,10}|[^'\\\n])'"
_SLASHES = r"//(?!go:build| \+build)[^\n]*|/\*[\s\S]*?(?:\*/|\Z)"
_TOKENS = {
    "python": r'#[^\n]*|"""[\s\S]*?(?:"""|\Z)|'
    + r"'''[\s\S]*?(?:'''|\Z)|"
    + f"{_DOUBLE}|{_SINGLE}",
    "ruby": rf"#(?!\{{)[^\n]*|{_DOUBLE}|{_SINGLE}",
    "shell": rf"(?<![^\s;])#[^\n]*|{_DOUBLE}|{_SINGLE}",
    "script": rf"{_SLASHES}|{_DOUBLE}|{_SINGLE}|`(?:\\[\s\S]|[^`\\])*`?",
    "go": rf"{_SLASHES}|{_DOUBLE}|{_CHARACTER}|`[^`]*`?",
}
_C_TOKENS = f"{_SLASHES}|{_DOUBLE}|{_CHARACTER}"
_COMMENT_STARTS = ("#", "//", "/*")

_STARTS = {
    "python": r"(?:async\s+)?(?P<kind>def|class)\s+(?P<name>\w+)",
    "ruby": r"(?P<kind>def|class|describe|context|it|test|specify)\b[\s(]*"
    r"(?P<name>['\"][^\n]*|\w+)",
    "shell": r"(?P<kind>@test|function)\s+(?P<name>[^\n{]+)|(?P<name2>[\w:-]+)\s*\(\)",
    "script": r"(?:await\s+)?(?P<kind>(?:x|f)?(?:describe|context|suite|it|test|specify))\b"
    r"(?:\.\w+)*\s*(?:\([^\n]*?\))?\(\s*(?P<name>['\"`][^\n,]*|\w+)"
    r"|(?:export\s+)?(?:async\s+)?function\s*\*?\s*(?P<name2>\w+)",
    "go": r"(?P<kind>func)\s+(?:\([^)\n]*\)\s*)?(?P<name>\w+)",
    "rust": r"(?:pub(?:\([^)\n]*\))?\s+)?"
    r"(?:async\s+|const\s+|unsafe\s+)*(?P<kind>fn|mod)\s+(?P<name>\w+)",
    "java": r"(?:[\w<>\[\],.?]+\s+)*(?:(?P<kind>class|fun|func|function|record)\s+(?P<name>[\w`]+)"
    r"|(?P<name2>\w+)\s*\([^;{]*\)[^;{=]*\{)",
    "c": r"(?P<kind>TEST\w*|BOOST_\w+_CASE|START_TEST|Test)\s*\((?P<name>[^)\n]*)\)"
    r"|(?:\w+[\s*]+)+(?P<name2>\w+)\s*\([^;{]*\)\s*\{",
}
_GROUPS = frozenset(
    {"class", "describe", "context", "suite", "mod", "fdescribe", "xdescribe", "record"}
)
_TEST_KINDS = frozenset({"@test", "it", "test", "fit", "xit", "xtest", "specify", "START_TEST"})
_TEST_NAMES = re.compile(r"test|Test|spec|it_|should")
_TEST_MARKS = re.compile(
    r"@(?:\w+\.)*\w*Test\b|\[\w*(?:Test|Fact|Theory|TestCase)\w*|#\[(?:\w+::)*(?:test|rstest)"
)
_MARKS = re.compile(r"@(?!test\s)\w|#!?\[|\[\w")
_KEYWORDS = frozenset(
    {"if", "for", "while", "switch", "catch", "return", "else", "new", "synchronized", "try"}
)


@dataclass(frozen=True)
class Statement:
    """A statement without comments and with single spaces.

    masked: the text with the content of its strings replaced. indent: of its first line. rows: the
        lines of a statement that has several.
    """

    text: str
    masked: str
    line: int
    indent: int = 0
    rows: tuple[str, ...] = ()

    @property
    def is_text(self) -> bool:
        """True for a statement that is a string alone, such as a docstring, and does nothing."""
        return bool(self.rows or self.masked[:3] in {'"__', "'__"}) and bool(
            re.fullmatch(r"""[a-zA-Z]{0,2}(["'])_*\1""", self.masked)
        )


@dataclass
class CodeBlock:
    """A test, another function, a class or, with the name "", the rest of the file.

    marks: decorators, attributes and annotations.
    """

    name: str
    line: int = 0
    is_test: bool = False
    is_group: bool = False
    marks: list[Statement] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)

    @property
    def all_statements(self) -> tuple[Statement, ...]:
        """The marks and the statements, in the order of the file."""
        return (*self.marks, *self.statements)


def take_additions(items: Iterable[T], known: Counter[str], text_of: Callable[[T], str]) -> list[T]:
    """Return the items whose text is not known.

    A known text counts for as many items as it was counted, and these are taken out of `known`, in
    which what is gone remains.
    """
    added = []
    for item in items:
        text = text_of(item)
        if known[text] > 0:
            known[text] -= 1
        else:
            added.append(item)
    return added


def source_language(path: str) -> str:
    """Return the family of languages of a file by its name; "" if it is no source file."""
    return _LANGUAGES.get(PurePosixPath(path).suffix.lower(), "")


def read_blocks(path: str, text: str) -> list[CodeBlock]:
    """Return the blocks of a source file; of two with one name, the one that is in effect."""
    language = source_language(path)
    if not language:
        return []
    layout: Layout = "indent" if language in {"python", "ruby", "shell"} else "brace"
    blocks: dict[str, CodeBlock] = {"": CodeBlock("")}
    open_blocks: list[tuple[int, CodeBlock]] = []
    pending: list[Statement] = []
    start = re.compile(_STARTS[language])
    for statement, depth, after in _statements(text, language, layout):
        level = statement.indent if layout == "indent" else depth
        closing = statement.masked in {"}", "end", "});", "})", "},", "fi", "esac"}
        while open_blocks and level <= open_blocks[-1][0] and not (closing and layout == "indent"):
            open_blocks.pop()
        if not statement.masked:
            continue
        current = open_blocks[-1][1] if open_blocks else None
        match = start.match(statement.text) if not current or current.is_group else None
        if match is None or (match.groupdict().get("name2") or "") in _KEYWORDS:
            if (not current or current.is_group) and _MARKS.match(statement.masked):
                pending.append(statement)
                if not _mark_has_code(statement, language):
                    continue
                match = start.match(_without_marks(statement.text))
            if match is None or not match.group(0):
                blocks[""].statements.extend(pending)
                pending = []
                (current or blocks[""]).statements.append(statement)
                continue
        block = _block(match, statement, pending, current, language)
        pending = []
        key = _key(block.name, blocks, language)
        blocks[key] = block
        block.name = key
        rest = _rest(statement)
        block.statements.extend(rest)
        if layout == "indent" or after > depth:
            open_blocks.append((level, block))
    blocks[""].statements.extend(pending)
    return list(blocks.values())


def _key(name: str, found: dict[str, CodeBlock], language: str) -> str:
    """Return the name with a number if it is taken; in Python the later definition wins."""
    if language == "python" or name not in found:
        return name
    number = 2
    while f"{name} #{number}" in found and number < 1_000:
        number += 1
    return f"{name} #{number}"


def _block(
    match: re.Match[str],
    statement: Statement,
    marks: list[Statement],
    parent: CodeBlock | None,
    language: str,
) -> CodeBlock:
    parts = match.groupdict()
    own = (parts.get("name") or parts.get("name2") or "").strip().rstrip("{ ").strip("\"'`")
    kind = parts.get("kind") or ""
    is_group = kind in _GROUPS
    marked = any(_TEST_MARKS.search(mark.masked) for mark in marks)
    is_test = marked or kind in _TEST_KINDS or (kind.startswith("TEST") and language == "c")
    is_test = is_test or (bool(_TEST_NAMES.match(own)) and language != "script")
    name = f"{parent.name}.{own}" if parent is not None and parent.name else own
    return CodeBlock(
        name[:300], statement.line, is_test and not is_group, is_group, [*marks, statement]
    )


def _mark_has_code(statement: Statement, language: str) -> bool:
    """Return True if a definition follows the annotation on the same line."""
    return language in {"java", "rust"} and bool(_without_marks(statement.text))


def _without_marks(text: str) -> str:
    return re.sub(r"^(?:(?:@[\w.]+(?:\([^)\n]*\))?|#?\[[^\]\n]*\])\s*)+", "", text)


def _rest(statement: Statement) -> list[Statement]:
    """Return what follows the head of a definition on its own line."""
    cut = re.search(r"=>\s*\{?|\{|\)\s*(?:->[^:]*)?:", statement.masked)
    if cut is None:
        return []
    found = []
    for piece in re.finditer(r"[^;]+", statement.masked[cut.end() :]):
        begin = cut.end() + piece.start()
        text = statement.text[begin : begin + len(piece.group())].strip(" }")
        masked = piece.group().strip(" }")
        if re.search(r"\w", masked):
            found.append(Statement(text, masked, statement.line, statement.indent))
    return found


def _statements(text: str, language: str, layout: Layout) -> Iterator[tuple[Statement, int, int]]:
    """Yield each statement with the number of open brackets before and after it."""
    clean, masked = _strip(text[:MAX_TEXT], language)
    stack: list[str] = []
    lines: list[tuple[int, str, str]] = []
    before = 0
    masked_lines = masked.split("\n")
    number = 0
    for index, (line, mask) in enumerate(zip(clean.split("\n"), masked_lines, strict=True), 1):
        number, first = number + 1 + line.count(_BREAK), number + 1
        if not mask.strip():
            continue
        if not lines:
            before = len(stack) - _leading_closers(mask)
        lines.append((first, line.replace(_BREAK, " "), mask))
        if layout == "brace" or language == "python":
            _count(mask, stack)
        following = masked_lines[index] if index < len(masked_lines) else ""
        goes_on = mask.rstrip().endswith("\\") or (
            layout == "brace"
            and (following.lstrip().startswith((".", "?.")) or following.strip() == "{")
        )
        is_inside = bool(stack) and (stack[-1] != "{" or language == "python")
        if (goes_on or is_inside) and len(lines) < MAX_JOINED:
            continue
        for statement in _pieces(_statement(lines)):
            yield statement, before, len(stack)
        lines = []
    if lines:
        for statement in _pieces(_statement(lines)):
            yield statement, before, len(stack)


def _pieces(statement: Statement) -> Iterator[Statement]:
    """Yield the statement in pieces that overlap, so that matching a pattern stays bounded."""
    text, masked = statement.text, statement.masked
    step = MAX_STATEMENT - OVERLAP
    for begin in range(0, max(len(text) - OVERLAP, 1), step):
        end = begin + MAX_STATEMENT
        rows = () if begin else statement.rows
        yield Statement(text[begin:end], masked[begin:end], statement.line, statement.indent, rows)


def _leading_closers(mask: str) -> int:
    return len(mask.lstrip()) - len(mask.lstrip().lstrip(")]}"))


def _count(mask: str, stack: list[str]) -> None:
    for bracket in re.findall(r"[()\[\]{}]", mask):
        if bracket in "([{":
            stack.append(bracket)
        elif stack:
            stack.pop()


def _statement(lines: list[tuple[int, str, str]]) -> Statement:
    number, first, _ = lines[0]
    # Both texts keep their positions in step: only runs of white space outside of strings shrink.
    clean = "\n".join(line for _, line, _ in lines)
    mask = "\n".join(line for _, _, line in lines)
    pieces = [(clean[m.start() : m.end()], m.group()) for m in re.finditer(r"\S+", mask)]
    return Statement(
        " ".join(piece for piece, _ in pieces),
        " ".join(piece for _, piece in pieces),
        number,
        len(first) - len(first.lstrip()),
        tuple(" ".join(line.split())[:MAX_STATEMENT] for _, line, _ in lines[1:]),
    )


def _strip(text: str, language: str) -> tuple[str, str]:
    """Return the text without comments, and the same with masked strings; positions stay."""

    def blank(token: str) -> str:
        return re.sub(r"[^\n]", " ", token)

    def clean(match: re.Match[str]) -> str:
        token = match.group()
        return blank(token) if token.startswith(_COMMENT_STARTS) else token.replace("\n", _BREAK)

    def mask(match: re.Match[str]) -> str:
        token = match.group()
        if token.startswith(_COMMENT_STARTS):
            return blank(token)
        token = token.replace("\n", "_")
        return token if len(token) < 3 else token[0] + "_" * (len(token) - 2) + token[-1]

    tokens = re.compile(_TOKENS.get(language, _C_TOKENS))
    text = re.sub(r"[\x00\r\v\f\x1c-\x1e\x85\u2028\u2029]", " ", text.replace("\r\n", "\n"))
    return tokens.sub(clean, text), tokens.sub(mask, text)
