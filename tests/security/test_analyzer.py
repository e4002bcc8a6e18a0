"""Tests of the risk of an action, as its model stated it or the operator declared it."""

import pytest

from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.models.approval import (
    SecurityRisk,
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


def test_the_risk_of_an_mcp_tool_is_unknown_whatever_the_model_says() -> None:
    action = a.McpCall(server="issues", name="list", security_risk=LOW)
    assert LLMSecurityAnalyzer().security_risk(action) is UNKNOWN
