"""Hypothesis strategies for logs whose texts try to break out of a rendering."""

from hypothesis import strategies as st

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import EventBase, Source
from resolver.events.log import parse_logged_event
from resolver.models.run import Completion, PlanItem, RunLimits, RunState, Tokens
from tests.trace.sample import HOSTILE, started

ATOMS = (
    *HOSTILE, "`", "```", "~~~", "    ", "\n", "\r", "<", ">", "&", "</details>", "<details>",
    "</summary>", "<!--", "-->", "<script>", "@octocat", "#1", "![", "](", "\x1b[", "\u202e", "::",
    "##[", "\u2028", "$$", "|", "- ", "1. ", "\\", "\ud800", "🦀", "\u0000", "]]>", "<pre>",
)  # fmt: skip
text = st.lists(st.sampled_from(ATOMS) | st.text(max_size=8), max_size=8).map("".join)
short = st.integers(-3, 40)
data = st.recursive(
    text | short | st.booleans() | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(text, inner),
    max_leaves=4,
)
floats = st.floats(width=32)

actions = st.one_of(
    st.builds(a.CmdRun, command=text, thought=text, is_input=st.booleans(), reply=short),
    st.builds(a.IPythonRunCell, code=text, thought=text, reply=short),
    st.builds(a.FileRead, path=text, view_range=st.none() | st.tuples(short, short)),
    st.builds(a.FileWrite, path=text, content=text),
    st.builds(
        a.FileEdit,
        command=st.sampled_from(["str_replace", "insert", "undo_edit"]),
        path=text,
        old_str=st.none() | text,
        new_str=st.none() | text,
        insert_line=st.none() | short,
    ),
    st.builds(a.McpCall, server=text, name=text, arguments=st.dictionaries(text, data)),
    st.builds(a.Recall, query=text),
    st.builds(a.Delegate, agent=text, task=text),
    st.builds(
        a.PlanUpdate,
        items=st.lists(st.builds(PlanItem, title=text), max_size=3).map(tuple),
    ),
    st.builds(a.Message, content=text, source=st.sampled_from(Source)),
    st.builds(a.Think, content=text),
    st.builds(a.Finish, message=text, task_completed=st.booleans()),
    st.builds(a.Reject, reason=text),
    st.builds(a.ChangeAgentState, state=st.sampled_from(RunState), reason=text),
    st.builds(a.CondensationRequest),
    st.builds(a.Invalid, reason=text, thought=text),
)
observations = st.one_of(
    st.builds(o.CmdOutput, content=text, exit_code=st.none() | short, seconds=floats),
    st.builds(o.IPythonOutput, content=text, error=st.booleans(), images=st.tuples(text)),
    st.builds(o.FileReadResult, path=text, content=text),
    st.builds(o.FileWriteResult, path=text, content=text),
    st.builds(o.FileEditResult, path=text, diff=text, content=text),
    st.builds(o.McpResult, content=text, structured=st.none() | st.dictionaries(text, data)),
    st.builds(o.RecallResult, content=text, sources=st.tuples(text)),
    st.builds(o.DelegateResult, content=text, outputs=st.dictionaries(text, data)),
    st.builds(o.ErrorObservation, content=text, code=text),
    st.builds(o.AgentStateChanged, state=st.sampled_from(RunState), reason=text),
    st.builds(o.PlanUpdated, content=text),
    st.builds(o.Null),
)
completions = st.builds(
    Completion,
    model=text,
    text=text,
    reasoning=text,
    tokens=st.builds(Tokens, input=short, output=short),
    cost=st.none() | floats,
)
others = st.one_of(
    text.map(lambda t: started(title=t, repository=t, login=t, instruction=t, model=t)),
    st.builds(life.SystemPrompt, content=text),
    st.builds(life.ModelReplied, completion=completions),
    st.builds(life.ModelRetried, attempt=short, wait=floats, reason=text),
    st.builds(life.Condensation, forgotten=st.tuples(short), summary=text),
    st.builds(life.Warned, about=text, message=text),
    st.builds(life.ReplayDiverged, recorded_id=short, field=text, recorded=text, found=text),
    st.builds(life.Resumed, version=text, run=text, reason=text, by=text),
    st.builds(life.LimitsExtended, limits=st.builds(RunLimits, max_budget=floats), by=text),
    st.builds(
        life.DelegateEvent,
        delegate=st.integers(0, 6),
        event=st.fixed_dictionaries(
            {
                "id": short,
                "kind": st.sampled_from(["think", "cmd_run", "new"]),
                "content": data,
                "command": text,
            }
        ),
    ),
    st.builds(life.StageCompleted, stage=text, detail=text, seconds=floats),
    st.builds(life.Egress, host=text, port=short, allowed=st.booleans(), reason=text),
    st.builds(
        lambda k, x: parse_logged_event({"kind": f"new_{k}", "content": x, "more": x}), text, data
    ),
)


@st.composite
def any_events(draw: st.DrawFn, max_size: int = 12) -> list[EventBase]:
    """Any events in any order, with any causes, at any times."""
    drawn = draw(st.lists(actions | observations | others, max_size=max_size))
    common = st.fixed_dictionaries(
        {
            "id": short,
            "cause": st.none() | short,
            "timestamp": st.datetimes(timezones=st.timezones()),
        }
    )
    return [e.model_copy(update={"id": i, **draw(common)}) for i, e in enumerate(drawn)]
