"""One tiny call to a model, and one sentence for what is wrong when it fails."""

import re

from resolver.errors import ModelAuthError, ModelError
from resolver.llm.base import Model

_CAUSES = (
    (r"name or service not known|getaddrinfo|no address associated|name resolution",
     "the address can't be found", "check LLM_BASE_URL and this machine's DNS"),
    (r"certificate|ssl|tls",
     "the endpoint's certificate is not trusted here",
     "set SSL_CERT_FILE to your organization's certificates, if a proxy opens TLS"),
    (r"\b407\b|proxy",
     "a proxy stands in between and refuses", "check HTTPS_PROXY and NO_PROXY"),
    (r"connection refused|connection error|cannot connect|connection attempts failed",
     "nothing answers at the address", "check LLM_BASE_URL, and that the endpoint is running"),
    (r"region", "the region does not fit", "check RESOLVER_MODEL_REGION"),
    (r"quota|rate limit|status 429|no credit",
     "the account has no quota left", "wait, or raise the quota at the provider"),
    (r"status 404|not found|does not exist",
     "the model is not known there", "check LLM_MODEL and LLM_BASE_URL"),
)  # fmt: skip
"""What an endpoint or a network says, what that means, and what to do. The first that fits."""

_QUESTION = "Reply with the word ready."


def probe(model: Model) -> str:
    """What answered, in a few words. Raises ModelError with the cause in one sentence.

    Costs a few tokens. The model should not try again: a person waits.
    """
    try:
        reply = model.complete([{"role": "user", "content": _QUESTION}])
    except ModelAuthError:
        raise
    except ModelError as error:
        raise _explained(error) from None
    tokens = reply.tokens.input + reply.tokens.output
    cost = "price unknown" if reply.cost is None else f"${reply.cost:.6f}"
    return f"{model.name} answered in {reply.latency:.1f} s ({tokens} tokens, {cost})"


def _explained(error: ModelError) -> ModelError:
    for pattern, meaning, next_step in _CAUSES:
        if re.search(pattern, error.what, re.IGNORECASE):
            return ModelError(f"{meaning}: {error.what}", next_step)
    return error
