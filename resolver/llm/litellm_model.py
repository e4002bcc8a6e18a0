"""The model class on top of litellm: requests, retries, and what replies contain and cost."""

import random
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import httpx
from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_attempt

from resolver.config.templates import render
from resolver.errors import ContextWindowExceeded, ImageRejected, LimitReached
from resolver.llm.base import ChatMessage, ModelConfig, OnRetry, ToolSpec
from resolver.llm.failures import ModelFailure, model_failure_of
from resolver.llm.library import (
    BoundedClient,
    entry_of,
    litellm,
    price_of,
    wire_name,
)
from resolver.llm.messages import newest_images, with_hint, without_images
from resolver.llm.request import (
    DEFAULT_MAX_OUTPUT_TOKENS,
    MIN_OUTPUT_TOKENS,
    MIN_REASONING_TOKENS,
    TOOLS_UNCERTAIN,
    WITHOUT_OWN_CLIENT,
    CallSize,
    MoneyLeft,
    affordable_output,
    characters_of,
    request_for,
    unbounded,
)
from resolver.models.run import Completion, RequestedToolCall, Tokens

_MAX_BACKOFF_SECONDS = 60.0  # seconds, for waits of the exponential backoff
_MAX_REQUESTED_WAIT_SECONDS = 120.0  # seconds, for waits that the endpoint asks for
_CONNECT_TIMEOUT_SECONDS = 15.0
MAX_CHARACTERS_PER_TOKEN = 6.0
"""Text and code have about 4: a request that is too long by this number is too long for sure."""


class LiteLLMModel:
    """A model that is called through litellm. Must be used by one thread at a time."""

    def __init__(
        self,
        config: ModelConfig,
        *,
        on_retry: OnRetry,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
        money_left: MoneyLeft = unbounded,
    ) -> None:
        """Create a model without calling it.

        on_retry: called before each retry.
        sleep: waits that many seconds; an exception from it ends the call.
        jitter: returns a number from 0 to 1, so that runs that failed together do not retry
        together.
        money_left: called before each call, which is not made if it would cost more.
        """
        self._config = config
        self._on_retry = on_retry
        self._sleep = sleep
        self._jitter = jitter
        self._money_left = money_left
        self._last_call: CallSize | None = None
        self._rejected_images: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self._config.model

    @property
    def supports_tools(self) -> bool:
        if self._entry is not None:
            return bool(self._entry.get("supports_function_calling", False))
        return not self._wire_name.startswith(TOOLS_UNCERTAIN)

    @property
    def supports_vision(self) -> bool:
        return self._entry is not None and bool(self._entry.get("supports_vision", False))

    def price_of(self, tokens: Tokens) -> float | None:
        """Return the price of that many tokens in US dollars, None if it is unknown."""
        return self._price(tokens, cache_writes=0)

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        """Return the model's reply to the conversation.

        If the reply is empty or was cut off, the model is asked once more with a hint. That second
        reply is returned whatever it is, with the tokens and the cost of both.

        Raises ContextWindowExceeded, ModelAuthError, or ModelError if retries did not help, and
        LimitReached if the rest of the budget does not suffice for a call.
        """
        started = time.monotonic()
        self._require_room(messages, tools)
        reply = self._query_without_rejected_images(messages, tools)
        hint = _hint_for(reply)
        if hint:
            template, reason = hint
            self._on_retry(1, 0.0, reason)
            hinted = with_hint(messages, render(f"llm/{template}.j2").strip())
            try:
                second_reply = self._query_without_rejected_images(
                    hinted, tools, spent=reply.cost or 0.0
                )
            except LimitReached:
                # The first reply is paid for: return it, so that its cost is recorded.
                return reply.model_copy(update={"latency": time.monotonic() - started})
            reply = add_usage(reply, second_reply)
        return reply.model_copy(update={"latency": time.monotonic() - started})

    def _require_room(self, messages: list[ChatMessage], tools: list[ToolSpec] | None) -> None:
        """Raise ContextWindowExceeded if the request is certainly larger than the context window,
        with both numbers: some endpoints cut such a request off instead of refusing it."""
        window = (self._entry or {}).get("max_input_tokens")
        tokens = int(characters_of(messages, tools) / MAX_CHARACTERS_PER_TOKEN)
        if isinstance(window, int) and 0 < window < tokens:
            error = ContextWindowExceeded(
                f"the request has at least {tokens:,} tokens, and {self.name} accepts {window:,}",
                "use a model with a larger context window, or a smaller issue",
            )
            error.tokens, error.max_tokens = tokens, window
            raise error

    def _query_without_rejected_images(
        self,
        messages: list[ChatMessage],
        tools: list[ToolSpec] | None,
        spent: float = 0.0,
    ) -> Completion:
        """Return the reply; images that the endpoint can't process are taken out, newest first."""
        while True:
            shown = without_images(messages, self._rejected_images)
            try:
                return self._query(shown, tools, spent)
            except ImageRejected as error:
                newest = newest_images(shown)
                if not newest:
                    raise
                self._rejected_images |= newest
                self._on_retry(1, 0.0, error.what)

    def _query(
        self,
        messages: list[ChatMessage],
        tools: list[ToolSpec] | None,
        spent: float = 0.0,
    ) -> Completion:
        """Return the reply to one request, with retries.

        spent: US dollars spent since `money_left` was last updated.
        """
        characters = characters_of(messages, tools)
        max_output_tokens = affordable_output(
            self._money_left() - spent,
            self.price_of,
            characters,
            self._last_call,
            MIN_REASONING_TOKENS if self._config.reasoning_effort else MIN_OUTPUT_TOKENS,
        )
        retry = Retrying(
            retry=retry_if_result(
                lambda result: isinstance(result, ModelFailure) and result.is_transient
            ),
            stop=stop_after_attempt(1 + self._config.num_retries),
            wait=self._wait,
            sleep=self._sleep,
            before_sleep=self._report,
            retry_error_callback=_last_result,
        )
        result: Completion | ModelFailure = retry(self._attempt, messages, tools, max_output_tokens)
        if isinstance(result, ModelFailure):
            raise result.error
        self._last_call = CallSize(characters, result.tokens)
        return result

    def _attempt(
        self,
        messages: list[ChatMessage],
        tools: list[ToolSpec] | None,
        max_output_tokens: int | None,
    ) -> Completion | ModelFailure:
        """Make a single request, and return the reply or the failure.

        Failures are returned, not raised, so that no exception holds litellm's stack frames, which
        contain the key.
        """
        package = litellm()
        try:
            response = self._respond(messages, tools, max_output_tokens)
        except tuple(package.LITELLM_EXCEPTION_TYPES) as error:
            return model_failure_of(
                self._config,
                int(getattr(error, "status_code", None) or 500),
                str(error),
                dict(getattr(error, "litellm_response_headers", None) or self._last_headers()),
                has_tools=bool(tools),
                is_too_long=isinstance(error, package.ContextWindowExceededError),
            )
        billed, is_estimated = billed_tokens(response, characters_of(messages, tools))
        cost = self._price(billed, cache_write_tokens(response))
        tokens = tokens_of(response)
        completion = completion_of(response, model=self.name, tokens=tokens, cost=cost)
        if completion is None:
            return model_failure_of(self._config, 200, "an answer without a message in it", {})
        is_estimated = is_estimated and cost is not None
        return completion.model_copy(update={"is_cost_estimated": is_estimated})

    def _respond(
        self,
        messages: list[ChatMessage],
        tools: list[ToolSpec] | None,
        max_output_tokens: int | None,
    ) -> Any:
        entry = self._entry or {}
        request = request_for(self._config, self._wire_name, entry, messages, tools)
        bounds = (max_output_tokens, self._config.max_tokens)
        limit = min((bound for bound in bounds if bound is not None), default=None)
        if limit is not None and limit < entry.get("max_output_tokens", DEFAULT_MAX_OUTPUT_TOKENS):
            request["max_tokens"] = limit
        response = litellm().completion(**request, timeout=self._timeout, client=self._client)
        return join_chunks(response) if self._config.stream else response

    @cached_property
    def _wire_name(self) -> str:
        return wire_name(self._config)

    @cached_property
    def _entry(self) -> dict[str, Any] | None:
        return entry_of(self._wire_name)

    def _price(self, tokens: Tokens, cache_writes: int) -> float | None:
        """Return the price in US dollars, None if it is unknown.

        cache_writes: input tokens that were written to the prompt cache.
        """
        config = self._config
        if self._entry is not None and "input_cost_per_token" in self._entry:
            return price_of(self._wire_name, tokens, cache_writes)
        if config.input_cost_per_token is None or config.output_cost_per_token is None:
            return None
        return (
            tokens.input * config.input_cost_per_token
            + tokens.output * config.output_cost_per_token
        )

    @property
    def _timeout(self) -> httpx.Timeout:
        seconds = self._config.timeout
        return httpx.Timeout(seconds, connect=min(seconds, _CONNECT_TIMEOUT_SECONDS))

    @cached_property
    def _client(self) -> Any:
        if self._wire_name.startswith(WITHOUT_OWN_CLIENT):
            return None
        from litellm.llms.custom_httpx.http_handler import HTTPHandler

        return HTTPHandler(client=BoundedClient(timeout=self._timeout))

    def _last_headers(self) -> dict[str, str]:
        return dict(self._client.client.last_headers) if self._client else {}

    def _wait(self, state: RetryCallState) -> float:
        failure = _last_result(state)
        if failure.retry_after is not None:
            return min(float(failure.retry_after), _MAX_REQUESTED_WAIT_SECONDS)
        # Exponential backoff with jitter: between half of the wait and all of it.
        max_wait = min(_MAX_BACKOFF_SECONDS, 2.0 ** (state.attempt_number - 1))
        return max_wait * (0.5 + self._jitter() / 2)

    def _report(self, state: RetryCallState) -> None:
        self._on_retry(state.attempt_number, state.upcoming_sleep, str(_last_result(state).reason))


def _last_result(state: RetryCallState) -> Any:
    return state.outcome.result() if state.outcome else None


def _hint_for(reply: Completion) -> tuple[str, str] | None:
    """Return the hint's template and the reason if a reply is unusable, None if it is usable."""
    if reply.finish_reason == "length":
        return "cut_reply", "the reply was cut off at the model's output limit"
    if not reply.text.strip() and not reply.tool_calls:
        return "empty_reply", "the reply was empty"
    return None


def completion_of(
    response: Any, *, model: str, tokens: Tokens, cost: float | None
) -> Completion | None:
    """Return the first choice of a response as a completion, None if there is none.

    model: the name that the user configured; the endpoint's own name is ignored.
    """
    choices: Any = getattr(response, "choices", None) or ()
    message = getattr(choices[0], "message", None) if choices else None
    if message is None:
        return None
    return Completion(
        model=model,
        text=_text(getattr(message, "content", None)),
        reasoning=_text(getattr(message, "reasoning_content", None)),
        thinking=_thinking(message),
        tool_calls=tuple(_tool_call(call) for call in getattr(message, "tool_calls", None) or ()),
        finish_reason=_text(getattr(choices[0], "finish_reason", None)),
        tokens=tokens,
        cost=cost,
    )


def _thinking(message: Any) -> tuple[dict[str, Any], ...]:
    """Return the blocks that have to be sent back unchanged: those that are signed or encrypted."""
    blocks = getattr(message, "thinking_blocks", None) or ()
    reasoning_items = getattr(message, "reasoning_items", None) or ()
    signed_blocks = [
        b for b in blocks if isinstance(b, dict) and (b.get("signature") or b.get("data"))
    ]
    encrypted_items = [
        i for i in reasoning_items if isinstance(i, dict) and i.get("encrypted_content")
    ]
    return tuple(dict(block) for block in (*signed_blocks, *encrypted_items))


def add_usage(first: Completion, second: Completion) -> Completion:
    """Return the second reply with the tokens and the cost of both."""
    is_cost_known = first.cost is not None and second.cost is not None
    cost = (first.cost or 0.0) + (second.cost or 0.0) if is_cost_known else None
    is_cost_estimated = first.is_cost_estimated or second.is_cost_estimated
    return second.model_copy(
        update={
            "tokens": first.tokens + second.tokens,
            "cost": cost,
            "is_cost_estimated": is_cost_estimated,
        }
    )


MAX_TOKENS = 10**9
"""Maximum token count of one reply. A larger one can't be right, and no price of it is a number."""

ESTIMATED_CHARACTERS_PER_TOKEN = 3
"""Characters per token of an estimate. Text and code have about 4, so this rather overestimates."""


def billed_tokens(response: Any, request_characters: int) -> tuple[Tokens, bool]:
    """Return the tokens to calculate a reply's cost with, and True if they are estimated.

    Every request has input, and a reply that is not empty has output. A provider that reports none,
    or impossible counts, can't be believed, and without an estimate the budget would not bind.
    """
    tokens = tokens_of(response)
    reply_characters = _reply_characters(response)
    has_input = tokens.input > 0
    has_output = tokens.output > 0 or reply_characters == 0
    if has_input and has_output:
        return tokens, False
    estimate = -(-request_characters // ESTIMATED_CHARACTERS_PER_TOKEN)
    output_estimate = -(-reply_characters // ESTIMATED_CHARACTERS_PER_TOKEN)
    return Tokens(
        input=tokens.input if has_input else estimate,
        output=tokens.output if has_output else output_estimate,
        cached=tokens.cached,
    ), True


def _reply_characters(response: Any) -> int:
    """Return the number of characters of a reply: text, reasoning and tool calls."""
    reply = completion_of(response, model="", tokens=Tokens(), cost=None)
    if reply is None:
        return 0
    calls = sum(len(call.name) + len(call.arguments) for call in reply.tool_calls)
    return len(reply.text) + len(reply.reasoning) + calls


def tokens_of(response: Any) -> Tokens:
    """Return the token counts of a response, zeros if it has none."""
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    input_tokens = _count(usage, "prompt_tokens")
    return Tokens(
        input=input_tokens,
        output=_count(usage, "completion_tokens"),
        cached=min(_count(details, "cached_tokens"), input_tokens),
    )


def cache_write_tokens(response: Any) -> int:
    """Return the input tokens written to the prompt cache, for which some providers charge more."""
    tokens = tokens_of(response)
    cache_writes = _count(getattr(response, "usage", None), "cache_creation_input_tokens")
    return min(cache_writes, tokens.input - tokens.cached)


def _count(counts: Any, name: str) -> int:
    value = getattr(counts, name, None)
    return value if isinstance(value, int) and 0 <= value <= MAX_TOKENS else 0


def _text(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list of blocks."""
    if isinstance(content, list):
        return "".join(_text(block.get("text")) for block in content if isinstance(block, dict))
    return content if isinstance(content, str) else ""


def _tool_call(call: Any) -> RequestedToolCall:
    function = getattr(call, "function", None)
    return RequestedToolCall(
        id=_text(getattr(call, "id", None)),
        # What follows is a leftover of the format in which some models write calls (harmony).
        name=_text(getattr(function, "name", None)).partition("<|")[0].strip(),
        arguments=_text(getattr(function, "arguments", None)),
    )


def join_chunks(chunks: Iterable[Any]) -> Any:
    """Return litellm's response object for the chunks of a streamed reply.

    Returns None if the stream contains neither content nor token counts, like a web page that is
    not a stream at all. Raises what litellm raises while reading.

    If the endpoint reports no token counts, litellm adds its own estimates. These are removed,
    because they are not what is billed. Reasoning items, which litellm drops, are restored.
    """
    chunk_list = list(chunks)
    response = litellm().stream_chunk_builder(chunk_list)
    if response is None:
        return None
    if not any(getattr(chunk, "usage", None) for chunk in chunk_list):
        response.usage = None
        if not any(_has_content(choice.message) for choice in response.choices):
            return None
    items = [
        item
        for chunk in chunk_list
        for choice in chunk.choices
        for item in getattr(choice.delta, "reasoning_items", None) or ()
    ]
    if items and response.choices:
        response.choices[0].message.reasoning_items = items
    return response


def _has_content(message: Any) -> bool:
    return bool(message.content or message.tool_calls)
