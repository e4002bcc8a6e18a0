"""Access to litellm: import and configuration, names of models, prices.

The import takes seconds, so it happens on first use or earlier in the background (`preload.py`).
litellm's own retries, telemetry and download of prices are disabled; `litellm_model.py` decides
about retries.
"""

import logging
import os
import sys
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

_SHARED_TIMEOUT = 600.0  # seconds, for requests without a timeout of their own

_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise it downloads a price list on import
    "LITELLM_MODE": "PRODUCTION",  # otherwise it loads a nearby .env file into the environment
    # Use litellm's own HTTP code instead of the openai package, which transforms every message by
    # its types and takes nine times as long for a long conversation. Read at each call.
    "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER": "True",
}

# Warnings about litellm's own types, which nobody who runs Resolver can act on. Registered when
# this module is imported, not when litellm is: a `catch_warnings` block that another thread has
# open would remove the filter again when it ends, and restores it when the filter was there before.
for _message in ("Pydantic serializer warnings", ".*`ReadOnly` qualifier"):
    warnings.filterwarnings("ignore", message=_message)


LIBRARY_LOCK = threading.RLock()
"""Held by the thread that loads litellm; other threads wait until it is ready."""


def litellm() -> Any:
    """Return the package, loaded and configured."""
    with LIBRARY_LOCK:
        return _load_litellm()


@cache
def _load_litellm() -> Any:
    """Import litellm with the configuration that has to be set before and after the import."""
    os.environ.update(_ENVIRONMENT)
    # These loggers write conversations and tracebacks. What matters is raised as an exception too.
    for name in ("LiteLLM", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        import litellm as package
    except BaseException:
        # Another attempt must start from nothing. Submodules that are loaded already are not bound
        # to a new package object, so that `litellm.exceptions`, for one, would be missing.
        for name in [name for name in sys.modules if name.partition(".")[0] == "litellm"]:
            del sys.modules[name]
        raise

    package.telemetry = False
    package.suppress_debug_info = True
    package.redact_messages_in_exceptions = True
    # Otherwise another thread processes the whole conversation for each chunk of a reply and holds
    # the GIL meanwhile, which doubles the time of a call in a long conversation.
    package.disable_streaming_logging = True
    # For the providers that litellm reaches through the openai package.
    package.client_session = BoundedClient(timeout=httpx.Timeout(_SHARED_TIMEOUT))
    # litellm passes its tokenizer to the code of every provider, which would load it. Only a few
    # use it, to count tokens that an endpoint does not report.
    package.main.encoding = DeferredTokenizer()
    return package


class DeferredTokenizer:
    """Loads litellm's tokenizer on first use, because it takes 40 MB."""

    def __getattr__(self, name: str) -> Any:
        from litellm._lazy_imports import get_default_encoding

        return getattr(get_default_encoding(), name)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the pydantic warnings that litellm's own types cause while it parses a response.

    Where warnings are errors, they would look like an invalid response.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def wire_name(config: ModelConfig) -> str:
    """Return litellm's name of the model.

    An endpoint at a base URL is assumed to have OpenAI's API unless the name has a known provider.
    """
    name = config.model
    provider = name.partition("/")[0] if "/" in name else ""
    if config.base_url and provider not in litellm().provider_list:
        return f"openai/{name}"
    return name


def entry_of(name: str) -> dict[str, Any] | None:
    """Return the model's entry in litellm's table, None if there is none.

    name: litellm's name of the model.

    Reads the table directly, because litellm's functions query a local server for some models and
    report a price of zero for unknown ones.
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
    """Return the price in US dollars, for a model whose price is in the table.

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
