"""Tests of showing a delegate's steps below the step that started it."""

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import EventBase
from resolver.models.run import RunLimits, RunState
from resolver.trace.markdown import CommentTrace, render_markdown
from resolver.trace.text import live_line, render_text
from resolver.trace.view import note_of


def delegated(*inner: EventBase) -> list[EventBase]:
    """Return a log in which action 0 has delegated to an agent with these events."""
    log: list[EventBase] = [a.Delegate(id=0, agent="CodeActAgent", task="find the callers")]
    for number, event in enumerate(inner):
        data = event.model_copy(update={"id": number}).model_dump(mode="json", exclude_none=True)
        log.append(life.DelegateEvent(id=len(log), delegate=0, event=data))
    log.append(
        o.DelegateResult(id=len(log), cause=0, content="two of them", state=RunState.FINISHED)
    )
    return log


WORK = (
    a.CmdRun(command="rg parse"),
    o.CmdOutput(content="main.py: parse(x)", exit_code=0, cause=0),
    a.Finish(message="two callers"),
)


def test_markdown_and_text_contain_the_delegates_steps() -> None:
    log = delegated(*WORK)
    assert "What it did (2 steps)" in render_markdown(log)
    for shown in (render_markdown(log), render_text(log), CommentTrace(log).render(20_000)):
        assert "rg parse" in shown
        assert "main.py: parse(x)" in shown
        assert shown.index("rg parse") < shown.index("two of them")


def test_a_live_line_of_a_delegate_is_indented() -> None:
    assert live_line(delegated(*WORK)[1]) == "    > Run rg parse"


def test_resumptions_and_extensions_are_shown_with_the_requester() -> None:
    resumed = note_of(life.Resumed(version="1", run="r2", reason="it was killed", by="maria"))
    granted = note_of(life.LimitsExtended(limits=RunLimits(max_iterations=120), by="maria"))
    assert resumed is not None
    assert granted is not None
    assert resumed.text == "The run continues as r2, requested by maria: it was killed"
    assert granted.text == "Limits extended by maria: 120 iterations, $5.00, 1 h 0 min in all"
