"""The peer's side of bench/events.py: run by the Python that has openhands-sdk in it.

events_peer.py make FOLDER COUNT | open FOLDER
"""

import json
import logging
import os
import resource
import statistics
import sys
import time

os.environ.setdefault("OPENHANDS_SUPPRESS_BANNER", "1")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from openhands.sdk.context.view import View
from openhands.sdk.conversation.event_store import EventLog
from openhands.sdk.event import ActionEvent, ObservationEvent
from openhands.sdk.io import LocalFileStore
from openhands.sdk.llm import MessageToolCall
from openhands.sdk.tool.builtins.think import ThinkAction, ThinkObservation

logging.disable(logging.WARNING)


def make(path: str, count: int) -> dict[str, float]:
    """Append `count` events; the time of each."""
    log = EventLog(LocalFileStore(path))
    durations = []
    for number in range(0, count, 2):
        call = MessageToolCall(
            id=f"call_{number}", name="think", arguments='{"thought":"ls"}', origin="completion"
        )
        action = ActionEvent(
            thought=[],
            action=ThinkAction(thought=f"step {number}"),
            tool_name="think",
            tool_call_id=call.id,
            tool_call=call,
            llm_response_id=f"r{number}",
        )
        observation = ObservationEvent(
            observation=ThinkObservation.from_text("x" * 1000),
            tool_name="think",
            tool_call_id=call.id,
            action_id=action.id,
        )
        for event in (action, observation):
            started = time.perf_counter()
            log.append(event)
            durations.append((time.perf_counter() - started) * 1000)
    durations.sort()
    return {"median": statistics.median(durations), "p99": durations[int(len(durations) * 0.99)]}


def reopen(path: str) -> dict[str, float]:
    """List, read and check every event, and make the view."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    events = list(EventLog(LocalFileStore(path)))
    view = View.from_events(events)
    milliseconds = (time.perf_counter() - started) * 1000
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"ms": milliseconds, "events": len(view.events), "memory_mb": (after - before) / 1024}


if __name__ == "__main__":
    if sys.argv[1] == "make":
        print(json.dumps(make(sys.argv[2], int(sys.argv[3]))))
    else:
        print(json.dumps(reopen(sys.argv[2])))
