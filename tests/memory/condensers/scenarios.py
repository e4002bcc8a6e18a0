"""Logs to condense, and a condenser's model with scripted replies."""

from collections.abc import Sequence

from resolver.errors import LimitReached, ModelError
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.lifecycle import Condensation, ServiceReplied, Warned
from resolver.llm.base import ChatMessage, RecordedModel, ToolSpec
from resolver.memory.condensers.view import Condenser, LogCondenser
from resolver.memory.condensers.with_model import SummaryClient
from resolver.memory.conversation import ConversationMemory
from resolver.models.run import Completion
from tests.memory.logs import Log, started

SMALL = 5_000
"""About 20,000 characters."""


def filled(turns: int, size: int = 1000) -> Log:
    """A log of ordinary commands with long outputs."""
    log = started()
    for number in range(turns):
        result = o.CmdOutput(content=f"out {number} " + "x" * size, exit_code=number % 2)
        log.turn(a.CmdRun(command=f"run {number}"), result, text=f"say {number}")
    return log


def condense(log: Log, condenser: Condenser, max_tokens: int = SMALL) -> Condensation | None:
    """Return the condensation that is due now, and add it to the log."""
    condensation = LogCondenser(condenser, lambda: max_tokens).condense(log.state)
    if condensation is not None:
        log.add(condensation)
    return condensation


def sent_text(log: Log) -> str:
    """All that a model is sent now."""
    return str(ConversationMemory().messages(log.state))


Reply = str | ModelError | LimitReached


class Noting:
    """A condenser's model: gives its replies in order, then fails. Keeps what it was asked."""

    name = "notes"
    supports_vision = False
    supports_tools = True

    def __init__(self, *replies: Reply) -> None:
        self._replies: Sequence[Reply] = replies
        self.asked: list[str] = []

    def complete(
        self,
        messages: list[ChatMessage],
        tools: list[ToolSpec] | None = None,
    ) -> Completion:
        self.asked.append(messages[-1]["content"])
        if len(self.asked) > len(self._replies):
            raise ModelError("the endpoint is down")
        reply = self._replies[len(self.asked) - 1]
        if isinstance(reply, ModelError | LimitReached):
            raise reply
        return Completion(model="notes", text=reply)


def asker(log: Log, model: Noting) -> SummaryClient:
    """Asks the model; its replies and failures are in the log, as in a run."""

    def record(completion: Completion) -> None:
        log.add(ServiceReplied(service="condenser", completion=completion))

    def warn(about: str, message: str) -> None:
        log.add(Warned(about=about, message=message))

    return SummaryClient(RecordedModel(model, record), warn)


def warnings(log: Log) -> list[tuple[str, str]]:
    return [(e.about, e.message) for e in log.state.events if isinstance(e, Warned)]
