"""Cost on our side of one model call with a fallback: `litellm.Router` against `SwitchingModel`.

    python bench/router.py [MESSAGES ...]

Prints one JSON line a length, medians in milliseconds over a scripted endpoint on loopback: by the
wall, and by the processor time of this process, in which the endpoint, a thread of it, counts for
all three alike. `failing` is a call whose first model answers with status 500.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.model_call import TOOLS, conversation
from resolver.llm.base import ModelConfig
from resolver.llm.library import litellm
from resolver.llm.litellm_model import LiteLLMModel
from resolver.llm.router import SwitchingModel
from tests.parts.model_endpoint import Answer, ModelEndpoint, error, reply

CALLS = 15


def medians(call: Callable[[], object]) -> dict[str, float]:
    """Medians of several calls, after two that are not counted."""
    call(), call()
    walls, processors = [], []
    for _ in range(CALLS):
        wall, processor = time.perf_counter(), time.process_time()
        call()
        walls.append((time.perf_counter() - wall) * 1000)
        processors.append((time.process_time() - processor) * 1000)
    return {
        "wall_ms": round(statistics.median(walls), 1),
        "process_ms": round(statistics.median(processors), 1),
    }


def main() -> None:
    with ModelEndpoint() as endpoint:
        endpoint.answer_with(answer)
        package = litellm()
        from litellm import Router

        shared = {"api_base": endpoint.url, "api_key": "key", "max_retries": 0}
        deployments = [
            {"model_name": name, "litellm_params": {"model": f"openai/{name}", **shared}}
            for name in ("first", "second", "broken")
        ]
        router = Router(
            model_list=deployments,
            fallbacks=[{"first": ["second"]}, {"broken": ["second"]}],
            num_retries=0,
            disable_cooldowns=True,
        )

        def ask(name: str, messages: list[dict[str, Any]]) -> object:
            return switching(endpoint.url, name).complete(messages, TOOLS)

        for length in [int(text) for text in sys.argv[1:]] or [10, 100, 500, 2000]:
            messages = conversation(length)
            measured = {
                "litellm": medians(
                    partial(
                        package.completion,
                        model="openai/first",
                        messages=messages,
                        tools=TOOLS,
                        **shared,
                    )
                ),
                "router": medians(
                    partial(router.completion, model="first", messages=messages, tools=TOOLS)
                ),
                "resolver": medians(partial(ask, "first", messages)),
                "router_failing": medians(
                    partial(router.completion, model="broken", messages=messages, tools=TOOLS)
                ),
                "resolver_failing": medians(partial(ask, "broken", messages)),
            }
            figures = {
                f"{name}_{clock}": value
                for name, clocks in measured.items()
                for clock, value in clocks.items()
            }
            print(json.dumps({"messages": length, **figures}), flush=True)


def answer(request: dict[str, Any]) -> Answer:
    """Answer as any model but "broken" does."""
    return error(500) if request.get("model") == "broken" else reply("done")


_models: dict[str, LiteLLMModel] = {}


def switching(url: str, first: str) -> SwitchingModel:
    """Return a new model that falls back to "second", over clients that are kept."""
    for name in (first, "second"):
        if name not in _models:
            config = ModelConfig(model=name, base_url=url, retries=0)
            _models[name] = LiteLLMModel(config, on_retry=lambda *_: None)
    return SwitchingModel(
        _models, first, ["second"], [], on_switch=lambda *_: None, share_left=lambda: 1.0
    )


if __name__ == "__main__":
    main()
