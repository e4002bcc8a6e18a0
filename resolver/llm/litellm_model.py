"""The one class over litellm: requests, retries, tokens and cost.

litellm takes seconds to import, so that happens at the first use. Its own retries, telemetry
and price download are off; what is tried again, and when, is decided here.
"""

import logging
import os
import random
import time
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_attempt

from resolver.llm.anthropic import is_anthropic, with_cache_marks, without_empty_texts
from resolver.llm.base import ChatMessage, OnRetry, ToolSpec
from resolver.llm.failures import Call, Failure, failure_of
from resolver.llm.replies import completion_of, tokens_of, written_to_cache
from resolver.llm.transport import BoundedClient
from resolver.model import Completion, Tokens
from resolver.templates import render

_LONGEST_WAIT = 60.0  # of our own choice, seconds
_LONGEST_REQUESTED_WAIT = 120.0  # when the endpoint asks for it
_CONNECT_TIMEOUT = 15.0
_SHARED_TIMEOUT = 600.0  # only for a request that brings none

_ENVIRONMENT_OF_LITELLM = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it downloads a price list at import
    "LITELLM_MODE": "PRODUCTION",  # else it loads a .env file that lies near into our environment
    # Its own HTTP path instead of the openai package's, whose walk over the types of every
    # message costs nine times as much in a long conversation. Read at each call.
    "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER": "True",
}

# What a request needs when litellm does not know the model, by the start of its name.
_PARAMETERS_OF_UNKNOWN: dict[str, dict[str, Any]] = {
    # Anthropic demands a limit, and litellm's guess of 4,096 cuts the writing of a file.
    "anthropic/": {"max_tokens": 32_000},
}
# An unknown model is expected to take tool calls, but for these, whose models differ.
_TOOLS_UNCERTAIN = ("ollama/", "ollama_chat/")
# litellm reaches these through the openai package, which gets the shared client.
_WITHOUT_OWN_CLIENT = ("azure/", "azure_text/", "text-completion-openai/")


class ModelConfig(BaseModel):
    """Which model to ask, where, and how."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(description="As litellm names it; without a provider at a `base_url`.")
    api_key: SecretStr | None = None
    base_url: str | None = None
    api_version: str | None = Field(default=None, description="For Azure.")
    temperature: float | None = Field(default=None, description="None: the provider's default.")
    seed: int | None = None
    timeout: float = Field(default=300.0, gt=0, description="Seconds one attempt may take.")
    retries: int = Field(default=5, ge=0, description="Attempts after a failed first one.")
    input_cost_per_token: float | None = Field(default=None, ge=0, description="US dollars.")
    output_cost_per_token: float | None = Field(default=None, ge=0, description="US dollars.")


@cache
def _litellm() -> Any:
    """litellm, loaded once and made quiet."""
    os.environ.update(_ENVIRONMENT_OF_LITELLM)
    # They write conversations and tracebacks; what matters of it comes to us as an exception.
    for name in ("LiteLLM", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.redact_messages_in_exceptions = True
    # For the providers that litellm reaches through the openai package.
    litellm.client_session = BoundedClient(timeout=httpx.Timeout(_SHARED_TIMEOUT))
    return litellm


class LiteLLMModel:
    """A model behind litellm. Used by one thread at a time."""

    def __init__(
        self,
        config: ModelConfig,
        *,
        on_retry: OnRetry,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """on_retry: told before each new attempt. sleep: waits; what it raises ends the call.
        jitter: a number from 0 to 1, so that runs that failed together don't return together.
        """
        self._config = config
        self._on_retry = on_retry
        self._sleep = sleep
        self._clock = clock
        self._jitter = jitter
        self._key = config.api_key.get_secret_value() if config.api_key else ""

    @property
    def name(self) -> str:
        return self._config.model

    @property
    def supports_tools(self) -> bool:
        if self._entry is not None:
            return bool(self._entry.get("supports_function_calling", False))
        return not self._wire_name.startswith(_TOOLS_UNCERTAIN)

    def price_of(self, tokens: Tokens) -> float | None:
        """US dollars for so many tokens; None when no price is known."""
        return self._price(tokens, written=0)

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        """The model's reply to the conversation.

        A reply that is empty or was cut off is asked for once more with a hint; its tokens and
        cost are added to the second one's, which is returned whatever it is. Raises
        ContextWindowExceeded, ModelAuthError, or ModelError when retries did not help.
        """
        started = self._clock()
        reply = self._ask(messages, tools)
        hint = _hint_for(reply)
        if hint:
            template, reason = hint
            self._on_retry(1, 0.0, reason)
            asked = {"role": "user", "content": render(f"llm/{template}.j2").strip()}
            again = self._ask([*messages, asked], tools)
            known = reply.cost is not None and again.cost is not None
            reply = again.model_copy(
                update={
                    "tokens": reply.tokens + again.tokens,
                    "cost": (reply.cost or 0.0) + (again.cost or 0.0) if known else None,
                }
            )
        return reply.model_copy(update={"latency": self._clock() - started})

    def _ask(self, messages: list[ChatMessage], tools: list[ToolSpec] | None) -> Completion:
        retrying = Retrying(
            retry=retry_if_result(lambda got: isinstance(got, Failure) and got.is_transient),
            stop=stop_after_attempt(1 + self._config.retries),
            wait=self._wait,
            sleep=self._sleep,
            before_sleep=self._report,
            retry_error_callback=_last_result,
        )
        result: Completion | Failure = retrying(self._attempt, messages, tools)
        if isinstance(result, Failure):
            raise result.error
        return result

    def _attempt(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None
    ) -> Completion | Failure:
        """One request. A failure is a value, so that no error carries litellm's frames and the
        key in them."""
        litellm = _litellm()
        call = Call(
            model=self.name,
            timeout=self._config.timeout,
            key=self._key,
            base_url=self._config.base_url,
            has_tools=bool(tools),
        )
        try:
            response = litellm.completion(**self._request(messages, tools))
        except tuple(litellm.LITELLM_EXCEPTION_TYPES) as error:
            return failure_of(
                call,
                int(getattr(error, "status_code", None) or 500),
                str(error),
                dict(getattr(error, "litellm_response_headers", None) or {}),
                is_too_long=isinstance(error, litellm.ContextWindowExceededError),
            )
        tokens = tokens_of(response)
        counted = tokens.input + tokens.output > 0
        cost = self._price(tokens, written_to_cache(response)) if counted else None
        completion = completion_of(response, model=self.name, tokens=tokens, cost=cost)
        if completion is None:
            return failure_of(call, 200, "an answer without a message in it", {})
        return completion

    def _request(self, messages: list[ChatMessage], tools: list[ToolSpec] | None) -> dict[str, Any]:
        config = self._config
        request: dict[str, Any] = {
            "model": self._wire_name,
            "messages": self._prepared(messages),
            "tools": tools or None,
            # A made-up key where none is set: litellm would else take one from the environment
            # that belongs to another host.
            "api_key": self._key or ("none" if config.base_url else None),
            "api_base": config.base_url,
            "api_version": config.api_version,
            "temperature": config.temperature,
            "seed": config.seed,
            "timeout": self._timeout,
            "max_retries": 0,
            "num_retries": 0,
            "drop_params": True,  # what the model is known not to take is left out
            "client": self._client,
        }
        if self._entry is None:
            for start, parameters in _PARAMETERS_OF_UNKNOWN.items():
                if self._wire_name.startswith(start):
                    request |= parameters
        return {name: value for name, value in request.items() if value is not None}

    def _prepared(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        if is_anthropic(self._wire_name):
            return with_cache_marks(without_empty_texts(messages))
        return [dict(message) for message in messages]

    @cached_property
    def _wire_name(self) -> str:
        """litellm's name of the model: what stands at a base URL speaks OpenAI's API unless
        the name says otherwise."""
        name = self._config.model
        provider = name.partition("/")[0] if "/" in name else ""
        if self._config.base_url and provider not in _litellm().provider_list:
            return f"openai/{name}"
        return name

    @cached_property
    def _entry(self) -> dict[str, Any] | None:
        """What litellm's table says of the model; None when it is not there.

        Read from the table itself: litellm's functions ask a local server for some models,
        and call a price zero that they don't know.
        """
        litellm = _litellm()
        table: dict[str, dict[str, Any]] = litellm.model_cost
        try:
            bare, provider, *_ = litellm.get_llm_provider(self._wire_name)
        except litellm.BadRequestError:
            return None
        for name in (self._wire_name, f"{provider}/{bare}"):
            if name in table:
                return table[name]
        entry = table.get(bare)
        if entry and str(entry.get("litellm_provider", "")).startswith(provider):
            return entry
        return None

    def _price(self, tokens: Tokens, written: int) -> float | None:
        """US dollars; `written`: input tokens that were written to the prompt cache."""
        config = self._config
        if self._entry is not None and "input_cost_per_token" in self._entry:
            parts = _litellm().cost_per_token(
                model=self._wire_name,
                prompt_tokens=tokens.input,
                completion_tokens=tokens.output,
                cache_read_input_tokens=tokens.cached,
                cache_creation_input_tokens=written,
            )
            return float(max(0.0, sum(parts)))
        if config.input_cost_per_token is None or config.output_cost_per_token is None:
            return None
        return (
            tokens.input * config.input_cost_per_token
            + tokens.output * config.output_cost_per_token
        )

    @property
    def _timeout(self) -> httpx.Timeout:
        seconds = self._config.timeout
        return httpx.Timeout(seconds, connect=min(seconds, _CONNECT_TIMEOUT))

    @cached_property
    def _client(self) -> Any:
        if self._wire_name.startswith(_WITHOUT_OWN_CLIENT):
            return None
        from litellm.llms.custom_httpx.http_handler import HTTPHandler

        return HTTPHandler(client=BoundedClient(timeout=self._timeout))

    def _wait(self, state: RetryCallState) -> float:
        failure = _last_result(state)
        if failure.retry_after is not None:
            return min(float(failure.retry_after), _LONGEST_REQUESTED_WAIT)
        longest = min(_LONGEST_WAIT, 2.0 ** (state.attempt_number - 1))
        return longest * (0.5 + self._jitter() / 2)

    def _report(self, state: RetryCallState) -> None:
        self._on_retry(state.attempt_number, state.upcoming_sleep, str(_last_result(state).reason))


def _last_result(state: RetryCallState) -> Any:
    return state.outcome.result() if state.outcome else None


def _hint_for(reply: Completion) -> tuple[str, str] | None:
    """Template and reason when a reply is not worth handing on."""
    if reply.finish_reason == "length":
        return "cut_reply", "the reply was cut off at the model's output limit"
    if not reply.text.strip() and not reply.tool_calls:
        return "empty_reply", "the reply was empty"
    return None
