"""Risk assessment of actions by a model, in addition to the rules.

The model can raise a risk and never lowers one, because it reads text of another model, which may
contain a prompt injection.
"""

import json
import re
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError

from resolver.config.templates import render
from resolver.errors import ModelError
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.events.lifecycle import Warned
from resolver.events.stream import EventStream
from resolver.llm.base import Model
from resolver.models.approval import RiskLevel
from resolver.security.risk.analyzer import RuleAnalyzer
from resolver.security.risk.findings import Risk, gravest, shown

JUDGED = (a.CmdRun, a.IPythonRunCell, a.BrowseURL, a.BrowseInteractive, a.McpCall)
"""The actions that the model assesses. Views and edits of files are left to the rules."""

LONGEST = 8_000
"""Maximum length of an action in the request, in characters.

Of a longer one the head and the tail are sent.
"""

_OBJECT = re.compile(r"\{[^{}]{0,4000}\}")
_OWN_FIELDS = frozenset(ActionBase.model_fields)


class _Opinion(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    level: RiskLevel
    reason: str = ""


@dataclass(frozen=True)
class JudgingAnalyzer:
    """Assesses actions by the rules and, if they do not result in high risk, by a model.

    stream: gets a warning if the model could not be asked; then only the rules count.
    """

    rules: RuleAnalyzer
    model: Model
    stream: EventStream

    def assess(self, action: ActionBase, cwd: str = "") -> Risk:
        """Return the higher of the two risks, with the reasons of both."""
        risk = self.rules.assess(action, cwd)
        if risk.level is RiskLevel.HIGH or not isinstance(action, JUDGED):
            return risk
        opinion = self._opinion(action)
        if opinion is None or opinion.level is RiskLevel.LOW:
            return risk
        told = f"judge: {shown(opinion.reason) or 'no reason given'} (a model's opinion)"
        return Risk(gravest(risk.level, opinion.level), (*risk.reasons, told))

    def _opinion(self, action: ActionBase) -> _Opinion | None:
        """Return the model's opinion, None (with a warning in the log) if there is none."""
        own = action.model_dump(mode="json", exclude=set(_OWN_FIELDS), exclude_none=True)
        text = json.dumps(own, ensure_ascii=False)
        if len(text) > LONGEST:
            text = f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"
        messages = [
            {"role": "system", "content": render("agent/judge.md.j2").strip()},
            {"role": "user", "content": text},
        ]
        try:
            reply = self.model.complete(messages)
        except ModelError as error:
            self._warn(f"the judge could not be asked, so the rules alone count: {error.what}")
            return None
        # Models reason before they decide, so the last valid object is the answer.
        for found in reversed(_OBJECT.findall(reply.text)):
            try:
                return _Opinion.model_validate_json(found)
            except ValidationError:
                continue
        self._warn("the judge's answer could not be read, so the rules alone count")
        return None

    def _warn(self, message: str) -> None:
        self.stream.add(Warned(about="judge", message=message))
