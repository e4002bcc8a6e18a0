"""Classification of failed model calls: whether to retry, and the error for a person.

Texts of the endpoint are truncated, and the key is removed from them.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import quote, urlsplit

from resolver.errors import ContextWindowExceeded, ImageRejected, ModelAuthError, ModelError
from resolver.llm.base import ModelConfig, api_key_variable
from resolver.llm.library import REDIRECTED

_MAX_DETAIL_CHARACTERS = 300
MIN_NAMED_TOKENS, MAX_NAMED_TOKENS = 1_000, 10_000_000
"""Plausible numbers of tokens that an endpoint accepts; others in its message are something else.
"""

_TRANSIENT_STATUSES = {200, 408, 409, 425, 429}  # 200: the response could not be parsed

_TOO_LONG = re.compile(
    r"context.{0,3}(length|window|size|limit)|maximum context|prompt is too long|too many tokens"
    r"|input is too long|request (body )?(is )?too large|(input|tokens) must be reduced",
    re.IGNORECASE,
)
# "Max size: 8000 tokens", "Limit 30000, Requested 41307", "maximum context length is 8192 tokens",
# "210000 tokens > 200000 maximum". The words differ, the numbers stand beside these.
_ACCEPTED = re.compile(
    r"(?:max(?:imum)?(?: context)?(?: size| length)?(?: is|:)?|limit:?|available:?) ?(\d[\d,]*)"
    r"|> ?(\d[\d,]*)",
    re.IGNORECASE,
)
_REQUESTED = re.compile(
    r"(?:requested|resulted in|has|you sent):? ?(\d[\d,]*)|(\d[\d,]*) tokens >", re.IGNORECASE
)
_IMAGE = re.compile(
    r"(could not|unable to|failed to) process.{0,20}image|invalid image", re.IGNORECASE
)
_REGION = re.compile(
    r"unsupported_country|(country|region|location).{0,40}not (supported|available)"
    r"|not (supported|available) in.{0,20}(country|region|location)",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model.{0,80}(not (found|exist)|does not exist|is not (valid|available))|invalid model"
    r"|model_not_found",
    re.IGNORECASE,
)
_TOO_LONG_CODE = '"context_length_exceeded"'
_NO_CREDIT = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance", re.IGNORECASE
)
# litellm itself finds this before it sends anything, and reports it with various statuses.
_NO_KEY = re.compile(
    r"missing (credentials|.{0,20}api key)|unable to locate credentials"
    r"|default credentials were not found",
    re.IGNORECASE,
)
# Errors of a Google service account, found before the request. litellm reports them like a lost
# connection.
_INVALID_ACCOUNT = re.compile(r"unable to load vertex credentials|invalid_grant", re.IGNORECASE)
# litellm's error for a response of Gemini that it can't parse; it has status 422.
_UNREADABLE_RESPONSE = re.compile(r"error converting to valid response", re.IGNORECASE)
_MENTIONS_TOOLS = re.compile(r"\btools?\b|tool_choice|function.call", re.IGNORECASE)
# Prefixes that litellm adds to the message of the endpoint.
_PREFIXES = re.compile(
    r"^(litellm\.\w+: |\w+Exception (?=\w+Error - )|\w+(Error|Exception)( -|:) |Timeout Error: )+"
)
_ADVICE = re.compile(r"\.? Handle with `litellm\.\w+`\.")
_TIMED_OUT = re.compile(r"timed out", re.IGNORECASE)
_TAGS = re.compile(r"<(script|style).*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class ModelFailure:
    """A call that gave no usable reply.

    reason: a short text without secrets.
    error: the error to raise if the call is not retried.
    is_transient: a retry may help.
    retry_after: seconds to wait, as the endpoint asks; None if it does not say.
    """

    reason: str
    error: ModelError
    is_transient: bool = False
    retry_after: float | None = None


def model_failure_of(
    config: ModelConfig,
    status: int,
    text: str,
    headers: Mapping[str, str],
    *,
    has_tools: bool = False,
    is_too_long: bool = False,
) -> ModelFailure:
    """Return the failure that an HTTP status and an error text stand for.

    config: that of the model that was called.
    status: 200 for a response that is not a completion, 500 for a lost connection.
    has_tools: True if the model was offered tools.
    is_too_long: True if the conversation is known to exceed the context window.
    """
    detail = _short_message(text, config.key)
    if status == 408 and _TIMED_OUT.search(detail):
        detail = f"no complete answer within {config.timeout:g} seconds"
    explanation = f"{detail or 'no explanation'} (status {status})"
    mentions_length = bool(_TOO_LONG.search(detail)) or _TOO_LONG_CODE in text
    # A limit of tokens per minute that one request exceeds can't be met by waiting.
    if is_too_long or status == 413 or (status in (400, 422, 429) and mentions_length):
        return ModelFailure("the conversation is too long", _context_window_error(config, detail))
    if known := _known_failure(config, status, detail, explanation):
        return known
    no_access = _INVALID_ACCOUNT.search(detail) or (not config.key and _NO_KEY.search(detail))
    if status in (401, 403) or no_access:
        return ModelFailure("the key was not accepted", _key_error(config, explanation))
    if REDIRECTED in detail:
        error = ModelError(
            f"{endpoint_at(config.base_url)} did not answer: {detail}",
            f"set {config.set_by.base_url} to the final address if you trust it",
        )
        return ModelFailure("redirected", error)
    if status in _TRANSIENT_STATUSES or status >= 500 or _UNREADABLE_RESPONSE.search(detail):
        error = ModelError(
            f"{endpoint_at(config.base_url)} gave no usable answer: {explanation}",
            f"try again later; if the problem persists, check {config.set_by.base_url} and the "
            "provider's status page",
            "provider_down",
        )
        return ModelFailure(explanation, error, is_transient=True, retry_after=retry_after(headers))
    return ModelFailure(explanation, _request_error(config, explanation, status, has_tools))


def _known_failure(
    config: ModelConfig, status: int, detail: str, explanation: str
) -> ModelFailure | None:
    """Return the failure whose cause the endpoint names in its message, None if it names none."""
    endpoint = endpoint_at(config.base_url)
    if status in (400, 422) and _IMAGE.search(detail):
        rejected = ImageRejected(
            f"{endpoint} could not process an image: {explanation}",
            "use a model that accepts images, or an issue without them",
        )
        return ModelFailure("the endpoint could not process an image", rejected)
    if status in (400, 403) and _REGION.search(detail):
        error = ModelError(
            f"{endpoint} does not serve {config.model} here: {explanation}",
            "use a provider or a region that serves it where this machine is",
        )
        return ModelFailure("the model is not served in this region", error)
    if status == 402 or (status in (400, 429) and _NO_CREDIT.search(detail)):
        error = ModelError(
            f"the account behind the model's key has no credit left: {explanation}",
            f"add credit at the provider, or set {config.set_by.api_key} to the key of another "
            "account",
            "no_credit",
        )
        return ModelFailure("no credit", error)
    return None


def endpoint_at(base_url: str | None) -> str:
    """Return a name for the endpoint: only its host, because a URL can contain secrets."""
    host = urlsplit(base_url).netloc.rpartition("@")[2] if base_url else None
    return f"the model endpoint at {host}" if host else "the model endpoint"


def _context_window_error(config: ModelConfig, detail: str) -> ContextWindowExceeded:
    error = ContextWindowExceeded(
        f"the conversation does not fit into the context window of {config.model}: {detail}",
        "use a model with a larger context window, or a smaller issue",
    )
    error.max_tokens, error.tokens = _named_size(_ACCEPTED, detail), _named_size(_REQUESTED, detail)
    return error


def _named_size(pattern: re.Pattern[str], detail: str) -> int | None:
    """Return the first number of tokens in the endpoint's message that the pattern finds."""
    for match in pattern.finditer(detail):
        digits = next(group for group in match.groups() if group)
        size = int(digits.replace(",", ""))
        if MIN_NAMED_TOKENS <= size <= MAX_NAMED_TOKENS:
            return size
    return None


def _key_error(config: ModelConfig, explanation: str) -> ModelAuthError:
    if not config.key:
        provider = config.model.partition("/")[0] if "/" in config.model else None
        variable = api_key_variable(provider) if provider else None
        alternative = f", or {variable}" if variable not in (None, config.set_by.api_key) else ""
        return ModelAuthError(
            f"{endpoint_at(config.base_url)} requires a key and none is set: {explanation}",
            f"set {config.set_by.api_key}{alternative}",
            "model_key",
        )
    return ModelAuthError(
        f"{endpoint_at(config.base_url)} did not accept the key: {explanation}",
        f"set {config.set_by.api_key} to a key that may use {config.model}",
        "model_key",
    )


def _request_error(
    config: ModelConfig, explanation: str, status: int, has_tools: bool
) -> ModelError:
    """Return the error for a request that the endpoint rejected, with advice for known causes."""
    what = f"{endpoint_at(config.base_url)} refused the request to {config.model}: {explanation}"
    if "LLM Provider NOT provided" in explanation:
        return ModelError(
            f"the model name {config.model!r} names no known provider",
            "write it as litellm does (anthropic/NAME, openai/NAME), or set "
            f"{config.set_by.base_url} for an endpoint that speaks OpenAI's API",
        )
    if status == 404 or _NO_MODEL.search(explanation):
        return ModelError(
            what,
            f"check the model's name ({config.set_by.model}) and the address "
            f"({config.set_by.base_url})",
        )
    if has_tools and _MENTIONS_TOOLS.search(explanation):
        return ModelError(
            what, "if the model does not support tool calls, set `model_options: {dialect: tags}`"
        )
    return ModelError(
        what, f"check what the endpoint says, and the settings of the model ({config.set_by.model})"
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that the response headers ask for, None if they don't.

    Header names can be in any case. A date is compared with the response's own `Date` header, so
    that differing clocks do no harm.
    """
    lower_case_headers = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _number(lower_case_headers.get(name, ""))
        if seconds is not None:
            return seconds * unit
    try:
        until = parsedate_to_datetime(lower_case_headers["retry-after"])
        return max(0.0, (until - parsedate_to_datetime(lower_case_headers["date"])).total_seconds())
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text.strip()) else None


def _short_message(text: str, key: str | None) -> str:
    """Return the endpoint's message on one line, truncated and without the key."""
    text = without_key(text, key).partition("Traceback (most recent call last)")[0]
    text = _extract_message(_ADVICE.sub("", _PREFIXES.sub("", text)))
    if re.search(r"<!doctype|<html", text, re.IGNORECASE):
        text = f"a web page instead of an answer: {_TAGS.sub(' ', text)}"
    # The key may have been escaped inside JSON, so redact again after decoding.
    text = without_key(text, key)
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _MAX_DETAIL_CHARACTERS else line[:_MAX_DETAIL_CHARACTERS] + "..."


def without_key(text: str, key: str | None) -> str:
    """Return the text with the key replaced, in plain and in URL-encoded form."""
    if not key:
        return text
    return text.replace(key, "[key]").replace(quote(key, safe=""), "[key]")


def _extract_message(text: str) -> str:
    """Return the message in a JSON error body of a known format, else the text itself."""
    start = text.find("{")
    if start < 0:
        return text
    try:
        body = json.JSONDecoder().raw_decode(text[start:])[0]
    except (ValueError, RecursionError):
        return text
    # A gateway such as OpenRouter wraps the provider's own answer.
    paths = (
        ("error", "metadata", "raw"), ("error", "message"), ("error",), ("message",), ("detail",)
    )  # fmt: skip
    for path in paths:
        value: object = body
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str) and value:
            return _extract_message(value) if path[-1] == "raw" else value
    return text
