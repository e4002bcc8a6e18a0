"""Tests of the risk of an action, as its model stated it or the operator declared it."""

import pytest

from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.models.approval import (
    ActionRule,
    SecurityRisk,
    parse_action_rule,
    parse_tool_risk,
)
from resolver.security.analyzer import LLMSecurityAnalyzer

LOW, MEDIUM, HIGH, UNKNOWN = (
    SecurityRisk.LOW, SecurityRisk.MEDIUM, SecurityRisk.HIGH, SecurityRisk.UNKNOWN,
)  # fmt: skip


@pytest.mark.parametrize(
    ("action", "risk"),
    [
        (a.CmdRun(command="ls", security_risk=HIGH), HIGH),
        (a.CmdRun(command="rm -rf /", security_risk=LOW), LOW),
        (a.CmdRun(command="ls"), UNKNOWN),
        (a.FileEdit(command="undo_edit", path="x", security_risk=MEDIUM), MEDIUM),
        (a.FileRead(path="x"), LOW),
        (a.FileRead(path="x", security_risk=HIGH), LOW),
        (a.Think(content="hm"), LOW),
    ],
)
def test_the_stated_risk_counts_and_a_view_is_low(action: ActionBase, risk: SecurityRisk) -> None:
    assert LLMSecurityAnalyzer().security_risk(action) is risk


@pytest.mark.parametrize(
    ("server", "name", "risk"),
    [("issues", "list", LOW), ("issues", "delete", HIGH), ("docs", "list", UNKNOWN)],
)
def test_an_mcp_tool_has_the_declared_risk_whatever_the_model_says(
    server: str, name: str, risk: SecurityRisk
) -> None:
    analyzer = LLMSecurityAnalyzer({"issues": LOW, "issues/delete": HIGH, "list": HIGH})
    action = a.McpCall(server=server, name=name, security_risk=MEDIUM)
    assert analyzer.security_risk(action) is risk


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("execute_bash", ActionRule("execute_bash", None)),
        (" docs/* ", ActionRule("docs/*", None)),
        ("*(git push (x))", ActionRule("*", "git push (x)")),
        ("execute_bash (a\nb)", ActionRule("execute_bash", "a\nb")),
    ],
)
def test_a_rule_is_parsed_and_written(text: str, rule: ActionRule) -> None:
    assert parse_action_rule(text) == rule
    assert parse_action_rule(str(rule)) == rule


@pytest.mark.parametrize("text", ["", "git push", "execute_bash()", "(x)", "execute_bash(x"])
def test_a_rule_in_another_form_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not TOOL or TOOL\\(TEXT\\)"):
        parse_action_rule(text)


@pytest.mark.parametrize(
    ("tool", "text", "matches"),
    [
        ("execute_bash", "cd x && git  push\n", False),
        ("execute_bash", "cd x\ngit push --force", True),
        ("execute_bashes", "git push", False),
        ("execute_bash", "GIT PUSH", False),
    ],
)
def test_a_rule_looks_for_its_text_anywhere(tool: str, text: str, matches: bool) -> None:
    assert ActionRule("execute_bash", "git push").matches(tool, text) is matches


def test_a_rule_of_many_stars_is_quick_on_hostile_text() -> None:
    """The text is written by a model, and the controller waits for the answer."""
    assert not ActionRule("*", "a*a*a*a*a*a*b").matches("execute_bash", "a" * 20_000)


def test_declared_risks_are_parsed() -> None:
    assert parse_tool_risk("issues/delete = High") == ("issues/delete", HIGH)
    for text in ("issues", "=high", "issues=unknown", "issues=severe"):
        with pytest.raises(ValueError, match="low, medium, high"):
            parse_tool_risk(text)
