"""Hypothesis strategies for events."""

from hypothesis import strategies as st

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import EventBase, Source, ToolCall
from resolver.model import Completion, RunState, Tokens

text = st.text(max_size=60)
tool_call = st.none() | st.builds(ToolCall, id=text, name=text, arguments=text)
common = {"source": st.sampled_from(Source), "tool_call": tool_call}

actions = st.one_of(
    st.builds(a.CmdRun, command=text, timeout=st.none() | st.floats(0, 9), **common),
    st.builds(a.IPythonRunCell, code=text, **common),
    st.builds(a.FileRead, path=text, view_range=st.none() | st.tuples(st.integers(), st.just(9))),
    st.builds(a.FileWrite, path=text, content=text),
    st.builds(a.FileEdit, command=st.sampled_from(["insert"]), path=text, new_str=text),
    st.builds(a.Message, content=text, **common),
    st.builds(a.Think, content=text),
    st.builds(a.McpCall, server=text, name=text, arguments=st.dictionaries(text, st.integers())),
    st.builds(a.Finish, message=text, task_completed=st.booleans()),
    st.builds(a.Invalid, reason=text),
)  # fmt: skip
completions = st.builds(
    Completion,
    model=text,
    text=text,
    tokens=st.builds(Tokens, input=st.integers(0, 99), output=st.integers(0, 99)),
    cost=st.none() | st.floats(0, 1),
)
others = st.one_of(
    st.builds(life.ModelReplied, completion=completions),
    st.builds(life.Warned, about=text, message=text),
    st.builds(o.AgentStateChanged, state=st.sampled_from(RunState), reason=text),
    st.builds(o.ErrorObservation, content=text, code=text),
)
observations = st.one_of(
    st.builds(o.CmdOutput, content=text, exit_code=st.none() | st.integers(0, 255)),
    st.builds(o.FileEditResult, path=text, diff=text),
    st.builds(o.Null),
)


@st.composite
def logs(draw: st.DrawFn, max_size: int = 25) -> list[EventBase]:
    """Events as a stream would number them; an observation answers an earlier event."""
    drawn = draw(st.lists(st.one_of(actions, observations, others), max_size=max_size))
    numbered = []
    for i, event in enumerate(drawn):
        cause = (
            draw(st.integers(0, i - 1))
            if i and event.__class__.__module__.endswith("observations")
            else None
        )
        numbered.append(event.model_copy(update={"id": i, "cause": cause}))
    return numbered
