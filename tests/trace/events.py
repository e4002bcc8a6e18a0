"""Hypothesis strategies for logs whose texts try to break out of a rendering."""

from hypothesis import strategies as st

from resolver.events.base import EventBase
from tests.events import strategies

text = strategies.text | st.just("half a \ud800 pair")


@st.composite
def any_events(draw: st.DrawFn, max_size: int = 8) -> list[EventBase]:
    """Any events in any order, with any causes."""
    drawn = draw(strategies.logs(max_size=max_size))
    causes = st.none() | st.integers(-3, 40)
    return [event.model_copy(update={"cause": draw(causes)}) for event in drawn]
