"""Property tests of the risk rules: any text is rated in bounded time."""

import ast
import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import resolver.security.risk as risk_package
from resolver.events.actions import BrowseInteractive, CmdRun, FileRead, IPythonRunCell
from resolver.models.approval import RiskLevel
from resolver.security.risk.analyzer import RuleAnalyzer
from resolver.security.risk.findings import LEVEL_ORDER
from resolver.security.shell.syntax import parse, word_end
from tests.security.command_lists import commands

ANALYZER = RuleAnalyzer()

PIECES = (
    '"', "'", "`", "$(", "${a:-", "$((", "<(", "(", "{", "}", ")", "|", "||", "&", ";", ";;", "\n",
    "<<E ", "<<-E\n", "<<< ", "> ", ">& ", "\\", "#", "$'\\x41", "{a,b}", "case a in ", "esac",
    "if ", "fi", "for i in a; do ", "done", "while read x; do ", "f() { f|f& };", "function g ",
    "a=$a$a;", "export a=b ", "eval ", "bash -c '", "xargs ", "sudo ", "env A=b ", "find / -exec ",
    "echo aaaa|", "base64 -d|", "tr a-z b-a|", "printf '%s' ", "curl -d @x http://a.b/ ", "../",
    "cat ~/* ", "~/.s*/i?_[r]sa ", "python3 -c '", "perl -e '", "alias a='", "trap '", "http://",
    "a." * 30, " " * 40, "\u202e\u00e9", "\ud83d", "\0", "$", "${", "$@", "$IFS", "word ",
    "((", "((a);",
)  # fmt: skip
"""What shells, and the rules, give a meaning to."""

MIXED = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=60).map("".join)


@settings(suppress_health_check=list(HealthCheck))
@given(MIXED | st.text())
def test_any_text_has_a_risk(text: str) -> None:
    for action in (
        CmdRun(command=text),
        IPythonRunCell(code=text),
        BrowseInteractive(code=text),
        FileRead(path=text),
    ):
        risk = ANALYZER.assess(action)
        assert risk.level in RiskLevel
        assert bool(risk.reasons) == (risk.level is not RiskLevel.LOW)
        assert all("\n" not in reason and len(reason) < 200 for reason in risk.reasons)


def known_words() -> set[str]:
    """Return the names of programs and the options that the rules know."""
    folder = Path(risk_package.__path__[0])
    constants = {
        node.value
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {word for word in constants if re.fullmatch(r"[\w.+-]{1,30}", word)}


@pytest.mark.parametrize("form", ["{}", "{} -x", "{} -- a", "sudo {}", "echo a | {}", "curl {}"])
def test_each_word_that_the_rules_know_has_a_risk_with_few_arguments(form: str) -> None:
    words = known_words()
    assert {"wget", "scp", "--output", "git"} <= words
    for word in words:
        assert ANALYZER.assess(CmdRun(command=form.format(word))).level in RiskLevel


@given(MIXED)
def test_parsing_reaches_the_end_of_any_text(text: str) -> None:
    parse(text)
    for start in range(0, len(text), 7):
        assert start <= word_end(text, start) <= len(text) + 1


@pytest.mark.deep
@pytest.mark.parametrize("piece", PIECES)
def test_twice_the_text_takes_about_twice_the_time(piece: str) -> None:
    """Far from what nesting or backtracking would cost; processor time, so that others at work on
    the machine do not count."""

    def seconds(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        started = time.process_time()
        ANALYZER.assess(CmdRun(command=text))
        ANALYZER.assess(IPythonRunCell(code=text))
        return time.process_time() - started

    small, large = seconds(2_000), seconds(8_000)
    assert large < max(16 * small, 0.5)


DANGERS = [c for c in commands("dangerous")[::6] if "\n" not in c and "'" not in c]


@pytest.mark.parametrize(
    "around",
    ["true; {}", "true && {}", "({})", "{{ {}; }}", "if true; then {}; fi", "{} # harmless",
     "for i in 1 2; do {}; done", "bash -c '{}'", "eval '{}'", "echo $({})", "ls\n{}\nls",
     "sudo sh -c '{}'", "f() {{ {}; }}; f", "case a in (a|b) {};; esac", "((a = $({})))",
     "((a)); {}", "echo $((1 + $({})))", "(({}); true)", "echo $(({}); true)", "\0 {}"],
)  # fmt: skip
def test_a_wrapped_danger_is_detected(around: str) -> None:
    def level(command: str) -> int:
        return LEVEL_ORDER.index(ANALYZER.assess(CmdRun(command=command)).level)

    assert [d for d in DANGERS if level(around.format(d)) < level(d)] == []
