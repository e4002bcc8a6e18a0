"""Builds the rules for risky actions from the settings: how risk is judged and who is asked."""

from dataclasses import dataclass

from resolver.config.settings import Settings
from resolver.controller.confirmation import (
    Analyzer,
    Confirmation,
    JudgingAnalyzer,
    Tell,
    notify_nobody,
)
from resolver.events.stream import EventStream
from resolver.github.text.markdown import with_invisible_shown
from resolver.models.approval import tool_risk
from resolver.runs.wiring.models import ModelOn
from resolver.security.risk.analyzer import RuleAnalyzer

SERVICE = "judge"


@dataclass(frozen=True)
class ApprovalRequester:
    """Asks a person to approve an action.

    seconds: how long a run waits for the answer. tell: shows the pending action to the person.
    """

    seconds: float = 0.0
    tell: Tell = notify_nobody


def open_confirmation(
    settings: Settings, root: str, model_on: ModelOn, waiting: ApprovalRequester
) -> Confirmation:
    """Return the confirmation rules of a run.

    root: the repository's folder in the sandbox.
    """
    rules = RuleAnalyzer(root, dict(tool_risk(text) for text in settings.tool_risks))

    def analyzer_of(stream: EventStream) -> Analyzer:
        if not settings.risk_judge:
            return rules
        return JudgingAnalyzer(rules, model_on(stream, SERVICE), stream)

    return Confirmation(
        policy=settings.confirmation,
        on_high=settings.on_high,
        wait=waiting.seconds,
        # a model's judgement is logged, so that a resumed run does not ask and pay for it again
        record_all=settings.record_all_risks or settings.risk_judge,
        analyzers=analyzer_of,
        shown=with_invisible_shown,
        tell=waiting.tell,
    )
