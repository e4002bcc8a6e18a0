"""Check that the model can be used, before a run spends minutes on its sandbox.

The model is asked one short question, which is what the run would do first.
"""

import re
from collections.abc import Callable
from typing import Final

from resolver.errors import ModelAuthError, ModelError
from resolver.llm.base import DEFAULT_SET_BY, Model, ModelConfig, OnRetry, SetBy

_REGION = r"(region|country|location|territory)"

_CAUSES = (
    (rf"{_REGION}\b.{{0,60}}\bnot\b|\b(not|un).{{0,40}}{_REGION}",
     "the model is not offered in the region",
     "check the region of the model, and the country of this machine's address"),
    (r"name or service not known|getaddrinfo|no address associated|name resolution|nodename nor",
     "the address can't be found", "check {base_url} and this machine's DNS"),
    (r"\b407\b|proxy",
     "a proxy refuses the connection", "check HTTPS_PROXY and NO_PROXY"),
    (r"certificate|\bssl\b|\btls\b",
     "the endpoint's certificate is not trusted here",
     "set SSL_CERT_FILE to your organization's certificates, if a proxy intercepts TLS"),
    (r"connection refused|connection error|cannot connect|connection attempts failed",
     "nothing answers at the address",
     "check {base_url} (and HTTPS_PROXY, where it is set), and that the endpoint is running"),
    (r"quota|rate limit|status 429|no credit",
     "the account has no quota left", "wait, or raise the quota at the provider"),
    (r"status 404|not found|does not exist",
     "the model is not known there", "check {model} and {base_url}"),
)  # fmt: skip
"""Known failures: pattern of the message, meaning, and what to do. The first match applies."""

_ACCESS_CAUSES = _CAUSES[:1]
"""Those of the known failures that are reported as authentication errors."""

_UNREACHABLE = "|".join(pattern for pattern, *_ in (_CAUSES[1], *_CAUSES[3:5]))
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
    """Return the error with an explanation of its likely cause in front, if a known one matches."""
    causes = _ACCESS_CAUSES if isinstance(error, ModelAuthError) else _CAUSES
    for pattern, meaning, next_step in causes:
        if re.search(pattern, error.what, re.IGNORECASE):
            advice = next_step.format_map(set_by.model_dump())
            return ModelError(f"{meaning}: {error.what}", advice, error.cause)
    return error


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
            is_down = error.cause == "provider_down"
            is_unreachable = is_down and re.search(_UNREACHABLE, error.what, re.IGNORECASE)
            if is_down and not is_unreachable:
                return None
            if not is_unreachable or attempt == MAX_ATTEMPTS:
                raise explain(error, config.set_by) from None
            on_retry(attempt, float(attempt), error.what)
            sleep(attempt)
        else:
            break
    return f"{config.model} has answered"
