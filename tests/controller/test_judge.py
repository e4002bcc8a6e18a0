"""Tests of a model's risk rating in addition to the rules."""

import pytest

from resolver.controller.confirmation import ModelRiskAnalyzer
from resolver.errors import ModelError
from resolver.events.actions import CmdRun, FileRead
from resolver.events.lifecycle import Warned
from resolver.llm.replay import ReplayModel
from resolver.models.approval import RiskLevel
from resolver.models.run import Completion
from resolver.security.risk.analyzer import RuleAnalyzer
from resolver.security.risk.findings import Risk
from tests.controller.scenario import Scenario

HIGH = 'I think:\n{"level": "high", "reason": "looks\\nodd"}'


def judged(command: str, *replies: Completion | ModelError) -> tuple[Risk, Scenario]:
    scenario = Scenario()
    analyzer = ModelRiskAnalyzer(RuleAnalyzer(), ReplayModel(replies, name="m"), scenario.stream)
    return analyzer.assess(CmdRun(command=command)), scenario


def said(text: str) -> Completion:
    return Completion(model="m", text=text)


def test_the_model_can_raise_a_risk_and_its_opinion_is_labeled() -> None:
    risk, _ = judged("make deploy", said(HIGH))
    assert risk == Risk(RiskLevel.HIGH, ("judge: looks odd (a model's opinion)",))


def test_the_model_can_not_lower_a_risk_and_is_not_asked_about_a_high_one() -> None:
    risk, _ = judged("git push", said('{"level": "low"}'))
    assert risk.level is RiskLevel.MEDIUM
    assert judged("rm -rf /")[0].level is RiskLevel.HIGH


@pytest.mark.parametrize(
    "reply", [ModelError("no answer"), said("fine, go on"), said('{"level": "none"}')]
)
def test_without_a_judges_answer_the_rules_count_and_the_log_says_so(
    reply: Completion | ModelError,
) -> None:
    risk, scenario = judged("git push", reply)
    assert risk.level is RiskLevel.MEDIUM
    [warned] = scenario.of(Warned)
    assert warned.about == "judge"
    assert "only the rules apply" in warned.message


def test_views_of_files_are_left_to_the_rules() -> None:
    scenario = Scenario()
    analyzer = ModelRiskAnalyzer(RuleAnalyzer(), ReplayModel((), name="m"), scenario.stream)
    assert analyzer.assess(FileRead(path="src/a.py")) == Risk()
    assert not scenario.of(Warned)
