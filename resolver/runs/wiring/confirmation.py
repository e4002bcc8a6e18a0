"""Puts the rules about risky actions together from the settings: who judges, who is asked."""

from dataclasses import dataclass

from resolver.config.settings import Settings
from resolver.controller.confirmation import Analyzer, Confirmation, Tell, notify_nobody
from resolver.controller.judge import JudgingAnalyzer
from resolver.events.stream import EventStream
from resolver.github.text.invisible import with_invisible_shown
from resolver.models.approval import tool_risk
from resolver.runs.wiring.models import ModelOn
from resolver.security.risk.analyzer import RuleAnalyzer

SERVICE = "judge"


@dataclass(frozen=True)
class ApprovalRequester:
    """seconds: how long a run waits for a person. tell: shows the person what waits."""

    seconds: float = 0.0
    tell: Tell = notify_nobody


def open_confirmation(
    settings: Settings, root: str, model_on: ModelOn, waiting: ApprovalRequester
) -> Confirmation:
    """root: the repository's folder in the sandbox."""
    rules = RuleAnalyzer(root, dict(tool_risk(text) for text in settings.tool_risks))

    def analyzer_of(stream: EventStream) -> Analyzer:
        if not settings.risk_judge:
            return rules
        return JudgingAnalyzer(rules, model_on(stream, SERVICE), stream)

    return Confirmation(
        policy=settings.confirmation,
        on_high=settings.on_high,
        wait=waiting.seconds,
        # what a model has said once is not asked again after a kill
        record_all=settings.record_all_risks or settings.risk_judge,
        analyzers=analyzer_of,
        shown=with_invisible_shown,
        tell=waiting.tell,
    )
