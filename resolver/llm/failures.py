"""What a failed model call means: whether it may be tried again and when, and the error that a
person reads. Texts of the endpoint are shortened, and the key is taken out of them.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import quote, urlsplit

from resolver.errors import ContextWindowExceeded, ModelAuthError, ModelError
from resolver.llm.config import THE_RUNS_OWN, SetBy, own_variable
from resolver.llm.transport import REDIRECTED

_LONGEST_DETAIL = 300
_TRANSIENT = {200, 408, 409, 425, 429}  # 200: an answer that could not be read

_TOO_LONG = re.compile(
    r"context.{0,3}(length|window|size|limit)|maximum context|prompt is too long|too many tokens"
    r"|input is too long",
    re.IGNORECASE,
)
_TOO_LONG_CODE = '"context_length_exceeded"'
_NO_CREDIT = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance", re.IGNORECASE
)
# litellm's own finding, before anything is sent; it comes with any status.
_NO_KEY = re.compile(
    r"missing (credentials|.{0,20}api key)|unable to locate credentials"
    r"|default credentials were not found",
    re.IGNORECASE,
)
# Of a service account, found before the model is asked; they come as if the connection was lost.
_WRONG_ACCOUNT = re.compile(r"unable to load vertex credentials|invalid_grant", re.IGNORECASE)
# litellm's word for an answer of Gemini that it can't read, which comes with status 422.
_UNREADABLE = re.compile(r"error converting to valid response", re.IGNORECASE)
_ABOUT_TOOLS = re.compile(r"\btools?\b|tool_choice|function.call", re.IGNORECASE)
# What litellm puts before the words of the endpoint.
_PREFIXES = re.compile(
    r"^(litellm\.\w+: |\w+Exception (?=\w+Error - )|\w+(Error|Exception)( -|:) |Timeout Error: )+"
)
_ADVICE = re.compile(r"\.? Handle with `litellm\.\w+`\.")
_TIMED_OUT = re.compile(r"timed out", re.IGNORECASE)
_TAGS = re.compile(r"<(script|style).*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class ModelFailure:
    """A call that gave no usable answer.

    reason: a few words, without secrets. error: to be raised when it is not tried again.
    retry_after: seconds the endpoint asks to wait, None when it does not say.
    """

    reason: str
    error: ModelError
    is_transient: bool = False
    retry_after: float | None = None


@dataclass(frozen=True)
class FailedCall:
    """What the error's text needs to know of the call. `timeout` in seconds."""

    model: str
    timeout: float
    key: str = ""
    base_url: str | None = None
    has_tools: bool = False
    set_by: SetBy = THE_RUNS_OWN

    @property
    def endpoint(self) -> str:
        """Words for the endpoint: its host, without what else a URL may hold."""
        host = urlsplit(self.base_url).netloc.rpartition("@")[2] if self.base_url else ""
        return f"the model endpoint at {host}" if host else "the model endpoint"


def model_failure_of(
    call: FailedCall,
    status: int,
    text: str,
    headers: Mapping[str, str],
    *,
    is_too_long: bool = False,
) -> ModelFailure:
    """The meaning of an HTTP status and the text that came with it.

    status: 200 for an answer that is no completion, 500 for a lost connection.
    is_too_long: True when the conversation is known to exceed the context window.
    """
    detail = _detail(text, call.key)
    if status == 408 and _TIMED_OUT.search(detail):
        detail = f"no whole answer within {call.timeout:g} seconds"
    said = f"{detail or 'no explanation'} (status {status})"
    says_so = _TOO_LONG.search(detail) or _TOO_LONG_CODE in text
    if is_too_long or (status in (400, 413, 422) and says_so):
        return ModelFailure("the conversation is too long", _too_long(call, detail))
    no_access = _WRONG_ACCOUNT.search(detail) or (not call.key and _NO_KEY.search(detail))
    if status in (401, 403) or no_access:
        return ModelFailure("the key was not accepted", _not_accepted(call, said))
    if status == 402 or (status == 429 and _NO_CREDIT.search(detail)):
        error = ModelError(
            f"the account behind the model's key has no credit left: {said}",
            f"add credit at the provider, or set {call.set_by.api_key} to the key of another "
            "account",
            "no_credit",
        )
        return ModelFailure("no credit", error)
    if REDIRECTED in detail:
        error = ModelError(
            f"{call.endpoint} did not answer: {detail}",
            f"set {call.set_by.base_url} to the final address if you trust it",
        )
        return ModelFailure("redirected", error)
    if status in _TRANSIENT or status >= 500 or _UNREADABLE.search(detail):
        error = ModelError(
            f"{call.endpoint} gave no usable answer: {said}",
            f"try again later; if it stays so, check {call.set_by.base_url} and the provider's "
            "status page",
            "provider_down",
        )
        return ModelFailure(said, error, is_transient=True, retry_after=retry_after(headers))
    return ModelFailure(said, _refused(call, said, status))


def _too_long(call: FailedCall, detail: str) -> ContextWindowExceeded:
    return ContextWindowExceeded(
        f"the conversation does not fit into the context window of {call.model}: {detail}",
        "use a model with a larger context window, or a smaller issue",
    )


def _not_accepted(call: FailedCall, said: str) -> ModelAuthError:
    if not call.key:
        own = own_variable(call.model.partition("/")[0]) if "/" in call.model else ""
        other = f", or {own}" if own and own != call.set_by.api_key else ""
        return ModelAuthError(
            f"{call.endpoint} wants a key and none is set: {said}",
            f"set {call.set_by.api_key}{other}",
            "model_key",
        )
    return ModelAuthError(
        f"{call.endpoint} did not accept the key: {said}",
        f"set {call.set_by.api_key} to a key that may use {call.model}",
        "model_key",
    )


def _refused(call: FailedCall, said: str, status: int) -> ModelError:
    what = f"{call.endpoint} refused the request to {call.model}: {said}"
    if "LLM Provider NOT provided" in said:
        return ModelError(
            f"the model name {call.model!r} names no provider that is known",
            "write it as litellm does (anthropic/NAME, openai/NAME), or set "
            f"{call.set_by.base_url} for an endpoint that speaks OpenAI's API",
        )
    if status == 404:
        return ModelError(
            what,
            f"check the model's name ({call.set_by.model}) and the address "
            f"({call.set_by.base_url})",
        )
    if call.has_tools and _ABOUT_TOOLS.search(said):
        return ModelError(what, "if the model takes no tool calls, use --dialect tags")
    return ModelError(
        what,
        f"check the model's name and settings ({call.set_by.model}, {call.set_by.base_url})",
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the endpoint asks to wait, None when it does not say. Names in any case.

    A date is read against the answer's own `Date`, so that the clocks may differ.
    """
    known = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _number(known.get(name, ""))
        if seconds is not None:
            return seconds * unit
    try:
        until = parsedate_to_datetime(known["retry-after"])
        return max(0.0, (until - parsedate_to_datetime(known["date"])).total_seconds())
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text.strip()) else None


def _detail(text: str, key: str) -> str:
    """The endpoint's own words, on one line, short, and without the key."""
    text = without_key(text, key).partition("Traceback (most recent call last)")[0]
    text = _message_in(_ADVICE.sub("", _PREFIXES.sub("", text)))
    if re.search(r"<!doctype|<html", text, re.IGNORECASE):
        text = f"a web page instead of an answer: {_TAGS.sub(' ', text)}"
    # The key may have been written with escapes inside JSON: look again.
    text = without_key(text, key)
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _LONGEST_DETAIL else line[:_LONGEST_DETAIL] + "..."


def without_key(text: str, key: str) -> str:
    """The text with the key replaced, also where it is quoted for a URL."""
    if not key:
        return text
    return text.replace(key, "[key]").replace(quote(key, safe=""), "[key]")


def _message_in(text: str) -> str:
    """The message of an error body, wherever its dialect keeps it; else the text itself."""
    start = text.find("{")
    if start < 0:
        return text
    try:
        body = json.JSONDecoder().raw_decode(text[start:])[0]
    except (ValueError, RecursionError):
        return text
    for path in (("error", "message"), ("error",), ("message",), ("detail",)):
        found: object = body
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        if isinstance(found, str) and found:
            return found
    return text
