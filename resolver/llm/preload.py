"""Loading of litellm in the background, while a run does other things.

Importing litellm and making the first call take seconds of CPU time. Without preloading, a run
would spend them right before its first model call.
"""

import logging
import threading
from collections.abc import Callable
from functools import partial

from resolver.llm.base import ChatMessage
from resolver.llm.config import ModelConfig
from resolver.llm.library import LIBRARY_LOCK, entry_of, litellm, price_of, wire_name
from resolver.llm.request import request_for
from resolver.models.run import Tokens

logger = logging.getLogger("resolver.llm")

_MESSAGES: list[ChatMessage] = [{"role": "user", "content": "rehearsal"}]
_PARAMETERS = {"type": "object", "properties": {}}
_TOOLS = [{"type": "function", "function": {"name": "rehearse", "parameters": _PARAMETERS}}]


def preload_model(config: ModelConfig) -> threading.Thread:
    """Start to load litellm and everything that a call to the model needs. Returns immediately.

    Other users of litellm wait until it is ready. The thread does not keep the process alive.
    """
    return preload_with(partial(rehearse, config))


def preload_with(load: Callable[[], None]) -> threading.Thread:
    """Call `load` in a thread that holds litellm's lock.

    Errors are only logged, at debug level: the next user of litellm gets the same error, where a
    run can report it.
    """
    locked = threading.Event()

    def run() -> None:
        with LIBRARY_LOCK:
            locked.set()
            try:
                load()
            except Exception:
                logger.debug("litellm could not be loaded in the background", exc_info=True)

    thread = threading.Thread(target=run, name="preload", daemon=True)
    thread.start()
    locked.wait()
    return thread


def rehearse(config: ModelConfig) -> None:
    """Make one mock call, so that everything a real call imports is loaded. Nothing is sent.

    Raises what litellm raises. Must not use `LiteLLMModel`: up to Python 3.11 all instances of a
    class share the lock of a `cached_property`, and a thread that waits for litellm's lock may hold
    it.
    """
    name = wire_name(config)
    entry = entry_of(name) or {}
    plain = config.model_copy(update={"stream": False})
    request = request_for(plain, name, entry, _MESSAGES, _TOOLS)
    litellm().completion(**request, mock_response="ready")
    if "input_cost_per_token" in entry:
        price_of(name, Tokens(input=1, output=1), written=0)
