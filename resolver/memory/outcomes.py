"""What a command line was for and what came of it, read off its text and its output.

Rules of thumb; what a check is stands in `resolver.shell.checkers`.
"""

import re
import shlex

from resolver.shell.checks import read_checks

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_SEPARATOR = re.compile(r"&&|\|\||\|&?|;|\n|(?<![<>&])&(?![>&])")
_QUOTED = re.compile(r"\\[\s\S]|'[^']*'|\"(?:\\[\s\S]|[^\"\\])*\"")
"""What is quoted, and what is escaped outside of quotes: an escaped quote opens none."""

_REDIRECTED = re.compile(r"(?<![<>=-])(?:\d|&)?>{1,2}\|?\s*(&\d|[^\s;&|<>()]+)(?!\s*\])")

_ASSIGNED = re.compile(r"[A-Za-z_]\w*=\S*\s+")
_WRAPPER = re.compile(
    r"(?:(?:sudo|env|time|nice|command|exec|xvfb-run(?: -a)?|stdbuf -\S+"
    r"|(?:poetry|uv|pdm|pipenv|hatch|rye|conda|coverage) run(?: -m)?|bundle exec|pnpm exec"
    r"|npx|bunx|timeout(?: -\S+)* \S+|python[\d.]*(?: -[A-Zbquv]+)* -m)\s+)"
)
_WRITERS = re.compile(
    r"(?P<paths>sed(?= .*-\w*i)|perl(?= .*-\w*i)|tee|mv|cp|rm|touch|truncate|ln|dos2unix|unlink"
    r"|git (?:mv|rm|restore|checkout --|clean))\s"
    r"|git (?:apply|am|checkout|reset|stash|revert|merge|rebase|cherry-pick|pull|commit|switch)\b"
    r"|patch\s|black\s|isort\s|gofmt .*-w|goimports .*-w|rustfmt\s|ruff format"
    r"|prettier .*(?:-w|--write)"
    r"|.*--fix\b|cargo (?:fmt|fix|add|update)|go (?:fmt|mod|get|generate)"
    r"|npm (?:i|install|uninstall)\b"
    r"|yarn add|pnpm add|poetry add|uv add"
)
_TAKES_SCRIPT = re.compile(r"-\w*[ef]$|--expression$")
_OUTSIDE = re.compile(r"/(?:tmp|dev|var/tmp|proc)\b|&\d")

_WRITING_CODE = re.compile(
    r"\b(?:create_file|edit_file_by_replace|insert_content_at_line|append_file)"
    r"\(\s*(['\"])(.{1,500}?)\1"
    r"|open\(\s*(['\"])([^'\"]+)\3\s*,\s*['\"][wax]"
    r"|Path\(\s*(['\"])([^'\"]+)\5\s*\)\.write_(?:text|bytes)"
)
_RUNS_PYTHON = re.compile(r"\bpython[\d.]* (?:-c|-(?=[\s<])|<<)")

_PIPE = re.compile(r"(?<!\|)\|(?!\|)")

_FAILING = re.compile(
    r"^\s*(?:FAILED\b|ERROR\b|FAIL\b|FAIL:|--- FAIL|not ok\b|E   |✕|✗|×|●|[^\s:]+:\d+(?::\d+)?: "
    r"error|error(?:\[|:| TS)|[\w.]*(?:Error|Exception)\b:|thread '.*panicked|Tests? failed)",
)
MOST_FAILING = 6
LINE = 160
"""Characters of one quoted line."""

MOST_READ = 20_000
"""Characters of a command line that are looked at, here-documents left out."""

MOST_CODE = 50_000
"""The same of Python code."""

LONGEST = 400
"""The same of one simple command."""


def _without_documents(command: str) -> str:
    """The command line without the bodies of its here-documents."""
    lines: list[str] = []
    ends: list[str] = []
    for line in command.split("\n"):
        if ends:
            ends = ends[1:] if line.strip() == ends[0] else ends
            continue
        lines.append(line)
        ends = [found.group(2) for found in _HEREDOC.finditer(line)]
    return "\n".join(lines)


def _simple_commands(command: str) -> list[str]:
    text = _without_documents(command)[:MOST_READ]
    kept: list[str] = []

    def hide(quoted: re.Match[str]) -> str:
        kept.append(quoted.group())
        return f"\x00{len(kept) - 1}\x00"

    parts = _SEPARATOR.split(_QUOTED.sub(hide, text))
    shown = (re.sub(r"\x00(\d+)\x00", lambda m: kept[int(m.group(1))], part) for part in parts)
    return [" ".join(part.split()).lstrip("({! ").rstrip(")} ") for part in shown if part.strip()]


def _bare(command: str) -> str:
    """The command without what it is wrapped in."""
    before = ""
    while command != before:
        before = command
        for pattern in (_ASSIGNED, _WRAPPER):
            found = pattern.match(command)
            command = command[found.end() :] if found else command
    return command


def checks_in(command: str) -> tuple[str, ...]:
    """The parts of a command line that test, build or lint, each in one form for all its variants:
    `cd x && CI=1 pytest -q | tail` is `pytest -q`."""
    return tuple(dict.fromkeys(check[:LONGEST] for check in read_checks(command).checks))


def is_piped(command: str) -> bool:
    """Whether an exit code of 0 may be another program's than the check's: that of `tail`."""
    bare = _QUOTED.sub("", _without_documents(command)[:MOST_READ])
    return bool(_PIPE.search(bare)) and "pipefail" not in bare


def ends_as_its_check(command: str) -> bool:
    """Whether the exit code of a command line is that of its checks, whatever it is."""
    read = read_checks(command)
    return read.vouched and read.alone


def changed_by(command: str) -> tuple[str, ...] | None:
    """Paths that the command line may have written; empty where it changes files that it does not
    name (`git stash`), None when it only looks."""
    paths: list[str] = []
    writes = False
    for part in _simple_commands(command):
        paths += _REDIRECTED.findall(_QUOTED.sub("", part))
        bare = _bare(_REDIRECTED.sub("", part)).strip()[:LONGEST]
        found = _WRITERS.match(bare)
        named = _arguments(bare, found.group("paths")) if found and found.group("paths") else []
        paths += named
        writes = writes or (found is not None and not named)
    plain = [p for p in (p.strip("'\"") for p in paths) if p and not _OUTSIDE.match(p)]
    if _RUNS_PYTHON.search(command):
        plain += written_by(command)
    return tuple(dict.fromkeys(plain)) if plain or writes else None


def written_by(code: str) -> tuple[str, ...]:
    """Paths that Python code names where it writes files."""
    found = _WRITING_CODE.finditer(code[:MOST_CODE])
    paths = (match.group(2) or match.group(4) or match.group(6) for match in found)
    return tuple(dict.fromkeys(path for path in paths if not _OUTSIDE.match(path)))


def _arguments(command: str, name: str) -> list[str]:
    """The paths among the arguments; a script of sed or perl is none, and what is copied stays."""
    try:
        words = shlex.split(command)[len(name.split()) :]
    except ValueError:  # a quote that has no end
        return []
    paths: list[str] = []
    script_next = name == "sed" and not any(_TAKES_SCRIPT.match(word) for word in words)
    for word in words:
        if word.startswith("-") and len(word) > 1:
            script_next = script_next or bool(_TAKES_SCRIPT.match(word))
        elif script_next:
            script_next = False
        else:
            paths.append(word)
    return paths[-1:] if name in {"cp", "ln"} else paths


def outcome_of(output: str, room: int = 600) -> str:
    """The lines of an output that say how a check ended: what failed, and the last words."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    failing = [line for line in lines if _FAILING.match(line)]
    told = [line[:LINE] for line in failing[:MOST_FAILING]]
    if len(failing) > MOST_FAILING:
        told.append(f"(and {len(failing) - MOST_FAILING} more such lines)")
    told += [line[:LINE] for line in lines[-2:] if line[:LINE] not in told]
    return "\n".join(told)[:room]
