"""Cost on our side of one model call, by length of the conversation: ours against bare httpx.

    python bench/model_call.py [MESSAGES ...]

Prints one JSON line a length, medians in milliseconds over a scripted endpoint on loopback: by the
wall, and for ours also by the processor, on which the endpoint and other work don't count.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))

from resolver.llm.base import ModelConfig
from resolver.llm.litellm_model import LiteLLMModel
from tests.parts.model_endpoint import ModelEndpoint, reply

CALLS = 9
PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}}
FUNCTION = {"name": "execute_bash", "description": "Run.", "parameters": PARAMETERS}
TOOLS = [{"type": "function", "function": FUNCTION}]


def conversation(length: int) -> list[dict[str, Any]]:
    """A system message, a task, and pairs of a tool call and 1,000 characters of output."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You fix issues."},
        {"role": "user", "content": "Fix it."},
    ]
    for step in range((length - 2) // 2):
        function = {"name": "execute_bash", "arguments": json.dumps({"command": f"echo {step}"})}
        call = {"id": f"c{step}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{step}", "content": "x" * 1000})
    return messages


def median_ms(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Median of several calls, after one that is not counted."""
    call()
    durations = []
    for _ in range(CALLS):
        started = clock()
        call()
        durations.append((clock() - started) * 1000)
    return round(statistics.median(durations), 1)


def processor_ms(call: Callable[[], object]) -> float:
    """Processor time of this thread: without the endpoint, and without other work."""
    return median_ms(call, time.thread_time)


def main() -> None:
    with ModelEndpoint() as endpoint, httpx.Client() as client:
        endpoint.answer_with(lambda _: reply("done"))
        config = ModelConfig(model="gpt-4o", base_url=endpoint.url)
        model = LiteLLMModel(config, on_retry=lambda *_: None)
        pieces = config.model_copy(update={"stream": True})
        streamed = LiteLLMModel(pieces, on_retry=lambda *_: None)
        address = f"{endpoint.url}/chat/completions"
        for length in [int(text) for text in sys.argv[1:]] or [10, 100, 500, 2000]:
            messages = conversation(length)
            body = {"model": "gpt-4o", "messages": messages, "tools": TOOLS}

            def ours(given: list[dict[str, Any]] = messages) -> object:
                return model.complete(given, TOOLS)

            def in_pieces(given: list[dict[str, Any]] = messages) -> object:
                return streamed.complete(given, TOOLS)

            def plain(given: dict[str, Any] = body) -> object:
                return client.post(address, json=given).json()

            row = {
                "messages": length,
                "httpx_ms": median_ms(plain),
                "resolver_ms": median_ms(ours),
                "resolver_cpu_ms": processor_ms(ours),
                "streamed_ms": median_ms(in_pieces),
                "streamed_cpu_ms": processor_ms(in_pieces),
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
