"""Steps of mini-swe-agent with a model in the process and an environment that costs nothing.

usage: steps_mini.py STEPS FOLDER; prints milliseconds a step by step number as JSON.
"""

import json
import os
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.exceptions import Submitted
from minisweagent.models.litellm_model import LitellmModel

ASKED: list[tuple[float, float]] = []
LAST = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


class FreeEnvironment(LocalEnvironment):
    def execute(self, action, cwd="", *, timeout=None):  # noqa: ARG002 - its form
        ASKED.append((time.perf_counter(), time.process_time()))
        if action["command"] == LAST:
            extra = {"exit_status": "Submitted", "submission": ""}
            raise Submitted({"role": "exit", "content": "done", "extra": extra})
        output = f"pong {action['command']} ".ljust(1000, "x")
        return {"output": output, "returncode": 0, "exception_info": ""}


class InProcess(LitellmModel):
    steps = 0
    at = 0

    def query(self, messages, **_):
        self._prepare_messages_for_api(messages)
        self.at += 1
        command = f"make part-{self.at}" if self.at <= self.steps else LAST
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        call = {"id": f"c{self.at}", "type": "function", "function": function}
        extra = {"actions": [{"command": command, "tool_call_id": call["id"]}], "cost": 0.0}
        return {"role": "assistant", "content": "", "tool_calls": [call], "extra": extra}


def medians(clock: int, steps: int) -> dict[int, float]:
    """Milliseconds a step, by one of the two clocks."""
    times = [1000 * (y[clock] - x[clock]) for x, y in pairwise(ASKED)]
    shown = (50, 200, 500, 1000, 2000, 5000)
    return {s: statistics.median(times[s - 26 : s - 1]) for s in shown if s <= steps}


def main() -> None:
    steps, folder = int(sys.argv[1]), Path(sys.argv[2])
    model = InProcess(model_name="openai/gpt-4o", cost_tracking="ignore_errors")
    model.steps = steps
    agent = DefaultAgent(
        model,
        FreeEnvironment(),
        system_template="You are an agent.",
        instance_template="Go on until you are done. {{task}}",
        output_path=folder / "trajectory.json",
        cost_limit=0,
    )
    agent.run("")
    print(json.dumps({"wall": medians(0, steps), "cpu": medians(1, steps)}))


if __name__ == "__main__":
    main()
