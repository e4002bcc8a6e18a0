"""Steps of openhands-sdk with its own scripted model and a tool that costs nothing.

usage: steps_openhands.py STEPS FOLDER; prints milliseconds a step by step number as JSON.
"""

import json
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise

os.environ.setdefault("OPENHANDS_SUPPRESS_BANNER", "1")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("LOG_LEVEL", "ERROR")

from openhands.sdk import Agent, Conversation, Tool
from openhands.sdk.llm import Message, MessageToolCall, TextContent
from openhands.sdk.testing import TestLLM
from openhands.sdk.tool import Action, Observation, ToolDefinition, ToolExecutor, register_tool
from pydantic import Field

ASKED: list[tuple[float, float]] = []


class PingAction(Action):
    text: str = Field(description="Any text.")


class PingObservation(Observation):
    pass


class PingExecutor(ToolExecutor):
    def __call__(self, action, conversation=None):  # noqa: ARG002 - its form
        ASKED.append((time.perf_counter(), time.process_time()))
        return PingObservation.from_text(f"pong {action.text} ".ljust(1000, "x"))


class PingTool(ToolDefinition[PingAction, PingObservation]):
    @classmethod
    def create(cls, conv_state=None, **_) -> Sequence["PingTool"]:  # noqa: ARG003
        tool = cls(
            description="Answers at once.",
            action_type=PingAction,
            observation_type=PingObservation,
            executor=PingExecutor(),
        )
        return [tool]


def reply(number: int, name: str, arguments: dict[str, str]) -> Message:
    call = MessageToolCall(
        id=f"c{number}", name=name, arguments=json.dumps(arguments), origin="completion"
    )
    return Message(role="assistant", content=[TextContent(text="")], tool_calls=[call])


def medians(clock: int, steps: int) -> dict[int, float]:
    """Milliseconds a step, by one of the two clocks."""
    times = [1000 * (y[clock] - x[clock]) for x, y in pairwise(ASKED)]
    shown = (50, 200, 500, 1000, 2000, 5000)
    return {s: statistics.median(times[s - 26 : s - 1]) for s in shown if s <= steps}


def main() -> None:
    steps, folder = int(sys.argv[1]), sys.argv[2]
    logging.disable(logging.WARNING)
    register_tool("PingTool", PingTool)
    replies = [reply(i, "ping", {"text": f"step {i}"}) for i in range(steps)]
    model = TestLLM.from_messages([*replies, reply(steps, "finish", {"message": "done"})])
    conversation = Conversation(
        agent=Agent(llm=model, tools=[Tool(name="PingTool")]),
        workspace=tempfile.mkdtemp(dir=folder),
        persistence_dir=folder,
        visualizer=None,
        max_iteration_per_run=steps + 10,
        delete_on_close=False,
    )
    conversation.send_message("Go on until you are done.")
    conversation.run()
    print(json.dumps({"wall": medians(0, steps), "cpu": medians(1, steps)}))
    conversation.close()


if __name__ == "__main__":
    main()
