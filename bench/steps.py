"""What a step costs beside the model and the tool: controller, conversation, log on disk.

    python bench/steps.py [--steps 50 200 500 1000] [--long 10000]
        [--peer-python openhands=/PATH/python --peer-python mini=/PATH/python]

The model answers in the process, the tool costs nothing, an observation has 1 kB, every event is
durable. Milliseconds a step, by the wall and by the processor (which other work on the machine and
the disk do not touch): the median of the 25 before the named one. The peers run the same in
their own environments, with what they keep on disk; see peers/.
"""

import argparse
import json
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from resolver.agents.codeact import CodeActAgent
from resolver.controller.controller import AgentController, ControllerParts
from resolver.events.actions import Message, SandboxAction
from resolver.events.base import Source
from resolver.events.lifecycle import LimitsExtended, ModelReplied
from resolver.events.observations import CmdOutput, Observation
from resolver.events.state import State
from resolver.events.stores import JsonlStore
from resolver.events.stream import EventStream, utc_now
from resolver.llm.base import ChatMessage, RecordedModel, ToolSpec
from resolver.memory.condensers.rules import ConversationWindow, ObservationMasking, Pipeline
from resolver.memory.condensers.view import LogCondenser
from resolver.models.run import Completion, RequestedToolCall, RunLimits
from resolver.security.redaction import Redactor

PEERS = Path(__file__).parent / "peers"
WINDOW = 25
CLOCKS = ("wall", "cpu")
Pair = tuple[float, float]


class ScriptedModel:
    """Asks for one command after the other, then finishes."""

    name = "scripted"
    supports_tools = True
    supports_vision = False

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._at = 0

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        """The next reply. That it is asked with all messages is what is measured."""
        assert messages
        assert tools
        self._at += 1
        done = self._at > self._steps
        name = "finish" if done else "execute_bash"
        arguments = {"message": "done"} if done else {"command": f"make part-{self._at}"}
        call = RequestedToolCall(id=f"c{self._at}", name=name, arguments=json.dumps(arguments))
        return Completion(model="scripted", tool_calls=(call,), cost=0.0)


class FreeSandbox:
    """Answers at once with a text of 1 kB that is new each time; notes when it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, float]] = []

    def execute(self, action: SandboxAction) -> Observation:  # noqa: ARG002 - whatever it is
        self.asked.append((time.perf_counter(), time.process_time()))
        number = len(self.asked)
        text = " ".join(f"{number:x}-{word}" for word in "abcdefghijklmnopqrstuvwxyz" * 8)
        return CmdOutput(content=text[:1000], exit_code=0)


def run(steps: int, folder: Path) -> tuple[list[Pair], int, int]:
    """Wall and processor milliseconds of each step, events and bytes of the log."""
    store = JsonlStore(folder / "events.jsonl")
    stream, state = EventStream(store, Redactor(("a-secret-of-the-bench",))), State()
    stream.subscribe("state", state.apply, essential=True)
    limits = RunLimits(max_iterations=steps + 10, max_budget=1.0, max_time=86_400)
    stream.add(LimitsExtended(limits=limits))

    def record(completion: Completion) -> None:
        stream.add(ModelReplied(completion=completion))

    model = RecordedModel(ScriptedModel(steps), record)
    agent = CodeActAgent(model, "tools")
    sandbox = FreeSandbox()
    condensing = LogCondenser(Pipeline(ObservationMasking(), ConversationWindow()))
    controller = AgentController(
        agent, stream, state, ControllerParts(sandbox, lambda _: condensing, utc_now)
    )
    stream.add(agent.system_prompt())
    stream.add(Message(content="Go on until you are done.", source=Source.USER))
    outcome = controller.run()
    assert outcome.state.value == "finished", outcome.reason
    gaps = zip(sandbox.asked, sandbox.asked[1:], strict=False)
    times = [(1000 * (end[0] - start[0]), 1000 * (end[1] - start[1])) for start, end in gaps]
    return times, len(store), (folder / "events.jsonl").stat().st_size


def at(times: list[Pair], step: int, clock: int) -> float:
    """The median of the steps before `step`."""
    return statistics.median(t[clock] for t in times[max(0, step - 1 - WINDOW) : step - 1])


def peer(name: str, python: str, steps: int) -> dict[str, dict[str, float]]:
    """The peer's own figures, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python, PEERS / f"steps_{name}.py", str(steps), folder],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"{name} failed: {done.stderr[-2000:]}")
    figures: dict[str, dict[str, float]] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, nargs="+", default=[50, 200, 500, 1000])
    parser.add_argument("--long", type=int, default=10_000)
    parser.add_argument("--peer-python", action="append", default=[], metavar="NAME=PYTHON")
    arguments = parser.parse_args()
    shown = [*arguments.steps, arguments.long]
    with tempfile.TemporaryDirectory() as folder:
        times, events, size = run(arguments.long, Path(folder))
    rows = {f"resolver, {c}": [at(times, s, n) for s in shown] for n, c in enumerate(CLOCKS)}
    for peer_python in arguments.peer_python:
        name, _, python = peer_python.partition("=")
        figures = peer(name, python, max(arguments.steps))
        for clock in CLOCKS:
            values = figures[clock]
            rows[f"{name}, {clock}"] = [values.get(str(s), float("nan")) for s in shown]
    print("| ms a step at |", " | ".join(f"{step:,}" for step in shown), "|")
    print("|---|" + "--:|" * len(shown))
    for name, row in rows.items():
        print(f"| {name} |", " | ".join(f"{v:.2f}" if v == v else "" for v in row), "|")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    ratio = rows["resolver, cpu"][-1] / rows["resolver, cpu"][0]
    print(f"\n{arguments.long:,} / {shown[0]} by cpu: {ratio:.2f}; {events:,} events,")
    whole = sum(wall for wall, _ in times) / 1000
    print(f"{size / 1e6:.1f} MB on disk, peak memory {memory} MB, whole run {whole:.1f} s")


if __name__ == "__main__":
    main()
