"""Expands raw shell words as far as possible without executing anything: quotes, variables that the
same text has set, and substitutions whose output is known.
"""

import re
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field

from resolver.security.shell.syntax import part_end

OPAQUE = "$(…)"
"""Placeholder for command output that is not known."""

LONGEST_VALUE = 20_000
"""Maximum characters kept of a variable's value."""

MOST_FIELDS = 200
"""Maximum words that one raw word may expand to."""

MOST_NESTED = 12
"""Maximum depth of expansions inside expansions."""

_NO_TAGS: frozenset[str] = frozenset()
_KNOWN = {
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
_LETTERS = {
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
class Expanded:
    """Holds the words that one raw word expands to, and the origins of substituted data."""

    words: list[str] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    _open: bool = False

    def add(self, text: str, *, splits: bool = False) -> None:
        """Append text to the last word. With `splits`, white space in it starts new words, as it
        does in an unquoted expansion."""
        if not splits or not any(c in text for c in " \t\n"):
            if text or not splits:
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
            self.words[-1] = (self.words[-1] + text)[:LONGEST_VALUE]
        elif len(self.words) < MOST_FIELDS:
            self.words.append(text[:LONGEST_VALUE])
        self._open = True


def unescaped(text: str) -> str:
    """Replace backslash escapes as `echo -e`, printf and $'...' do."""

    def one(found: "re.Match[str]") -> str:
        code = found[1]
        if code in _LETTERS:
            return _LETTERS[code]
        if code[0] in "xuU":
            number = int(code[1:], 16)
        elif code[0].isdigit():
            number = int(code, 8)
        else:
            return code
        return chr(number) if number < 0xD800 else "\ufffd"

    return _ESCAPE.sub(one, text)


def braces(raw: str) -> list[str]:
    """Expand the first level of braces: `a{b,c}d` gives `abd` and `acd`."""
    found = _BRACES.fullmatch(raw)
    if found is None:
        return [raw]
    return [f"{found[1]}{part}{found[3]}" for part in found[2].split(",")[:MOST_FIELDS]]


class Expander:
    """Expands raw words.

    variables: the variables set so far, shared with the caller, who changes them.
    run: returns the output of a command substitution, given its source.
    """

    def __init__(self, variables: MutableMapping[str, Flow], run: Callable[[str], Flow]) -> None:
        self._variables = variables
        self._run = run
        self._depth = 0

    def words(self, raw: str) -> Expanded:
        """Return the words that a raw word expands to."""
        found = Expanded()
        for part in braces(raw):
            found._open = False
            self._expand(part, found, quoted=False)
        return found

    def text(self, raw: str) -> Expanded:
        """Expand without splitting into words, as for a value that is assigned."""
        found = Expanded()
        self._expand(raw, found, quoted=False, splits=False)
        if not found.words:
            found.words.append("")
        return found

    def heredoc(self, body: str) -> Expanded:
        """Expand the body of a here-document: quotes are kept, variables and substitutions are
        replaced."""
        found = Expanded()
        self._expand(body, found, quoted=True)
        if not found.words:
            found.words.append("")
        return found

    def _expand(self, raw: str, into: Expanded, *, quoted: bool, splits: bool = True) -> None:
        if self._depth > MOST_NESTED:
            into.add(raw)
            return
        self._depth += 1
        try:
            self._expand_here(raw, into, quoted=quoted, splits=splits and not quoted)
        finally:
            self._depth -= 1

    def _expand_here(self, raw: str, into: Expanded, *, quoted: bool, splits: bool) -> None:
        at, size = 0, len(raw)
        pattern = re.compile(r"[^\\$`\"']+" if not quoted else r"[^\\$`]+")
        while at < size:
            plain = pattern.match(raw, at)
            if plain:
                into.add(plain[0])
                at = plain.end()
                continue
            char = raw[at]
            if quoted and char in "\"'":
                into.add(char)
                at += 1
                continue
            end = max(part_end(raw, at), at + 1)
            self._part(raw[at:end], into, quoted=quoted, splits=splits)
            if raw[at:end] == "$":
                known = _NAME.match(raw, at) or _SPECIAL.match(raw, at)
                if known:
                    into.words[-1] = into.words[-1][:-1]
                    self._variable(known[1], into, splits=splits)
                    end = known.end()
            at = end

    def _part(self, part: str, into: Expanded, *, quoted: bool, splits: bool) -> None:
        if part.startswith("\\"):
            into.add(
                "" if part == "\\\n" else part[1:] if not quoted or part[1:2] in '$`"\\' else part
            )
        elif part.startswith("'"):
            into.add(part[1:-1] if part.endswith("'") and len(part) > 1 else part[1:])
        elif part.startswith("$'") and not quoted:
            into.add(unescaped(part[2:-1]))
        elif part.startswith('"'):
            inner = part[1:-1] if part.endswith('"') and len(part) > 1 else part[1:]
            into.add("")
            self._expand(inner, into, quoted=True)
        elif part.startswith("$(("):
            into.add("0")
        elif part.startswith("$("):
            self._substitute(part[2:-1] if part.endswith(")") else part[2:], into, splits=splits)
        elif part.startswith("`"):
            inner = part[1:-1] if part.endswith("`") and len(part) > 1 else part[1:]
            self._substitute(inner.replace("\\`", "`"), into, splits=splits)
        elif part.startswith("${"):
            self._braced(part, into, splits=splits)
        else:
            into.add(part)

    def process(self, raw: str) -> tuple[str, Flow] | None:
        """Return the kind (`<` or `>`) and the output of a process substitution such as `<(...)`;
        None for any other word."""
        if raw[:2] not in {"<(", ">("}:
            return None
        inner = raw[2:-1] if raw.endswith(")") else raw[2:]
        return raw[0], self._run(inner)

    def _substitute(self, source: str, into: Expanded, *, splits: bool) -> None:
        flow = self._run(source)
        into.tags |= flow.tags
        text = flow.text.rstrip("\n") if flow.text is not None else OPAQUE
        into.add(text, splits=splits)

    def _variable(self, name: str, into: Expanded, *, splits: bool) -> None:
        flow = self._variables.get(name)
        if flow is not None:
            into.tags |= flow.tags
            into.add(OPAQUE if flow.text is None else flow.text, splits=splits)
        elif name in _KNOWN:
            into.add(_KNOWN[name], splits=splits)
        else:
            is_name = name[0].isalpha() or name[0] == "_"
            into.add(f"${{{name}}}" if is_name else "0")

    def _braced(self, part: str, into: Expanded, *, splits: bool) -> None:
        found = _BRACED.fullmatch(part)
        if found is None:
            into.add(part)
            return
        mark, name, rest = found[1], found[2], found[3]
        if mark == "#":
            into.add("0")
            return
        is_set = name in self._variables
        if rest[:2] in {":-", ":="} or rest[:1] in {"-", "="}:
            if is_set:
                self._variable(name, into, splits=splits)
            else:
                self._expand(rest.lstrip(":")[1:], into, quoted=False, splits=splits)
        elif rest[:2] == ":+" or rest[:1] == "+":
            self._expand(rest.lstrip(":")[1:], into, quoted=False, splits=splits)
        else:
            self._variable(name, into, splits=splits)
