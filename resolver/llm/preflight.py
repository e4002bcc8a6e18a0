"""Check that the model can be used, before a run spends minutes on its sandbox.

Most providers list their models free of charge; endpoints with OpenAI's API do so at `GET /models`.
A model that is listed for the key is accepted. Otherwise (the key is refused, the name is missing,
or the provider has no such list) the model is asked one short question, which is what the run would
do first. The list alone is not enough to refuse a model: a key may be allowed to use a model but
not to list any, and an alias may work without being listed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_exponential

from resolver.errors import ModelAuthError, ModelError
from resolver.llm.base import DEFAULT_SET_BY, Model, ModelConfig, OnRetry, SetBy, api_key_variable
from resolver.llm.failures import endpoint_at, without_key
from resolver.llm.library import BoundedClient
from resolver.llm.registry import provider_of

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


LISTING_SECONDS = 10.0
"""Timeout for the list of models. A provider that takes longer is slow, not misconfigured."""

QUESTION_SECONDS = 30.0
"""Timeout for the short question. A model that takes longer is slow, not misconfigured."""

_CONNECT_SECONDS = 5.0
_MAX_ATTEMPTS = 4
_UNREACHABLE = (httpx.ConnectError, httpx.ConnectTimeout)

# Suffixes of releases. An alias without suffix stands for the newest release, and often only the
# releases are listed.
_RELEASE_SUFFIX = re.compile(r"(?:[-@]\d{8}|-\d{4}-\d{2}-\d{2}|:latest)$")


@dataclass(frozen=True)
class _ModelListing:
    """The request for a provider's list of models.

    path: path below the base URL.
    key_header: header for the plain key; "" if the key is sent as a bearer token.
    headers: further headers.
    refusals: statuses that may mean that the key or the name is wrong. Other errors mean that the
    list is unavailable.
    """

    base_url: str
    path: str = "/models"
    key_header: str = ""
    headers: Mapping[str, str] | None = None
    refusals: frozenset[int] = frozenset({401, 403})


_OPENAI_LISTING = _ModelListing("https://api.openai.com/v1")

_LISTINGS = {
    "openai": _OPENAI_LISTING,
    # https://docs.claude.com/en/api/models-list
    "anthropic": _ModelListing(
        "https://api.anthropic.com",
        "/v1/models?limit=1000",
        "x-api-key",
        {"anthropic-version": "2023-06-01"},
    ),
    # https://ai.google.dev/api/models; the status for a wrong key is 400
    "gemini": _ModelListing(
        "https://generativelanguage.googleapis.com",
        "/v1beta/models?pageSize=1000",
        "x-goog-api-key",
        refusals=frozenset({400, 401, 403}),
    ),
    "deepseek": _ModelListing("https://api.deepseek.com"),
    "groq": _ModelListing("https://api.groq.com/openai/v1"),
    "mistral": _ModelListing("https://api.mistral.ai/v1"),
    # https://openrouter.ai/docs/api-reference/list-models-user; /models does not check the key
    "openrouter": _ModelListing("https://openrouter.ai/api/v1", "/models/user"),
    "xai": _ModelListing("https://api.x.ai/v1"),
    # https://docs.ollama.com/api/tags
    "ollama": _ModelListing("http://localhost:11434", "/api/tags"),
    "ollama_chat": _ModelListing("http://localhost:11434", "/api/tags"),
}

_PROVIDERS_WITHOUT_LIST = (
    "azure",
    "azure_ai",
    "bedrock",
    "vertex_ai",
    "vertex_ai_beta",
    "sagemaker",
)
"""Clouds whose list does not show what is deployed, or requires signed requests."""


def check_model(
    config: ModelConfig,
    environment: Mapping[str, str],
    *,
    make_short_model: Callable[[ModelConfig], Model],
    on_retry: OnRetry,
    sleep: Callable[[float], None],
) -> str:
    """Return how the model was confirmed, or "" if that is not possible without using it.

    make_short_model: creates the model for the short question.
    environment: contains the provider's own variables.
    on_retry, sleep: as in `make_model`.

    Raises ModelError if the address can't be reached, the key is refused, or the model is unknown.
    A provider that is slow, overloaded or failing is not an error.
    """
    listing = _listing_for(config, environment)
    if listing is not None:
        listed = _listed_models(listing, config, environment, on_retry, sleep)
        if listed is None:
            return ""
        aliases = frozenset(_RELEASE_SUFFIX.sub("", name) for name in listed)
        if _names_of(config.model) & (listed | aliases):
            return f"{config.model} is listed at {urlsplit(listing.base_url).hostname}"
    seconds = min(config.timeout, QUESTION_SECONDS)
    model = make_short_model(config.model_copy(update={"num_retries": 0, "timeout": seconds}))
    try:
        model.complete([{"role": "user", "content": QUESTION}])
    except ModelError as error:
        if error.cause == "provider_down":
            return ""
        raise explain(error, config.set_by) from None
    return f"{config.model} has answered"


def _listing_for(config: ModelConfig, environment: Mapping[str, str]) -> _ModelListing | None:
    """Return how to get the provider's list of models, None if no list is known.

    The key is sent only to the address at which the model would be called, even if that address is
    set by the provider's own variable.
    """
    provider = provider_of(config.model)
    if provider in _PROVIDERS_WITHOUT_LIST:
        return None
    variables = (f"{provider.upper()}_API_BASE", f"{provider.upper()}_BASE_URL")
    addresses = (environment.get(variable, "") for variable in variables if provider)
    address = config.base_url or next(filter(None, addresses), "")
    listing = _LISTINGS.get(provider)
    if not address:
        return listing
    address = address.rstrip("/")
    if provider == "anthropic":
        address = address.removesuffix("/messages").removesuffix("/v1")
    elif urlsplit(address).hostname == "openrouter.ai":
        listing = _LISTINGS["openrouter"]
    listing = listing or _OPENAI_LISTING
    return _ModelListing(
        address, listing.path, listing.key_header, listing.headers, listing.refusals
    )


def _listed_models(
    listing: _ModelListing,
    config: ModelConfig,
    environment: Mapping[str, str],
    on_retry: OnRetry,
    sleep: Callable[[float], None],
) -> frozenset[str] | None:
    """Return the listed names, () if the provider refuses the key, None if the list is unavailable.

    Raises ModelError if the address can't be reached.
    """
    key = _key_of(config, environment)
    headers = dict(listing.headers or {})
    if key:
        bearer = {"Authorization": f"Bearer {key}"}
        headers |= {listing.key_header: key} if listing.key_header else bearer

    def report(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        on_retry(state.attempt_number, state.upcoming_sleep, without_key(str(error), key))

    retry = Retrying(
        retry=retry_if_exception_type(_UNREACHABLE),
        stop=stop_after_attempt(min(1 + config.num_retries, _MAX_ATTEMPTS)),
        wait=wait_exponential(max=4),
        sleep=sleep,
        before_sleep=report,
        reraise=True,
    )
    timeout = httpx.Timeout(LISTING_SECONDS, connect=_CONNECT_SECONDS)
    try:
        with BoundedClient(timeout) as client:
            response = retry(client.get, listing.base_url + listing.path, headers=headers)
    except _UNREACHABLE as error:
        raise _unreachable(config, listing, without_key(str(error), key)) from None
    except (httpx.HTTPError, httpx.InvalidURL):
        return None
    if response.status_code in listing.refusals:
        return frozenset()
    return _names_in(response) or None


def _unreachable(config: ModelConfig, listing: _ModelListing, reason: str) -> ModelError:
    base_url = config.set_by.base_url
    return explain(
        ModelError(
            f"{endpoint_at(listing.base_url)} can't be reached: {reason or 'no connection'}",
            f"check {base_url} and this machine's network, then start again",
            "provider_down",
        ),
        config.set_by,
    )


def _key_of(config: ModelConfig, environment: Mapping[str, str]) -> str:
    """Return the key that the model is called with.

    For a `base_url` only a key that was set explicitly is used; the key in the provider's variable
    belongs to another host.
    """
    if config.api_key is not None:
        return config.api_key.get_secret_value()
    if config.base_url is not None:
        return ""
    provider = provider_of(config.model)
    other_variables = ("GOOGLE_API_KEY",) if provider == "gemini" else ()
    return next(
        (
            environment[variable]
            for variable in (api_key_variable(provider), *other_variables)
            if environment.get(variable)
        ),
        "",
    )


def _names_of(model: str) -> frozenset[str]:
    """Return the names under which the model may be listed: with and without its provider."""
    name_without_api = model.removeprefix("openai/").removeprefix("responses/")
    return frozenset({model, name_without_api, model.partition("/")[2] or model})


def _names_in(response: httpx.Response) -> frozenset[str]:
    """Return the names in a list of OpenAI, Anthropic, Google or Ollama; () for anything else."""
    if response.status_code != 200:
        return frozenset()
    try:
        body = response.json()
    except ValueError:
        return frozenset()
    entries = (body.get("data") or body.get("models")) if isinstance(body, dict) else body
    names = (
        entry.get(field)
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
        for field in ("id", "name", "model")
    )
    return frozenset(name.removeprefix("models/") for name in names if isinstance(name, str))
