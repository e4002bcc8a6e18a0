"""Parses shell text into pipelines and their stages, without executing or expanding anything.

The parser accepts any text and needs linear time: each character is looked at a bounded number of
times, and nesting is tracked on an explicit stack. Text that a shell would reject is parsed as well
as possible. The grammar is that of POSIX with the extensions of Bash:
https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html
"""

import re
from dataclasses import dataclass, field

MOST_NESTED = 30
"""Maximum nesting of compound commands; deeper ones are parsed as if they were side by side."""

_BLANK = re.compile(r"(?:[ \t\r]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_REDIRECT = re.compile(
    r"(?:\d{1,4}|\{\w{1,40}\})?(<<<|<<-|<<|<&|>&|<>|>>|>\||&>>|&>|<(?!\()|>(?!\())"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w{0,200}(?:\[[^\]]{0,80}\])?\+?=")
_PLAIN = re.compile(r"[^\s\\'\"`$(){}<>|&;#]+")
_INSIDE = re.compile(r"[^\\'\"`$(){}\n#]+")
_ANSI_QUOTED = re.compile(r"\$'(?:[^'\\]|\\.)*'?", re.S)

OPENERS = frozenset({"if", "while", "until", "for", "select", "case", "{"})
CLOSERS = frozenset({"fi", "done", "esac", "}"})
BETWEEN = frozenset({"then", "elif", "else", "do", "!", "time", "coproc"})
_TURNING = frozenset({"!", "coproc"})
"""Words before a command that make the pipeline's exit code differ from the command's."""


@dataclass(frozen=True)
class Redirect:
    """Represents a redirection.

    operator: as written, without the file descriptor before it.
    target: the raw word; for a here-document, its text.
    literal: nothing in the text is expanded (a here-document with a quoted delimiter).
    """

    operator: str
    target: str
    literal: bool = False


@dataclass
class PipelineStage:
    """Represents one command of a pipeline.

    words: the raw words, including quotes.
    body: the commands in a compound command; None for a simple command.
    kind: the opening word of a compound command, such as `if`, `{` or `(`, or "function" for the
        definition of a function.
    turned: `!` or `coproc` precedes the command, so that its result is not that of the pipeline.
    behind: the operator after the last stage of a pipeline, such as `&&`; "" at the end of the text
        or of the enclosing compound command.
    """

    words: list[str] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    body: "list[Pipeline] | None" = None
    kind: str = ""
    turned: bool = False
    behind: str = ""


Pipeline = list[PipelineStage]


@dataclass(frozen=True)
class Script:
    """Represents a parsed script.

    pipelines: in order.
    functions: the bodies of functions, by name.
    """

    pipelines: list[Pipeline]
    functions: dict[str, list[Pipeline]]


def parse(text: str) -> Script:
    """Return the script that a shell would read from the text."""
    return _Parser(text).script()


def word_end(text: str, start: int) -> int:
    """Return the end of the word that begins at `start`."""
    at, size = start, len(text)
    while at < size:
        plain = _PLAIN.match(text, at)
        if plain:
            at = plain.end()
            continue
        char = text[at]
        if char in " \t\r\n;|&)":
            break
        if char == "(" and (at == start or text[at - 1] not in "=?*+@!"):
            break
        if char in "<>" and text[at + 1 : at + 2] != "(":
            break
        if char == "#" and at == start:
            break
        at = part_end(text, at)
    return max(at, start)


def part_end(text: str, at: int) -> int:
    """Return the end of the quoted or bracketed part that begins at `at`, or of the character."""
    char, following = text[at], text[at + 1 : at + 2]
    if char == "\\":
        return min(at + 2, len(text))
    if char == "'":
        found = text.find("'", at + 1)
        return len(text) if found < 0 else found + 1
    if char == "$" and following == "'":
        found_ansi = _ANSI_QUOTED.match(text, at)
        return found_ansi.end() if found_ansi else at + 2
    if char in '"`':
        return balanced(text, at + 1, char)
    if char == "$" and following in {"(", "{"}:
        return balanced(text, at + 2, ")" if following == "(" else "}")
    if char in "<>" and following == "(":
        return balanced(text, at + 2, ")")
    if char == "(":
        return balanced(text, at + 1, ")")
    return at + 1


def balanced(text: str, at: int, closer: str) -> int:
    """Return the position after the `closer` of a bracket or quote that was opened before `at`.

    Nested brackets and quotes are skipped. Without a closer, this is the end of the text.
    """
    stack, size = [closer], len(text)
    while at < size:
        plain = _INSIDE.match(text, at)
        if plain:
            at = plain.end()
            continue
        char = text[at]
        if char == stack[-1]:
            stack.pop()
            at += 1
            if not stack:
                return at
        elif char == "\\":
            at += 2
        elif char == "$" and text[at + 1 : at + 2] in {"(", "{"}:
            stack.append(")" if text[at + 1] == "(" else "}")
            at += 2
        elif char == '"' or (char == "`" and stack[-1] != "`"):
            stack.append(char)
            at += 1
        elif stack[-1] == '"':
            at += 1
        elif char == "'":
            found = text.find("'", at + 1)
            at = size if found < 0 else found + 1
        elif char == "(":
            stack.append(")")
            at += 1
        elif char == "#" and stack[-1] == ")" and text[at - 1] in " \t\n":
            found = text.find("\n", at)
            at = size if found < 0 else found
        else:
            at += 1
    return size


@dataclass
class _Frame:
    """A compound command that has been opened but not closed yet. The lowest frame is the script.

    header: the variable and values of a `for` or `select`, or the subject of a `case`.
    function: name of a function whose body comes next.
    """

    opener: str
    pipelines: list[Pipeline] = field(default_factory=list)
    pipeline: Pipeline = field(default_factory=list)
    stage: PipelineStage = field(default_factory=PipelineStage)
    function: str = ""
    header: list[str] = field(default_factory=list)


class _Parser:
    """Parses a text in one pass from left to right. Bodies of here-documents are read at the end of
    the line that announces them, as a shell does."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._frames = [_Frame("")]
        self._heredocs: list[tuple[PipelineStage, int, str, bool, bool]] = []
        self._functions: dict[str, list[Pipeline]] = {}

    def script(self) -> Script:
        text, size = self._text, len(self._text)
        while self._at < size:
            blank = _BLANK.match(text, self._at)
            if blank:
                self._at = blank.end()
                continue
            before = self._at
            self._read_one(text[self._at])
            self._at = max(self._at, before + 1)
        while len(self._frames) > 1:
            self._close()
        self._end_pipeline()
        return Script(self._frames[0].pipelines, self._functions)

    @property
    def _top(self) -> _Frame:
        return self._frames[-1]

    def _read_one(self, char: str) -> None:
        text, at = self._text, self._at
        starts = not self._top.stage.words and self._top.stage.body is None
        if char == "\n":
            self._at += 1
            self._end_pipeline("\n")
            self._read_heredocs()
        elif char == "#":
            comment = _COMMENT.match(text, at)
            self._at = comment.end() if comment else at + 1
        elif redirect := _REDIRECT.match(text, at):
            self._read_redirect(redirect)
        elif char == "|" and text[at + 1 : at + 2] != "|":
            self._at += 2 if text[at + 1 : at + 2] == "&" else 1
            self._end_stage()
        elif char in ";&|":
            operator = text[at : at + 2] if text[at : at + 2] in {"&&", "||", ";;"} else char
            self._at += len(operator)
            self._end_pipeline(operator)
            if self._top.opener == "case" and text[at : at + 2] == ";;":
                self._skip_pattern()
        elif char == "(":
            self._open_round(starts)
        elif char == ")":
            self._at += 1
            if self._top.opener == "(":
                self._close()
        else:
            self._read_word(starts)

    def _open_round(self, starts: bool) -> None:
        text, at, stage = self._text, self._at, self._top.stage
        if starts and text.startswith("((", at):
            self._at = balanced(text, at + 1, ")")
            self._top.stage.words.append("((")
        elif not starts and len(stage.words) == 1 and re.match(r"\(\s{0,9}\)", text[at : at + 12]):
            self._at = text.index(")", at) + 1
            self._top.function = stage.words[0]
            self._top.stage = PipelineStage()
        elif starts:
            self._at += 1
            self._open("(")
        else:
            # an array's values, or something that no shell accepts
            self._at = balanced(text, at + 1, ")")
            stage.words.append(text[at : self._at])

    def _read_word(self, starts: bool) -> None:
        end = word_end(self._text, self._at)
        word = self._text[self._at : max(end, self._at + 1)]
        self._at = max(end, self._at + 1)
        stage = self._top.stage
        if starts and word in OPENERS:
            self._open(word)
            if word == "case":
                self._skip_subject()
            return
        if starts and word in CLOSERS:
            self._close()
            return
        if starts and word in BETWEEN:
            stage.turned = stage.turned or word in _TURNING
            return
        if starts and word == "function":
            self._read_function()
            return
        if stage.body is None:
            stage.words.append(word)

    def _read_function(self) -> None:
        blank = _BLANK.match(self._text, self._at)
        start = blank.end() if blank else self._at
        end = word_end(self._text, start)
        self._top.function = self._text[start:end]
        round_brackets = re.match(r"\s{0,9}\(\s{0,9}\)", self._text[end : end + 24])
        self._at = end + (round_brackets.end() if round_brackets else 0)

    def _skip_subject(self) -> None:
        """Skip the subject of a `case`, its `in`, and the first pattern."""
        for _ in range(2):
            blank = re.compile(r"(?:\s|\\\n)*").match(self._text, self._at)
            start = blank.end() if blank else self._at
            self._at = word_end(self._text, start)
            if self._text[start : self._at] not in {"in", ""}:
                self._top.header.append(self._text[start : self._at])
        self._skip_pattern()

    def _skip_pattern(self) -> None:
        found = re.compile(r"\s*(?!esac\b)[^()\n;]{0,400}\)").match(self._text, self._at)
        if found:
            self._at = found.end()

    def _read_redirect(self, found: "re.Match[str]") -> None:
        text, operator = self._text, found[1]
        blank = _BLANK.match(text, found.end())
        start = blank.end() if blank else found.end()
        self._at = word_end(text, start)
        target = text[start : self._at]
        stage = self._top.stage
        stage.redirects.append(Redirect(operator, target))
        if operator in {"<<", "<<-"}:
            quoted = any(c in target for c in "'\"\\")
            delimiter = re.sub(r"['\"\\]", "", target)
            place = len(stage.redirects) - 1
            self._heredocs.append((stage, place, delimiter, quoted, operator == "<<-"))

    def _read_heredocs(self) -> None:
        for stage, place, delimiter, quoted, indented in self._heredocs:
            lines: list[str] = []
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end]
                self._at = end + 1
                line = line.lstrip("\t") if indented else line
                if line.rstrip("\r") == delimiter:
                    break
                lines.append(line)
            body = "".join(f"{line}\n" for line in lines)
            stage.redirects[place] = Redirect("<<", body, quoted)
        self._heredocs.clear()

    def _open(self, opener: str) -> None:
        if len(self._frames) > MOST_NESTED:
            return
        self._frames.append(_Frame(opener))

    def _close(self) -> None:
        if len(self._frames) == 1:
            return
        self._end_pipeline()
        frame = self._frames.pop()
        stage = self._top.stage
        stage.body, stage.kind, stage.words = frame.pipelines, frame.opener, frame.header
        if self._top.function and frame.opener in {"{", "("}:
            self._functions[self._top.function] = frame.pipelines
            stage.kind, self._top.function = "function", ""

    def _end_stage(self) -> None:
        frame = self._top
        if frame.stage.words or frame.stage.redirects or frame.stage.body is not None:
            if not frame.header and frame.opener in {"for", "select"}:
                frame.header = frame.stage.words
            else:
                frame.pipeline.append(frame.stage)
        frame.stage = PipelineStage()

    def _end_pipeline(self, operator: str = "") -> None:
        self._end_stage()
        if self._top.pipeline:
            self._top.pipeline[-1].behind = operator
            self._top.pipelines.append(self._top.pipeline)
            self._top.pipeline = []


def assignment(raw: str) -> tuple[str, str] | None:
    """Return name and raw value of `NAME=VALUE`; None for any other word."""
    found = _ASSIGNMENT.match(raw)
    if found is None:
        return None
    return raw[: found.end()].rstrip("=+").partition("[")[0], raw[found.end() :]
