"""Logs for the tests of the memory package, written the way a run writes them."""

from resolver.events import actions as a
from resolver.events.base import EventBase, Source
from resolver.events.lifecycle import ModelReplied, SystemPrompt
from resolver.events.state import State
from resolver.models.run import Completion, RequestedToolCall


class Log:
    """Numbers events and keeps the state of them."""

    def __init__(self, *events: EventBase) -> None:
        self.state = State()
        for event in events:
            self.add(event)

    def add(self, event: EventBase) -> int:
        number = len(self.state.events)
        self.state.apply(event.model_copy(update={"id": number}))  # type: ignore[arg-type]
        return number

    def reply(self, *calls: tuple[str, str], text: str = "") -> int:
        """A model's reply; each call is (tool, arguments)."""
        requested = tuple(
            RequestedToolCall(id=f"c{i}", name=name, arguments=arguments)
            for i, (name, arguments) in enumerate(calls)
        )
        completion = Completion(model="m", text=text, tool_calls=requested)
        return self.add(ModelReplied(completion=completion))

    def turn(self, action: EventBase, result: EventBase | None, text: str = "") -> int:
        """A reply with one call, its action and (unless None) its observation."""
        reply = self.reply(("execute_bash", "{}"), text=text)
        cause = self.add(action.model_copy(update={"reply": reply}))
        if result is not None:
            self.add(result.model_copy(update={"cause": cause}))
        return reply


def task(content: str = "fix it") -> a.Message:
    return a.Message(content=content, source=Source.USER)


def started() -> Log:
    return Log(SystemPrompt(content="rules"), task())
