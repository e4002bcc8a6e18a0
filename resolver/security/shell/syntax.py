"""Parses shell text into pipelines and their stages, without executing or expanding anything.

The parser accepts any text and needs linear time: each character is looked at a bounded number of
times, and nesting is tracked on an explicit stack. Text that a shell would reject is parsed as well
as possible. The grammar is that of POSIX with the extensions of Bash:
https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html

A generated parser is not used: tree-sitter-bash 0.25 has no rule for `<>`, by which reverse shells
connect, and needs quadratic time to recover from errors, 28 s for 64 kB of closing parentheses. The
measurement is in bench/README.md, "The parser of shell text".
"""

import re
from dataclasses import dataclass, field

MAX_NESTING = 30
"""Maximum nesting of compound commands; deeper ones are parsed as if they were side by side."""

_BLANK = re.compile(r"(?:[ \t\r]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_REDIRECT = re.compile(
    r"(?:\d{1,4}|\{\w{1,40}\})?(<<<|<<-|<<|<&|>&|<>|>>|>\||&>>|&>|<(?!\()|>(?!\())"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w{0,200}(?:\[[^\]]{0,80}\])?\+?=")
_PLAIN_CHARACTERS = re.compile(r"[^\s\\'\"`$(){}<>|&;#]+")
_PLAIN_INSIDE = re.compile(r"[^\\'\"`$(){}\n#]+")
_ANSI_QUOTED = re.compile(r"\$'(?:[^'\\]|\\.)*'?", re.S)

OPENERS = frozenset({"if", "while", "until", "for", "select", "case", "{"})
CLOSERS = frozenset({"fi", "done", "esac", "}"})
SEPARATORS = frozenset({"then", "elif", "else", "do", "!", "time", "coproc"})
_INVERTING = frozenset({"!", "coproc"})
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
    is_inverted: `!` or `coproc` precedes the command, so that the pipeline has another result.
    next_operator: the operator after the last stage of a pipeline, such as `&&`; "" at the end of
        the text or of the enclosing compound command.
    """

    words: list[str] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    body: "list[Pipeline] | None" = None
    kind: str = ""
    is_inverted: bool = False
    next_operator: str = ""


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
    """Return the script that a shell would read from the text. Bash ignores NUL characters."""
    return _Parser(text.replace("\0", "")).script()


def word_end(text: str, start: int) -> int:
    """Return the end of the word that begins at `start`."""
    position, size = start, len(text)
    while position < size:
        literal = _PLAIN_CHARACTERS.match(text, position)
        if literal:
            position = literal.end()
            continue
        char = text[position]
        if char in " \t\r\n;|&)":
            break
        if char == "(" and (position == start or text[position - 1] not in "=?*+@!"):
            break
        if char in "<>" and text[position + 1 : position + 2] != "(":
            break
        if char == "#" and position == start:
            break
        position = find_part_end(text, position)
    return max(position, start)


def find_part_end(text: str, position: int) -> int:
    """Return the end of the quoted or bracketed part, or character, that begins at `position`."""
    char, following = text[position], text[position + 1 : position + 2]
    if char == "\\":
        return min(position + 2, len(text))
    if char == "'":
        end = text.find("'", position + 1)
        return len(text) if end < 0 else end + 1
    if char == "$" and following == "'":
        ansi_match = _ANSI_QUOTED.match(text, position)
        return ansi_match.end() if ansi_match else position + 2
    if char in '"`':
        return find_closer_end(text, position + 1, char)
    if char == "$" and following in {"(", "{"}:
        return find_closer_end(text, position + 2, ")" if following == "(" else "}")
    if char in "<>" and following == "(":
        return find_closer_end(text, position + 2, ")")
    if char == "(":
        return find_closer_end(text, position + 1, ")")
    return position + 1


def find_closer_end(text: str, position: int, closer: str) -> int:
    """Return the position after the `closer` of a bracket or quote opened before `position`.

    Nested brackets and quotes are skipped. Without a closer, this is the end of the text.
    """
    stack, size = [closer], len(text)
    while position < size:
        literal = _PLAIN_INSIDE.match(text, position)
        if literal:
            position = literal.end()
            continue
        char = text[position]
        if char == stack[-1]:
            stack.pop()
            position += 1
            if not stack:
                return position
        elif char == "\\":
            position += 2
        elif char == "$" and text[position + 1 : position + 2] in {"(", "{"}:
            stack.append(")" if text[position + 1] == "(" else "}")
            position += 2
        elif char == '"' or (char == "`" and stack[-1] != "`"):
            stack.append(char)
            position += 1
        elif stack[-1] == '"':
            position += 1
        elif char == "'":
            end = text.find("'", position + 1)
            position = size if end < 0 else end + 1
        elif char == "(":
            stack.append(")")
            position += 1
        elif char == "#" and stack[-1] == ")" and text[position - 1] in " \t\n":
            end = text.find("\n", position)
            position = size if end < 0 else end
        else:
            position += 1
    return size


def arithmetic_end(text: str, position: int) -> int:
    """Return the end of the arithmetic expression whose `((` is at `position`; 0 if there is none.

    As in Bash, brackets that are closed apart from each other are those of a nested subshell.
    """
    if not text.startswith("((", position):
        return 0
    end = find_closer_end(text, position + 2, ")")
    return len(text) if end >= len(text) else end + 1 if text[end] == ")" else 0


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
        self._position = 0
        self._frames = [_Frame("")]
        self._heredocs: list[tuple[PipelineStage, int, str, bool, bool]] = []
        self._functions: dict[str, list[Pipeline]] = {}

    def script(self) -> Script:
        text, size = self._text, len(self._text)
        while self._position < size:
            blank = _BLANK.match(text, self._position)
            if blank:
                self._position = blank.end()
                continue
            start = self._position
            self._read_one(text[self._position])
            self._position = max(self._position, start + 1)
        while len(self._frames) > 1:
            self._close()
        self._end_pipeline()
        return Script(self._frames[0].pipelines, self._functions)

    @property
    def _top(self) -> _Frame:
        return self._frames[-1]

    def _read_one(self, char: str) -> None:
        text, position = self._text, self._position
        is_first = not self._top.stage.words and self._top.stage.body is None
        if char == "\n":
            self._position += 1
            self._end_pipeline("\n")
            self._read_heredocs()
        elif char == "#":
            comment = _COMMENT.match(text, position)
            self._position = comment.end() if comment else position + 1
        elif redirect := _REDIRECT.match(text, position):
            self._read_redirect(redirect)
        elif char == "|" and text[position + 1 : position + 2] != "|":
            self._position += 2 if text[position + 1 : position + 2] == "&" else 1
            self._end_stage()
        elif char in ";&|":
            operator = (
                text[position : position + 2]
                if text[position : position + 2] in {"&&", "||", ";;"}
                else char
            )
            self._position += len(operator)
            self._end_pipeline(operator)
            if self._top.opener == "case" and text[position : position + 2] == ";;":
                self._skip_pattern()
        elif char == "(":
            self._read_round_bracket(is_first)
        elif char == ")":
            self._position += 1
            if self._top.opener == "(":
                self._close()
        else:
            self._read_word(is_first)

    def _read_round_bracket(self, is_first: bool) -> None:
        text, position, stage = self._text, self._position, self._top.stage
        end = arithmetic_end(text, position) if is_first else 0
        if is_first and text.startswith("((", position) and not end and self._is_too_deep:
            end = find_closer_end(text, position + 1, ")")  # so that no text is searched too often
        if end:
            self._position = end
            stage.words += ["((", text[position + 2 : end - 2]]
        elif (
            not is_first
            and len(stage.words) == 1
            and re.match(r"\(\s{0,9}\)", text[position : position + 12])
        ):
            self._position = text.index(")", position) + 1
            self._top.function = stage.words[0]
            self._top.stage = PipelineStage()
        elif is_first:
            self._position += 1
            self._open("(")
        else:
            # an array's values, or something that no shell accepts
            self._position = find_closer_end(text, position + 1, ")")
            stage.words.append(text[position : self._position])

    def _read_word(self, is_first: bool) -> None:
        end = word_end(self._text, self._position)
        word = self._text[self._position : max(end, self._position + 1)]
        self._position = max(end, self._position + 1)
        stage = self._top.stage
        if is_first and word in OPENERS:
            self._open(word)
            if word == "case":
                self._skip_subject()
            return
        if is_first and word in CLOSERS:
            self._close()
            return
        if is_first and word in SEPARATORS:
            stage.is_inverted = stage.is_inverted or word in _INVERTING
            return
        if is_first and word == "function":
            self._read_function()
            return
        if stage.body is None:
            stage.words.append(word)

    def _read_function(self) -> None:
        blank = _BLANK.match(self._text, self._position)
        start = blank.end() if blank else self._position
        end = word_end(self._text, start)
        self._top.function = self._text[start:end]
        round_brackets = re.match(r"\s{0,9}\(\s{0,9}\)", self._text[end : end + 24])
        self._position = end + (round_brackets.end() if round_brackets else 0)

    def _skip_subject(self) -> None:
        """Skip the subject of a `case`, its `in`, and the first pattern."""
        for _ in range(2):
            blank = re.compile(r"(?:\s|\\\n)*").match(self._text, self._position)
            start = blank.end() if blank else self._position
            self._position = word_end(self._text, start)
            if self._text[start : self._position] not in {"in", ""}:
                self._top.header.append(self._text[start : self._position])
        self._skip_pattern()

    def _skip_pattern(self) -> None:
        match = re.compile(r"\s*(?!esac\b)\(?[^()\n;]{0,400}\)").match(self._text, self._position)
        if match:
            self._position = match.end()

    def _read_redirect(self, match: "re.Match[str]") -> None:
        text, operator = self._text, match[1]
        blank = _BLANK.match(text, match.end())
        start = blank.end() if blank else match.end()
        self._position = word_end(text, start)
        target = text[start : self._position]
        stage = self._top.stage
        stage.redirects.append(Redirect(operator, target))
        if operator in {"<<", "<<-"}:
            quoted = any(c in target for c in "'\"\\")
            delimiter = re.sub(r"['\"\\]", "", target)
            index = len(stage.redirects) - 1
            self._heredocs.append((stage, index, delimiter, quoted, operator == "<<-"))

    def _read_heredocs(self) -> None:
        for stage, index, delimiter, quoted, indented in self._heredocs:
            lines: list[str] = []
            while self._position < len(self._text):
                end = self._text.find("\n", self._position)
                end = len(self._text) if end < 0 else end
                line = self._text[self._position : end]
                self._position = end + 1
                line = line.lstrip("\t") if indented else line
                if line.rstrip("\r") == delimiter:
                    break
                lines.append(line)
            body = "".join(f"{line}\n" for line in lines)
            stage.redirects[index] = Redirect("<<", body, quoted)
        self._heredocs.clear()

    @property
    def _is_too_deep(self) -> bool:
        return len(self._frames) > MAX_NESTING

    def _open(self, opener: str) -> None:
        if self._is_too_deep:
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
            self._top.pipeline[-1].next_operator = operator
            self._top.pipelines.append(self._top.pipeline)
            self._top.pipeline = []


def assignment(raw: str) -> tuple[str, str] | None:
    """Return name and raw value of `NAME=VALUE`; None for any other word."""
    match = _ASSIGNMENT.match(raw)
    if match is None:
        return None
    return raw[: match.end()].rstrip("=+").partition("[")[0], raw[match.end() :]
