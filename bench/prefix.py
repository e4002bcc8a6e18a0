"""How much of what a model is sent is an unchanged beginning of the call before: what a provider's
prompt cache can give back.

    python bench/prefix.py [--steps 100] [--dialect tools|tags]

A run of the CodeAct agent with a model and a sandbox that cost nothing; outputs have the sizes that
commands have (most short, some of 8 kB and 32 kB, new each time). Counted in tokens, over the
tools, the system prompt and all messages. Prints one JSON line: the share over all calls, and over
those with no condensation since the call before.
"""

import argparse
import json
import random
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from resolver.agents.codeact import CodeActAgent
from resolver.controller.controller import AgentController
from resolver.events.actions import Message, SandboxAction
from resolver.events.base import Source
from resolver.events.lifecycle import Condensation, LimitsExtended, ModelReplied
from resolver.events.observations import CmdOutput, Observation
from resolver.events.state import State
from resolver.events.stores import JsonlStore
from resolver.events.stream import EventStream, utc_now
from resolver.llm.base import ChatMessage, RecordedModel, ToolSpec
from resolver.llm.library import litellm
from resolver.memory.condensers.registry import LogCondenser
from resolver.memory.condensers.rules import Importance
from resolver.memory.condensers.view import SizeBound
from resolver.memory.conversation import Dialect
from resolver.models.run import Completion, RequestedToolCall, RunLimits

SIZES = (200, 200, 500, 500, 1_000, 1_000, 2_000, 4_000, 8_000, 32_000)


class ScriptedAgent:
    """Asks for one command after the other, then finishes; keeps what it was sent."""

    name = "scripted"
    supports_vision = False

    def __init__(self, steps: int, dialect: Dialect) -> None:
        self._steps = steps
        self._dialect = dialect
        self.sent: list[list[str]] = []

    @property
    def supports_tools(self) -> bool:
        return self._dialect == "tools"

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        """The next reply."""
        self.sent.append([json.dumps(part) for part in (tools or [], *messages)])
        step_number = len(self.sent)
        is_done = step_number > self._steps
        if self._dialect == "tags":
            word = "<finish>\ndone\n</finish>" if is_done else None
            text = word or f"I look.\n<execute_bash>\nmake part-{step_number}\n</execute_bash>"
            return Completion(model="scripted", text=text, cost=0.0)
        arguments: dict[str, Any] = (
            {"message": "done"} if is_done else {"command": f"make part-{step_number}"}
        )
        name = "finish" if is_done else "execute_bash"
        call = RequestedToolCall(id=f"c{step_number}", name=name, arguments=json.dumps(arguments))
        return Completion(model="scripted", text="I look.", tool_calls=(call,), cost=0.0)


class Sandbox:
    """Answers at once, with texts of many sizes."""

    def __init__(self) -> None:
        self._random = random.Random(7)

    def execute(self, action: SandboxAction) -> Observation:  # noqa: ARG002 - whatever it is
        size = self._random.choice(SIZES)
        words = " ".join(f"{self._random.randrange(10**6)}" for _ in range(size // 7))
        return CmdOutput(content=words, exit_code=0)


def sent_by_a_run(steps: int, dialect: Dialect) -> tuple[list[list[str]], list[int], int]:
    """What each call was sent, the calls that a condensation came before, and their number."""
    with tempfile.TemporaryDirectory() as folder:
        stream, state = EventStream(JsonlStore(Path(folder) / "events.jsonl")), State()
        stream.subscribe("state", state.apply, essential=True)
        limits = RunLimits(max_iterations=steps + 10, max_budget=1.0, max_time=86_400)
        stream.add(LimitsExtended(limits=limits))
        model = ScriptedAgent(steps, dialect)
        after: list[int] = []

        def note(event: object) -> None:
            if isinstance(event, Condensation):
                after.append(len(model.sent))

        stream.subscribe("telemetry", note)
        recorded = RecordedModel(model, lambda reply: _record(stream, reply))
        agent = CodeActAgent(recorded, dialect)
        condensing = LogCondenser(Importance(SizeBound()))
        controller = AgentController(agent, stream, state, Sandbox(), lambda _: condensing, utc_now)
        stream.add(agent.system_prompt())
        stream.add(Message(content="Go on until you are done.", source=Source.USER))
        outcome = controller.run()
        assert outcome.state.value == "finished", outcome.reason
        return model.sent, after, len(after)


def _record(stream: EventStream, completion: Completion) -> None:
    stream.add(ModelReplied(completion=completion))


def shared(previous: list[str], current: list[str]) -> int:
    """How many parts at the beginning are the same."""
    length = 0
    for one, other in zip(previous, current, strict=False):
        if one != other:
            break
        length += 1
    return length


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--dialect", choices=("tools", "tags"), default="tools")
    arguments = parser.parse_args()
    sent, after, condensations = sent_by_a_run(arguments.steps, arguments.dialect)
    counted: dict[str, int] = {}

    def tokens(parts: list[str]) -> int:
        for part in parts:
            if part not in counted:
                counted[part] = litellm().token_counter(model="gpt-4o", text=part)
        return sum(counted[part] for part in parts)

    all_tokens = all_unchanged = between_tokens = between_unchanged = 0
    for number, (previous, current) in enumerate(pairwise(sent), start=1):
        total, unchanged = tokens(current), tokens(current[: shared(previous, current)])
        all_tokens, all_unchanged = all_tokens + total, all_unchanged + unchanged
        if number not in after:
            between_tokens, between_unchanged = (
                between_tokens + total,
                between_unchanged + unchanged,
            )
    row = {
        "dialect": arguments.dialect,
        "calls": len(sent),
        "condensations": condensations,
        "input_tokens": all_tokens + tokens(sent[0]),
        "unchanged_prefix": round(all_unchanged / all_tokens, 4),
        "between_condensations": round(between_unchanged / between_tokens, 4),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
