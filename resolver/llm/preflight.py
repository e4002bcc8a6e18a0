"""Check that the model can be used, before a run spends minutes on its sandbox.

The model is asked one short question, which is what the run would do first.
"""

import re
from collections.abc import Callable
from typing import Final

from resolver.errors import ModelError
from resolver.llm.base import DEFAULT_SET_BY, Model, ModelConfig, OnRetry, SetBy

_UNREACHABLE = re.compile(
    r"name or service not known|getaddrinfo|no address associated|name resolution|nodename nor"
    r"|certificate|\bssl\b|\btls\b"
    r"|connection refused|connection error|cannot connect|connection attempts failed",
    re.IGNORECASE,
)
"""Matches failures of a connection, which no waiting removes."""

QUESTION = "Reply with the word ready."


def probe(model: Model, set_by: SetBy = DEFAULT_SET_BY) -> str:
    """Return a short description of the answer. Raises ModelError with an explanation of the cause.

    set_by: the settings that the error tells a person to check.

    Costs a few tokens. The model should have no retries, because a person waits for the result.
    """
    try:
        reply = model.complete([{"role": "user", "content": QUESTION}])
    except ModelError as error:
        raise explain(error, set_by) from None
    tokens = reply.tokens.input + reply.tokens.output
    cost = "price unknown" if reply.cost is None else f"${reply.cost:.6f}"
    return f"{model.name} answered in {reply.latency:.1f} s ({tokens} tokens, {cost})"


def explain(error: ModelError, set_by: SetBy) -> ModelError:
    """Return the error with the settings to check, if nothing can be reached at the address."""
    if not is_unreachable(error):
        return error
    return ModelError(
        f"nothing answers at the address: {error.what}",
        f"check {set_by.base_url} and that the endpoint is running; also HTTPS_PROXY, and "
        "SSL_CERT_FILE if a proxy intercepts TLS",
        error.cause,
    )


def is_unreachable(error: ModelError) -> bool:
    """Return True if the address can't be found or connected to, or its certificate is refused."""
    return error.cause == "provider_down" and _UNREACHABLE.search(error.what) is not None


QUESTION_SECONDS: Final = 30.0
"""Timeout for the question. A model that takes longer is slow, not misconfigured."""

MAX_ATTEMPTS: Final = 3
"""Number of times that an address which can't be reached is tried."""


def check_model(
    config: ModelConfig,
    *,
    make_short_model: Callable[[ModelConfig], Model],
    on_retry: OnRetry,
    sleep: Callable[[float], None],
) -> str | None:
    """Return how the model was confirmed, or None if its provider is slow, overloaded or failing.

    make_short_model: creates the model for the question.
    on_retry, sleep: as in `make_model`.

    Raises ModelError if the address can't be reached, the key is refused, or the model is unknown.
    """
    seconds = min(config.timeout, QUESTION_SECONDS)
    model = make_short_model(config.model_copy(update={"num_retries": 0, "timeout": seconds}))
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            model.complete([{"role": "user", "content": QUESTION}])
        except ModelError as error:
            if error.cause == "provider_down" and not is_unreachable(error):
                return None
            if not is_unreachable(error) or attempt == MAX_ATTEMPTS:
                raise explain(error, config.set_by) from None
            on_retry(attempt, float(attempt), error.what)
            sleep(attempt)
        else:
            break
    return f"{config.model} has answered"
