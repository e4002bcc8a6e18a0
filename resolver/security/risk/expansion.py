"""Expands raw shell words as far as possible without executing anything: quotes, variables that the
same text has set, and substitutions whose output is known.
"""

import re
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field

from resolver.security.shell.syntax import arithmetic_end, find_part_end

OPAQUE = "$(…)"
"""Placeholder for command output that is not known."""

MAX_VALUE_CHARACTERS = 20_000
"""Maximum characters kept of a variable's value."""

MAX_WORDS = 200
"""Maximum words that one raw word may expand to."""

MAX_NESTING = 12
"""Maximum depth of expansions inside expansions."""

_NO_TAGS: frozenset[str] = frozenset()
_ASSUMED_VALUES = {
    "HOME": "~",
    "PWD": ".",
    "OLDPWD": ".",
    "IFS": " ",
    "RANDOM": "0",
    "EUID": "0",
    "@": "",
    "*": "",
}
"""Assumed values of variables that the text has not set."""

_BRACES = re.compile(
    r"([^{}\s$'\"`\\]{0,200})\{([^{}\s'\"`\\]{0,2000},[^{}\s'\"`\\]{0,2000})\}(\S{0,200})"
)
_SPECIAL = re.compile(r"\$([?$!#0-9@*-])")
_NAME = re.compile(r"\$([A-Za-z_]\w{0,200})")
_BRACED = re.compile(
    r"\$\{([!#]?)([A-Za-z_]\w{0,200}|[?$!0-9@*#-])(?:\[[^\]]{0,40}\])?(.*)\}", re.S
)
_ESCAPE = re.compile(
    r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|0?[0-7]{1,3}|[abefnrtv\\'\"?])"
)
_ESCAPE_LETTERS = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


@dataclass(frozen=True)
class Flow:
    """Represents the output of a command.

    text: the complete output if it is known, otherwise None.
    tags: origins of the data (see `resolver.security.risk.findings`).
    """

    text: str | None = None
    tags: frozenset[str] = _NO_TAGS


@dataclass
class WordExpansion:
    """Holds the words that one raw word expands to, and the origins of substituted data."""

    words: list[str] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    _open: bool = False

    def add(self, text: str, *, split_words: bool = False) -> None:
        """Append text to the last word. With `split_words`, white space in it starts new words, as
        it does in an unquoted expansion."""
        if not split_words or not any(character in text for character in " \t\n"):
            if text or not split_words:
                self._append(text)
            return
        if text[0].isspace():
            self._open = False
        for part in text.split():
            self._append(part)
            self._open = False
        self._open = not text[-1].isspace()

    def _append(self, text: str) -> None:
        if self._open and self.words:
            self.words[-1] = (self.words[-1] + text)[:MAX_VALUE_CHARACTERS]
        elif len(self.words) < MAX_WORDS:
            self.words.append(text[:MAX_VALUE_CHARACTERS])
        self._open = True


def replace_escapes(text: str) -> str:
    """Replace backslash escapes as `echo -e`, printf and $'...' do."""

    def one(match: "re.Match[str]") -> str:
        code = match[1]
        if code in _ESCAPE_LETTERS:
            return _ESCAPE_LETTERS[code]
        if code[0] in "xuU":
            number = int(code[1:], 16)
        elif code[0].isdigit():
            number = int(code, 8)
        else:
            return code
        return chr(number) if number < 0xD800 else "\ufffd"

    return _ESCAPE.sub(one, text)


def expand_braces(raw: str) -> list[str]:
    """Expand the first level of braces: `a{b,c}d` gives `abd` and `acd`."""
    match = _BRACES.fullmatch(raw)
    if match is None:
        return [raw]
    return [f"{match[1]}{part}{match[3]}" for part in match[2].split(",")[:MAX_WORDS]]


class Expander:
    """Expands raw words.

    variables: the variables set so far, shared with the caller, who changes them.
    run: returns the output of a command substitution, given its source.
    """

    def __init__(self, variables: MutableMapping[str, Flow], run: Callable[[str], Flow]) -> None:
        self._variables = variables
        self._run = run
        self._depth = 0

    def words(self, raw: str) -> WordExpansion:
        """Return the words that a raw word expands to."""
        expanded = WordExpansion()
        for part in expand_braces(raw):
            expanded._open = False
            self._expand(part, expanded, is_quoted=False)
        return expanded

    def text(self, raw: str) -> WordExpansion:
        """Expand without splitting into words, as for a value that is assigned."""
        expanded = WordExpansion()
        self._expand(raw, expanded, is_quoted=False, split_words=False)
        if not expanded.words:
            expanded.words.append("")
        return expanded

    def heredoc(self, body: str) -> WordExpansion:
        """Expand the body of a here-document: quotes are kept, variables and substitutions are
        replaced."""
        expanded = WordExpansion()
        self._expand(body, expanded, is_quoted=True)
        if not expanded.words:
            expanded.words.append("")
        return expanded

    def _expand(
        self, raw: str, expanded: WordExpansion, *, is_quoted: bool, split_words: bool = True
    ) -> None:
        if self._depth > MAX_NESTING:
            expanded.add(raw)
            return
        self._depth += 1
        try:
            self._expand_parts(
                raw, expanded, is_quoted=is_quoted, split_words=split_words and not is_quoted
            )
        finally:
            self._depth -= 1

    def _expand_parts(
        self, raw: str, expanded: WordExpansion, *, is_quoted: bool, split_words: bool
    ) -> None:
        position, size = 0, len(raw)
        pattern = re.compile(r"[^\\$`\"']+" if not is_quoted else r"[^\\$`]+")
        while position < size:
            literal = pattern.match(raw, position)
            if literal:
                expanded.add(literal[0])
                position = literal.end()
                continue
            char = raw[position]
            if is_quoted and char in "\"'":
                expanded.add(char)
                position += 1
                continue
            end = max(find_part_end(raw, position), position + 1)
            self._expand_part(
                raw[position:end], expanded, is_quoted=is_quoted, split_words=split_words
            )
            if raw[position:end] == "$":
                variable = _NAME.match(raw, position) or _SPECIAL.match(raw, position)
                if variable:
                    expanded.words[-1] = expanded.words[-1][:-1]
                    self._add_variable(variable[1], expanded, split_words=split_words)
                    end = variable.end()
            position = end

    def _expand_part(
        self, part: str, expanded: WordExpansion, *, is_quoted: bool, split_words: bool
    ) -> None:
        if part.startswith("\\"):
            expanded.add(
                ""
                if part == "\\\n"
                else part[1:]
                if not is_quoted or part[1:2] in '$`"\\'
                else part
            )
        elif part.startswith("'"):
            expanded.add(part[1:-1] if part.endswith("'") and len(part) > 1 else part[1:])
        elif part.startswith("$'") and not is_quoted:
            expanded.add(replace_escapes(part[2:-1]))
        elif part.startswith('"'):
            inner = part[1:-1] if part.endswith('"') and len(part) > 1 else part[1:]
            expanded.add("")
            self._expand(inner, expanded, is_quoted=True)
        elif part.startswith("$((") and arithmetic_end(part, 1) == len(part):
            arithmetic = WordExpansion()  # its value is not needed, but its substitutions are run
            self._expand(part[3:-2], arithmetic, is_quoted=True)
            expanded.tags |= arithmetic.tags
            expanded.add("0")
        elif part.startswith("$("):
            self._substitute(
                part[2:-1] if part.endswith(")") else part[2:], expanded, split_words=split_words
            )
        elif part.startswith("`"):
            inner = part[1:-1] if part.endswith("`") and len(part) > 1 else part[1:]
            self._substitute(inner.replace("\\`", "`"), expanded, split_words=split_words)
        elif part.startswith("${"):
            self._expand_braced(part, expanded, split_words=split_words)
        else:
            expanded.add(part)

    def process(self, raw: str) -> tuple[str, Flow] | None:
        """Return the kind (`<` or `>`) and the output of a process substitution such as `<(...)`;
        None for any other word."""
        if raw[:2] not in {"<(", ">("}:
            return None
        inner = raw[2:-1] if raw.endswith(")") else raw[2:]
        return raw[0], self._run(inner)

    def _substitute(self, source: str, expanded: WordExpansion, *, split_words: bool) -> None:
        flow = self._run(source)
        expanded.tags |= flow.tags
        text = flow.text.rstrip("\n") if flow.text is not None else OPAQUE
        expanded.add(text, split_words=split_words)

    def _add_variable(self, name: str, expanded: WordExpansion, *, split_words: bool) -> None:
        flow = self._variables.get(name)
        if flow is not None:
            expanded.tags |= flow.tags
            expanded.add(OPAQUE if flow.text is None else flow.text, split_words=split_words)
        elif name in _ASSUMED_VALUES:
            expanded.add(_ASSUMED_VALUES[name], split_words=split_words)
        else:
            is_name = name[0].isalpha() or name[0] == "_"
            expanded.add(f"${{{name}}}" if is_name else "0")

    def _expand_braced(self, part: str, expanded: WordExpansion, *, split_words: bool) -> None:
        match = _BRACED.fullmatch(part)
        if match is None:
            expanded.add(part)
            return
        mark, name, operation = match[1], match[2], match[3]
        if mark == "#":
            expanded.add("0")
            return
        is_set = name in self._variables
        if operation[:2] in {":-", ":="} or operation[:1] in {"-", "="}:
            if is_set:
                self._add_variable(name, expanded, split_words=split_words)
            else:
                self._expand(
                    operation.lstrip(":")[1:], expanded, is_quoted=False, split_words=split_words
                )
        elif operation[:2] == ":+" or operation[:1] == "+":
            self._expand(
                operation.lstrip(":")[1:], expanded, is_quoted=False, split_words=split_words
            )
        else:
            self._add_variable(name, expanded, split_words=split_words)
