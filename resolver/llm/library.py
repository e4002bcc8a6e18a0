"""litellm itself: loaded once and made quiet, its names of models, and its table of prices.

It takes seconds to import, so that happens at the first use, or in the background before it
(`preload.py`). Its own retries, telemetry and price download are off; what is tried again, and
when, is decided in `litellm_model.py`.
"""

import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpx

from resolver.llm.config import ModelConfig
from resolver.llm.transport import BoundedClient
from resolver.models.run import Tokens

_SHARED_TIMEOUT = 600.0  # only for a request that brings none

_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it downloads a price list at import
    "LITELLM_MODE": "PRODUCTION",  # else it loads a .env file that lies near into our environment
    # Its own HTTP path instead of the openai package's, whose walk over the types of every
    # message costs nine times as much in a long conversation. Read at each call.
    "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER": "True",
}


LIBRARY_LOCK = threading.RLock()
"""Held by the thread that loads litellm; everybody else waits for it to be ready."""


def litellm() -> Any:
    """The package."""
    with LIBRARY_LOCK:
        return _load_litellm()


@cache
def _load_litellm() -> Any:
    os.environ.update(_ENVIRONMENT)
    # They write conversations and tracebacks; what matters of it comes to us as an exception.
    for name in ("LiteLLM", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    import litellm as package

    # Of its own types, in threads of its own, where nobody can do anything about it.
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings")
    package.telemetry = False
    package.suppress_debug_info = True
    package.redact_messages_in_exceptions = True
    # Else a further thread looks at the whole conversation for every piece of a reply, and ours
    # waits for the interpreter meanwhile: in a long one as much time as all the rest of the call.
    package.disable_streaming_logging = True
    # For the providers that litellm reaches through the openai package.
    package.client_session = BoundedClient(timeout=httpx.Timeout(_SHARED_TIMEOUT))
    # litellm hands its tokenizer to the code of every provider and would load it for that; few use
    # it, to count what an endpoint has not counted.
    package.main.encoding = DeferredTokenizer()
    return package


class DeferredTokenizer:
    """litellm's tokenizer, loaded when it is first used: it takes 40 MB."""

    def __getattr__(self, name: str) -> Any:
        from litellm._lazy_imports import get_default_encoding

        return getattr(get_default_encoding(), name)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings that litellm's own types cause in pydantic while it reads an answer;
    where warnings are errors they would look like a broken answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def wire_name(config: ModelConfig) -> str:
    """litellm's name of the model: what stands at a base URL speaks OpenAI's API unless the name
    says otherwise."""
    name = config.model
    provider = name.partition("/")[0] if "/" in name else ""
    if config.base_url and provider not in litellm().provider_list:
        return f"openai/{name}"
    return name


def entry_of(name: str) -> dict[str, Any] | None:
    """What litellm's table says of the model; None when it is not there.

    name: litellm's name of it. Read from the table itself: litellm's functions ask a local server
    for some models, and call a price zero that they don't know.
    """
    package = litellm()
    table: dict[str, dict[str, Any]] = package.model_cost
    name = name.replace("/responses/", "/", 1)
    try:
        bare, provider, *_ = package.get_llm_provider(name)
    except package.BadRequestError:
        return None
    for known in (name, f"{provider}/{bare}"):
        if known in table:
            return table[known]
    entry = table.get(bare)
    if entry and str(entry.get("litellm_provider", "")).startswith(provider):
        return entry
    return None


def price_of(name: str, tokens: Tokens, written: int) -> float:
    """US dollars for a model that the table has a price of.

    written: input tokens that were written to the prompt cache.
    """
    parts = litellm().cost_per_token(
        model=name.replace("/responses/", "/", 1),
        prompt_tokens=tokens.input,
        completion_tokens=tokens.output,
        cache_read_input_tokens=tokens.cached,
        cache_creation_input_tokens=written,
    )
    return float(max(0.0, sum(parts)))
