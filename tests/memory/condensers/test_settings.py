"""Tests of the setting `condenser`."""

from resolver.config.settings import Settings, load_settings
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.lifecycle import Condensation, ServiceReplied
from resolver.events.state import State
from resolver.events.stores import MemoryStore
from resolver.events.stream import EventStream
from resolver.llm.base import Model, RecordedModel
from resolver.models.run import Completion
from resolver.runs.wiring.agents import open_condensers
from tests.memory.condensers.scenarios import Noting
from tests.memory.logs import Log, started


def made(environment: dict[str, str]) -> tuple[Condensation | None, list[str]]:
    """Return a long run as condensed with these settings, and the requests to its model."""
    settings: Settings = load_settings({}, {"LLM_MODEL": "scripted:x.yml", **environment})
    stream, asked = EventStream(MemoryStore()), Noting("NOTES")

    def open_model(on: EventStream, service: str = "agent", **_: str) -> Model:
        def record(completion: Completion) -> None:
            on.add(ServiceReplied(service=service, completion=completion))

        return RecordedModel(asked, record)

    log: Log = started()
    for number in range(120):
        result = o.CmdOutput(content="x" * 700, exit_code=0)
        log.turn(a.CmdRun(command=f"ls {number}"), result)
    state = State.fold(log.state.events)
    return open_condensers(settings, open_model, ())(stream).condense(state), asked.asked


def test_a_small_context_window_is_the_limit_and_a_model_writes_notes_for_the_default() -> None:
    found, asked = made({"LLM_MODEL": "openai/gpt-4"})
    assert found is not None and found.forgotten
    assert found.notes == "NOTES" and len(asked) == 1
