"""Builds the rules for risky actions from the settings: how risk is judged and who is asked."""

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
    options = settings.confirmation_options
    rules = RuleAnalyzer(root, dict(tool_risk(text) for text in options.tool_risks))

    def analyzer_of(stream: EventStream) -> Analyzer:
        if not options.judge:
            return rules
        return JudgingAnalyzer(rules, model_on(stream, SERVICE), stream)

    return Confirmation(
        policy=settings.confirmation,
        on_high=options.on_high,
        wait=waiting.seconds,
        # a model's judgement is logged, so that a resumed run does not ask and pay for it again
        record_all=options.judge,
        analyzers=analyzer_of,
        shown=with_invisible_shown,
        tell=waiting.tell,
    )
