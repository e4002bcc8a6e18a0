"""A short test call to a model, with an explanation if it fails."""

import re

from resolver.errors import ModelAuthError, ModelError
from resolver.llm.base import Model
from resolver.llm.config import THE_RUNS_OWN, SetBy

_PLACE = r"(region|country|location|territory)"

_CAUSES = (
    (rf"{_PLACE}\b.{{0,60}}\bnot\b|\b(not|un).{{0,40}}{_PLACE}",
     "the model is not offered in the region",
     "check `region` in the setting `model_options`, and the country of this machine's address"),
    (r"name or service not known|getaddrinfo|no address associated|name resolution|nodename nor",
     "the address can't be found", "check {base_url} and this machine's DNS"),
    (r"\b407\b|proxy",
     "a proxy stands in between and refuses", "check HTTPS_PROXY and NO_PROXY"),
    (r"certificate|\bssl\b|\btls\b",
     "the endpoint's certificate is not trusted here",
     "set SSL_CERT_FILE to your organization's certificates, if a proxy opens TLS"),
    (r"connection refused|connection error|cannot connect|connection attempts failed",
     "nothing answers at the address",
     "check {base_url} (and HTTPS_PROXY, where it is set), and that the endpoint is running"),
    (r"quota|rate limit|status 429|no credit",
     "the account has no quota left", "wait, or raise the quota at the provider"),
    (r"status 404|not found|does not exist",
     "the model is not known there", "check {model} and {base_url}"),
)  # fmt: skip
"""Known failures: pattern of the message, meaning, and what to do. The first match applies."""

_OF_ACCESS = _CAUSES[:1]
"""Those of the known failures that are reported as authentication errors."""

QUESTION = "Reply with the word ready."


def probe(model: Model, set_by: SetBy = THE_RUNS_OWN) -> str:
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
    causes = _OF_ACCESS if isinstance(error, ModelAuthError) else _CAUSES
    for pattern, meaning, next_step in causes:
        if re.search(pattern, error.what, re.IGNORECASE):
            advice = next_step.format_map(set_by.model_dump())
            return ModelError(f"{meaning}: {error.what}", advice, error.cause)
    return error
